#include "snapshot/text/hunks.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "snapshot/text/git-i.h"
#include "snapshot/text/text-i.h"

#define TAIL_BLOCK 1024

void hunks_done(struct hunks *h)
{
	free(h->list);
	*h = (struct hunks){ 0 };
}

int hunks_load(struct store *s, const struct content *c, struct buf *out, struct err *err)
{
	if (c->size > TEXT_MAX)
		return err_set(err, -EFBIG, "%" PRIu64 " bytes are too many to compare by lines",
			       c->size);
	return text_load(s, c, out, err);
}

size_t hunks_count_lines(const struct buf *text)
{
	const char *p = (const char *)text->data, *end = p + text->len;
	size_t n = 0;

	for (; p < end; n++) {
		p = memchr(p, '\n', (size_t)(end - p));
		p = p ? p + 1 : end;
	}
	return n;
}

/*
 * How many bytes at the end of both git leaves out before it compares: whole blocks, but for the line
 * that the first of them begins within.  A repeated line can be matched in two ways, and which of them
 * is found depends on where the texts end.
 */
static size_t same_tail(const struct buf *a, const struct buf *b)
{
	const size_t smaller = a->len < b->len ? a->len : b->len;
	const unsigned char *a_end = a->data + a->len, *b_end = b->data + b->len;
	const unsigned char *newline;
	size_t tail = 0;

	while (tail + TAIL_BLOCK <= smaller &&
	       memcmp(a_end - tail - TAIL_BLOCK, b_end - tail - TAIL_BLOCK, TAIL_BLOCK) == 0)
		tail += TAIL_BLOCK;
	if (tail == 0)
		return 0;
	newline = memchr(a_end - tail, '\n', tail);
	return newline ? (size_t)(a_end - newline) - 1 : 0;
}

/* Where libgit2 puts its hunks. */
struct collecting {
	struct hunks *hunks;
	bool no_memory;
};

/* A side without lines is numbered by the line before it, counted from 1. */
static size_t first_line(int start, int n)
{
	return (size_t)(n > 0 ? start - 1 : start);
}

static int on_hunk(const git_diff_delta *delta, const git_diff_hunk *found, void *ctx)
{
	struct collecting *c = ctx;
	struct hunks *h = c->hunks;

	(void)delta;
	if (!VEC_ROOM(h->list, h->n, h->cap)) {
		c->no_memory = true;
		return -1;
	}
	h->list[h->n++] = (struct hunk){
		.a = first_line(found->old_start, found->old_lines),
		.n_a = (size_t)found->old_lines,
		.b = first_line(found->new_start, found->new_lines),
		.n_b = (size_t)found->new_lines,
	};
	return 0;
}

int hunks_find(const struct buf *a, const struct buf *b, struct hunks *ret, struct err *err)
{
	const size_t tail = same_tail(a, b);
	struct collecting c = { .hunks = ret };
	git_diff_options o;
	const struct git *g;
	int rc = git_load(&g, err);

	if (rc < 0)
		return rc;
	ret->n = 0;
	rc = g->diff_options_init(&o, GIT_DIFF_OPTIONS_VERSION);
	if (rc < 0)
		return git_failed(g, rc, "comparing lines", err);
	o.flags = GIT_DIFF_FORCE_TEXT | GIT_DIFF_INDENT_HEURISTIC;
	o.context_lines = 0;
	o.interhunk_lines = 0;
	rc = g->diff_buffers(a->data ? (const char *)a->data : "", a->len - tail, NULL,
			     b->data ? (const char *)b->data : "", b->len - tail, NULL, &o, NULL,
			     NULL, on_hunk, NULL, &c);
	if (c.no_memory)
		return err_nomem(err);
	return rc < 0 ? git_failed(g, rc, "comparing lines", err) : 0;
}
