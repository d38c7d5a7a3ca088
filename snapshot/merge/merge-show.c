/*
 * Conflicting places are found by markers that are longer than any row of the same letter in the
 * texts, so that no line of a text looks like one.
 */
#include "snapshot/merge/merge-show.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/vec.h"
#include "snapshot/merge/merge-i.h"

#define MARKER_SIZE 7

void merge_shown_done(struct merge_shown *s)
{
	for (int v = 0; v < VERSIONS; v++)
		buf_done(&s->text[v]);
	buf_done(&s->marked);
	for (size_t i = 0; i < s->n_hunks; i++)
		for (int v = 0; v < VERSIONS; v++)
			buf_done(&s->hunks[i].text[v]);
	free(s->hunks);
	*s = (struct merge_shown){ 0 };
}

/* The longest row of one letter that a marker is made of. */
static size_t longest_row(const struct buf text[VERSIONS])
{
	size_t longest = 0, row = 0;

	for (int v = 0; v < VERSIONS; v++)
		for (size_t i = 0; i < text[v].len; i++) {
			const uint8_t c = text[v].data[i];

			row = i > 0 && text[v].data[i - 1] == c ? row + 1 : 1;
			if (row > longest && strchr("<|=>", c) && c != '\0')
				longest = row;
		}
	return longest;
}

static bool is_marker(const char *line, size_t len, char letter, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if (i >= len || line[i] != letter)
			return false;
	return true;
}

static struct merge_hunk *add_hunk(struct merge_shown *s, size_t line)
{
	if (!VEC_ROOM(s->hunks, s->n_hunks, s->cap_hunks))
		return NULL;
	s->hunks[s->n_hunks] = (struct merge_hunk){ .line = line };
	return &s->hunks[s->n_hunks++];
}

static int find_hunks(const struct buf *marked, size_t size, struct merge_shown *s, struct err *err)
{
	const char *at = (const char *)marked->data, *end = at + marked->len;
	struct merge_hunk *hunk = NULL;
	int in = OURS;
	size_t len;

	for (size_t line = 1; at < end; at += len, line++) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));

		len = newline ? (size_t)(newline - at) + 1 : (size_t)(end - at);
		if (!hunk && is_marker(at, len, '<', size)) {
			hunk = add_hunk(s, line);
			in = OURS;
			if (!hunk)
				return err_nomem(err);
		} else if (hunk && is_marker(at, len, '|', size)) {
			in = BASE;
		} else if (hunk && is_marker(at, len, '=', size)) {
			in = THEIRS;
		} else if (hunk && is_marker(at, len, '>', size)) {
			hunk = NULL;
		} else if (hunk && buf_append(&hunk->text[in], at, len) < 0) {
			return err_nomem(err);
		}
	}
	return 0;
}

static int load(struct store *s, const struct merge_side *side, size_t max, struct buf *out,
		struct err *err)
{
	if (!side->path)
		return 0;
	if (!S_ISREG(side->entry.mode) || side->entry.size > max)
		return -EFBIG;
	return merge_text_load(s, &side->entry, out, err) > 0 ? 1 : -EFBIG;
}

int merge_show(struct store *s, const struct merge_conflict *c, const struct merge_options *options,
	       size_t max, struct merge_shown *ret, struct err *err)
{
	const struct merge_side *const sides[VERSIONS] = { &c->base, &c->ours, &c->theirs };
	CLEANUP(merge_shown_done) struct merge_shown shown = { 0 };
	CLEANUP(buf_done) struct buf marked = BUF_INIT;
	struct merge_options how = *options;
	unsigned hunks;
	size_t size;
	int r = 0;

	for (int v = 0; v < VERSIONS && r >= 0; v++) {
		r = load(s, sides[v], max, &shown.text[v], err);
		shown.has[v] = r > 0;
	}
	if (r == -EFBIG || (r >= 0 && !shown.has[OURS] && !shown.has[THEIRS]))
		return 0;
	if (r < 0)
		return r;
	if (c->hunks > 0) {
		how.style = MERGE_STYLE_DIFF3;
		r = merge_text(shown.text, &how, MERGE_MARKERS, &shown.marked, &hunks, err);
		size = longest_row(shown.text) + 1;
		how.marker_size = (unsigned short)(size < MARKER_SIZE ? MARKER_SIZE
						   : size > USHRT_MAX ? USHRT_MAX
								      : size);
		if (r < 0)
			return r;
		r = merge_text(shown.text, &how, MERGE_MARKERS, &marked, &hunks, err);
		if (r < 0)
			return r;
		r = find_hunks(&marked, how.marker_size, &shown, err);
	}
	if (r < 0)
		return r;
	*ret = TAKE_STRUCT(shown);
	return 1;
}
