/*
 * libgit2 says whether a merge met conflicts, not how many. So they are counted by a label that
 * none of the three texts holds: only a marker can then have it.
 */
#include <stdio.h>
#include <string.h>

#include "snapshot/merge/merge-i.h"
#include "snapshot/text/git-i.h"
#include "snapshot/text/text-i.h"

#define BINARY_LOOK 8000 /* bytes in which git looks for a NUL */

int merge_text_load(struct store *s, const struct tree_entry *e, struct buf *out, struct err *err)
{
	const struct content c = tree_entry_content(e);
	int r;

	/* What a capture lost has no lines. */
	if (c.size > TEXT_MAX || c.form == CONTENT_LAZY)
		return 0;
	r = text_load(s, &c, out, err);
	if (r < 0)
		return r;
	return out->len == 0 ||
	       !memchr(out->data, '\0', out->len < BINARY_LOOK ? out->len : BINARY_LOOK);
}

struct run {
	const struct git *git;
	git_merge_file_result result;
	bool made;
};

static void run_done(struct run *run)
{
	if (run->made)
		run->git->merge_file_result_free(&run->result);
}

static git_merge_file_input input(const struct buf *text)
{
	return (git_merge_file_input){
		.version = GIT_MERGE_FILE_INPUT_VERSION,
		.ptr = text->data ? (const char *)text->data : "",
		.size = text->len,
	};
}

static const char * or (const char *label, const char *otherwise)
{
	return label ? label : otherwise;
}

static uint32_t style_flags(enum merge_style style)
{
	/* As `git merge-file` has it: conflicts with next to nothing between them are one. */
	uint32_t flags = GIT_MERGE_FILE_SIMPLIFY_ALNUM;

	switch (style) {
	case MERGE_STYLE_PLAIN:
		return flags | GIT_MERGE_FILE_STYLE_MERGE;
	case MERGE_STYLE_DIFF3:
		return flags | GIT_MERGE_FILE_STYLE_DIFF3;
	case MERGE_STYLE_ZDIFF3:
		return flags | GIT_MERGE_FILE_STYLE_ZDIFF3;
	}
	return flags;
}

/* `label` NULL: use the labels of the options. */
static int run(const struct git *g, const struct buf text[VERSIONS],
	       const struct merge_options *options, git_merge_file_favor_t favor, const char *label,
	       struct run *ret, struct err *err)
{
	const git_merge_file_input base = input(&text[BASE]), ours = input(&text[OURS]),
				   theirs = input(&text[THEIRS]);
	const git_merge_file_options how = {
		.version = GIT_MERGE_FILE_OPTIONS_VERSION,
		.ancestor_label = or (options->label_base, "base"),
		.our_label = label ? label : or (options->label_ours, "ours"),
		.their_label = or (options->label_theirs, "theirs"),
		.favor = favor,
		.flags = style_flags(options->style),
		.marker_size = options->marker_size,
	};
	int rc = g->merge_file(&ret->result, &base, &ours, &theirs, &how);

	if (rc < 0)
		return git_failed(g, rc, "merging texts", err);
	ret->git = g;
	ret->made = true;
	return 0;
}

static bool any_has(const struct buf text[VERSIONS], const char *word)
{
	for (int v = 0; v < VERSIONS; v++)
		if (text[v].len > 0 && memmem(text[v].data, text[v].len, word, strlen(word)))
			return true;
	return false;
}

static int count(const struct git *g, const struct buf text[VERSIONS],
		 const struct merge_options *options, unsigned *ret, struct err *err)
{
	CLEANUP(run_done) struct run counted = { 0 };
	char label[32], marker[48];
	const char *at, *end;
	unsigned n = 0;
	size_t len;
	int r;

	/* Texts are bounded, so they do not hold every number. */
	do
		snprintf(label, sizeof(label), "conflict-%u", n++);
	while (any_has(text, label));
	r = run(g, text, options, GIT_MERGE_FILE_FAVOR_NORMAL, label, &counted, err);
	if (r < 0)
		return r;
	len = (size_t)snprintf(marker, sizeof(marker), "<<<<<<< %s", label);
	end = counted.result.ptr + counted.result.len;
	for (n = 0, at = counted.result.ptr;
	     (at = memmem(at, (size_t)(end - at), marker, len)) != NULL; at += len)
		n++;
	*ret = n;
	return 0;
}

static int give(const struct run *run, struct buf *out, struct err *err)
{
	buf_reset(out);
	return buf_append(out, run->result.ptr, run->result.len) < 0 ? err_nomem(err) : 0;
}

int merge_text(const struct buf text[VERSIONS], const struct merge_options *options,
	       enum merge_on_conflict wish, struct buf *out, unsigned *ret_hunks, struct err *err)
{
	CLEANUP(run_done) struct run first = { 0 };
	CLEANUP(run_done) struct run favoured = { 0 };
	const struct git *g;
	int r = git_load(&g, err);

	if (r < 0)
		return r;
	r = run(g, text, options, GIT_MERGE_FILE_FAVOR_NORMAL, NULL, &first, err);
	if (r < 0)
		return r;
	*ret_hunks = 0;
	if (first.result.automergeable)
		return give(&first, out, err);
	r = count(g, text, options, ret_hunks, err);
	if (r < 0)
		return r;
	switch (wish) {
	case MERGE_STOP:
		return 0;
	case MERGE_MARKERS:
		return give(&first, out, err);
	case MERGE_OURS:
	case MERGE_THEIRS:
		r = run(g, text, options,
			wish == MERGE_OURS ? GIT_MERGE_FILE_FAVOR_OURS
					   : GIT_MERGE_FILE_FAVOR_THEIRS,
			NULL, &favoured, err);
		return r < 0 ? r : give(&favoured, out, err);
	}
	return 0;
}
