#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cquote.h"
#include "base/utf8.h"
#include "cli/diffstat.h"
#include "cli/out.h"
#include "cli/pager.h"
#include "cli/progress.h"
#include "engine/diff.h"

struct diff_args {
	bool stat, name_status, exit_code, no_renames, patch;
	uint64_t context;
};

static const struct opt diff_opts[] = {
	OPT_FLAG(0, "stat", struct diff_args, stat, "count changed lines instead"),
	OPT_FLAG(0, "name-status", struct diff_args, name_status,
		 "list names and A, D, M, R, T, or m for metadata alone"),
	OPT_FLAG(0, "exit-code", struct diff_args, exit_code,
		 "exit with 3 if there are differences"),
	OPT_FLAG(0, "no-renames", struct diff_args, no_renames, "do not look for what moved"),
	OPT_U64('U', "unified", "N", struct diff_args, context,
		"lines around a change (default: 3)"),
	OPT_FLAG('p', "patch", struct diff_args, patch, "with --json: the text of the patch too"),
	OPT_END,
};
_Static_assert(sizeof(struct diff_args) <= CMD_ARGS_MAX, "grow CMD_ARGS_MAX");

#define CONTEXT_MAX 1000000

struct differ {
	const struct invocation *inv;
	const struct diff_args *args;
	struct pager pager;
	struct diffstat stat;
	struct json j, files; /* with --json */
	struct buf patch;     /* with --json --patch */
	bool different;
};

static void differ_done(struct differ *d)
{
	pager_end(&d->pager);
	diffstat_done(&d->stat);
	buf_done(&d->patch);
}

/* --- what a patch cannot say ------------------------------------------------------------ */

static const struct {
	enum delta_what what;
	const char *name;
} what_names[] = {
	{ DELTA_MODE, "mode" },     { DELTA_OWNER, "owner" },         { DELTA_XATTRS, "xattrs" },
	{ DELTA_DEVICE, "device" }, { DELTA_DIRECTORY, "directory" }, { DELTA_SPECIAL, "special" },
};

static const char *status_name(enum delta_status status)
{
	switch (status) {
	case DELTA_ADDED:
		return "added";
	case DELTA_DELETED:
		return "deleted";
	case DELTA_MODIFIED:
		return "modified";
	case DELTA_RENAMED:
		return "renamed";
	case DELTA_TYPE:
		return "type_changed";
	}
	return "unknown";
}

static const char *note_path(const struct delta_note *n)
{
	return *n->path != '\0' ? n->path : ".";
}

static int print_quoted(const struct differ *d, const char *before, const char *name,
			const char *after, struct err *err)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT;

	if (cquote_append(&text, "", name) < 0 || !buf_str(&text))
		return err_nomem(err);
	fprintf(d->inv->out, "%s%s%s", before, buf_str(&text), after);
	return 0;
}

/* "# meta: modified src: mode, owner": git apply skips what comes before the first header. */
static int print_note(const struct differ *d, const struct delta_note *n, struct err *err)
{
	const char *between = ": ";
	char before[40];
	int r;

	snprintf(before, sizeof(before), "# meta: %s ", status_name(n->status));
	r = print_quoted(d, before, note_path(n), "", err);
	for (size_t i = 0; i < ARRAY_LEN(what_names) && r >= 0; i++) {
		if (!(n->what & what_names[i].what))
			continue;
		fprintf(d->inv->out, "%s%s", between, what_names[i].name);
		between = ", ";
	}
	fputc('\n', d->inv->out);
	return r;
}

static int print_notes(const struct differ *d, const struct delta *delta, struct err *err)
{
	size_t refused = 0;
	int r = 0;

	fputs(out_style(d->inv, OUT_DIM), d->inv->out);
	for (size_t i = 0; i < delta->n_notes && r >= 0; i++)
		r = print_note(d, &delta->notes[i], err);
	for (size_t i = 0; i < delta->n_files; i++)
		refused += delta->files[i].refused;
	if (refused > 0 && !d->args->stat)
		fprintf(d->inv->out,
			"# left out: %zu %s in places that git refuses in a patch, such as .git\n",
			refused, refused == 1 ? "file" : "files");
	fputs(out_style(d->inv, OUT_PLAIN), d->inv->out);
	return r;
}

/* --- for programs ----------------------------------------------------------------------- */

static void set_state(struct json j, const char *name, const char *time_key,
		      const struct engine_state *s)
{
	json_set_name(j, name, s->name);
	out_json_time(j, time_key, s->time);
}

static void set_mode(struct json j, const char *key, uint32_t mode)
{
	char text[16];

	snprintf(text, sizeof(text), "%06o", mode);
	json_set_text(j, key, mode != 0 ? text : NULL);
}

static void set_note(struct json j, const struct delta_note *n)
{
	struct json what;

	json_set_name(j, "path", note_path(n));
	json_set_text(j, "status", status_name(n->status));
	what = json_set_array(j, "what");
	for (size_t i = 0; i < ARRAY_LEN(what_names); i++)
		if (n->what & what_names[i].what)
			json_add_text(what, what_names[i].name);
	set_mode(j, "mode", n->mode);
}

static void set_file(struct json j, const struct delta_file *f, const struct patch_counts *c)
{
	const uint32_t bits = (f->before.mode ^ f->after.mode) & 07777;

	json_set_name(j, "path", f->path);
	json_set_text(j, "status", status_name(f->status));
	json_set_name(j, "old_path", f->old_path);
	json_set_uint(j, "added", c->added);
	json_set_uint(j, "removed", c->removed);
	json_set_bool(j, "binary", c->binary);
	json_set_bool(j, "mode_changed", f->before.mode != 0 && f->after.mode != 0 && bits != 0);
	set_mode(j, "old_mode", f->before.mode);
	set_mode(j, "new_mode", f->after.mode);
	if (f->status == DELTA_RENAMED)
		json_set_uint(j, "similarity", f->similarity);
	else
		json_set_null(j, "similarity");
	json_set_bool(j, "in_patch", !f->refused);
}

static void set_patch(struct json j, const struct buf *patch)
{
	const char *s = patch->len > 0 ? (const char *)patch->data : "";
	size_t at = 0, n = 1;

	for (; at < patch->len && n > 0; at += n)
		n = utf8_valid(s + at, patch->len - at);
	json_set_text(j, "patch_encoding", n > 0 ? "utf-8" : "base64");
	if (n > 0)
		json_set_text_len(j, "patch", s, patch->len);
	else
		json_set_raw(j, "patch", s, patch->len);
}

/* --- what the engine finds -------------------------------------------------------------- */

/* Written out in pieces, so that who left is noticed and a full disk too. */
static int check_output(const struct differ *d, struct err *err)
{
	return ferror(d->inv->out) ? err_sys(err, "writing to standard output") : 0;
}

static int on_begin(const struct engine_state *from, const struct engine_state *to,
		    const struct delta *delta, void *ctx, struct err *err)
{
	struct differ *d = ctx;
	struct json notes;
	int r = 0;

	progress_done(d->inv->progress);
	d->different = delta->n_files > 0 || delta->n_notes > 0;
	if (d->inv->json) {
		set_state(d->j, "from", "from_time", from);
		set_state(d->j, "to", "to_time", to);
		d->files = json_set_array(d->j, "files");
		notes = json_set_array(d->j, "metadata");
		for (size_t i = 0; i < delta->n_notes; i++)
			set_note(json_add_object(notes), &delta->notes[i]);
		return 0;
	}
	if (!d->different)
		return 0;
	pager_begin(&d->pager, d->inv);
	if (!d->args->name_status && !d->inv->quiet)
		return print_notes(d, delta, err);
	for (size_t i = 0; i < delta->n_notes && r >= 0; i++)
		r = print_quoted(d, d->inv->quiet ? "" : "m\t", note_path(&delta->notes[i]), "\n",
				 err);
	return r;
}

static int print_name_status(const struct differ *d, const struct delta_file *f, struct err *err)
{
	char before[16];
	int r;

	if (d->inv->quiet)
		return print_quoted(d, "", f->path, "\n", err);
	if (f->status != DELTA_RENAMED) {
		snprintf(before, sizeof(before), "%c\t", f->status);
		return print_quoted(d, before, f->path, "\n", err);
	}
	snprintf(before, sizeof(before), "R%03u\t", f->similarity);
	r = print_quoted(d, before, f->old_path, "\t", err);
	return r < 0 ? r : print_quoted(d, "", f->path, "\n", err);
}

static int on_file(const struct delta_file *f, const struct patch_counts *counts, void *ctx,
		   struct err *err)
{
	struct differ *d = ctx;
	int r = 0;

	if (d->inv->json)
		set_file(json_add_object(d->files), f, counts);
	else if (d->args->name_status || d->inv->quiet)
		r = print_name_status(d, f, err);
	else if (d->args->stat)
		r = diffstat_add(&d->stat, f, counts, err);
	return r < 0 ? r : check_output(d, err);
}

static int on_text(enum patch_part part, const char *text, size_t len, void *ctx, struct err *err)
{
	static const enum out_style styles[] = {
		[PATCH_HEADER] = OUT_BOLD,  [PATCH_HUNK] = OUT_LINK,   [PATCH_SAME] = OUT_PLAIN,
		[PATCH_ADDED] = OUT_GOOD,   [PATCH_REMOVED] = OUT_OLD, [PATCH_MARK] = OUT_PLAIN,
		[PATCH_BINARY] = OUT_PLAIN,
	};
	struct differ *d = ctx;
	FILE *out = d->inv->out;
	size_t n;

	if (d->inv->json)
		return buf_append(&d->patch, text, len) < 0 ? err_nomem(err) : 0;
	if (!d->inv->color || styles[part] == OUT_PLAIN) {
		fwrite(text, 1, len, out);
		return check_output(d, err);
	}
	for (; len > 0; text += n, len -= n) {
		const char *end = memchr(text, '\n', len);

		n = end ? (size_t)(end - text) + 1 : len;
		fputs(out_style(d->inv, styles[part]), out);
		fwrite(text, 1, n - (end != NULL), out);
		fputs(out_style(d->inv, OUT_PLAIN), out);
		if (end)
			fputc('\n', out);
	}
	return check_output(d, err);
}

/* --- the command ------------------------------------------------------------------------ */

static int check_args(const struct diff_args *args, struct err *err)
{
	if (args->stat && args->name_status)
		return err_set(err, -EINVAL, "'--stat' and '--name-status' do not go together");
	if (args->context > CONTEXT_MAX)
		return err_set(err, -EINVAL, "option '--unified': at most %d lines", CONTEXT_MAX);
	return 0;
}

static int compare(struct invocation *inv, struct differ *d, struct err *err)
{
	const struct diff_args *args = d->args;
	const bool text =
	    inv->json ? args->patch : !args->stat && !args->name_status && !inv->quiet;
	const struct engine_diff_options options = {
		.a = inv->n_before > 0 ? inv->words[0] : NULL,
		.b = inv->n_before > 1 ? inv->words[1] : NULL,
		.paths = (const char *const *)inv->words + inv->n_before,
		.n_paths = (size_t)(inv->n_words - inv->n_before),
		.no_renames = args->no_renames,
		.count = inv->json || args->stat,
		.context = (unsigned)args->context,
		.watch = progress_watch(inv->progress),
	};
	const struct engine_diff_sink sink = {
		.begin = on_begin,
		.text = text ? on_text : NULL,
		.file = on_file,
		.ctx = d,
	};

	return engine_diff(inv->engine, &options, &sink, err);
}

static int diff_run(struct invocation *inv, struct err *err)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	CLEANUP(differ_done) struct differ d = { .inv = inv, .args = inv->args };
	int r = check_args(d.args, err);

	if (r < 0)
		return r;
	d.pager.saved = -1;
	d.j = out_json_begin(inv, &doc);
	r = compare(inv, &d, err);
	if (r == -ENOENT)
		cmd_hint(inv, "log");
	if (pager_was_left(&d.pager))
		r = 0;
	if (r < 0)
		return r;
	if (inv->json) {
		json_set_bool(d.j, "different", d.different);
		if (d.args->patch)
			set_patch(d.j, &d.patch);
		r = json_print(&doc, inv->out, err);
	} else {
		diffstat_print(&d.stat, inv);
	}
	if (r < 0)
		return r;
	return d.args->exit_code && d.different ? CMD_DIFFERENT : CMD_OK;
}

static void diff_preset(void *args)
{
	((struct diff_args *)args)->context = 3;
}

const struct command cmd_diff = {
	.name = "diff",
	.group = "Snapshots",
	.summary = "show what differs between two states",
	.words = "[A [B]] [-- PATH...]",
	.max_words = 2,
	.takes_rest = true,
	.opts = diff_opts,
	.preset = diff_preset,
	.details =
	    "A state is a snapshot (`@`, an id, a tag), a clone now (its name) or the project now "
	    "(`.`). One alone: since it was taken, or made. None: the clone here, else the project "
	    "since its last snapshot. The text is a patch that `git apply` takes; what that cannot "
	    "say stands before it behind `#`.",
	.examples = "diff try --stat\ndiff @-1 @ -- src\ndiff try > fix.patch\n",
	.run = diff_run,
};
