#include "snapshot/text/hunks.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "snapshot/text/git-i.h"
#include "snapshot/text/hunks-i.h"
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

int hunks_find_by_git(const struct buf *a, const struct buf *b, struct hunks *ret, struct err *err)
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

/* --- one place -------------------------------------------------------------------------- */

/*
 * Most versions differ from the one before in one place.  git first leaves out the lines that both
 * texts begin with, then those that both end with.  Where nothing that is left on one side is also left
 * on the other, and the place cannot move up or down over equal lines, its answer is that place.
 * Then libgit2, which hashes both texts before it compares them, need not be asked.
 */
#define FEW 8 /* lines that are compared each with each */

struct side {
	const char *text, *end;
	const char *from, *to; /* the place */
	const char *last;      /* the line before it; `from`: there is none */
};

static struct side side_of(const struct buf *b)
{
	const char *text = b->data ? (const char *)b->data : "";

	return (struct side){ .text = text, .end = text + b->len, .from = text, .last = text };
}

static size_t line_len(const char *p, const char *end)
{
	const char *newline = memchr(p, '\n', (size_t)(end - p));

	return (size_t)((newline ? newline + 1 : end) - p);
}

static bool is_same_line(const char *a, const char *a_end, const char *b, const char *b_end)
{
	const size_t n = line_len(a, a_end);

	return n == line_len(b, b_end) && memcmp(a, b, n) == 0;
}

/* The line that ends at `p`, which is behind `from`. */
static const char *line_before(const char *from, const char *p)
{
	do
		p--;
	while (p > from && p[-1] != '\n');
	return p;
}

static void find_place(struct side *a, struct side *b)
{
	while (a->from < a->end && b->from < b->end &&
	       is_same_line(a->from, a->end, b->from, b->end)) {
		const size_t n = line_len(a->from, a->end);

		a->last = a->from;
		b->last = b->from;
		a->from += n;
		b->from += n;
	}
	a->to = a->end;
	b->to = b->end;
	while (a->to > a->from && b->to > b->from) {
		const char *p = line_before(a->from, a->to), *q = line_before(b->from, b->to);

		if (!is_same_line(p, a->to, q, b->to))
			break;
		a->to = p;
		b->to = q;
	}
}

static size_t count_lines(const char *p, const char *end)
{
	size_t n = 0;

	for (; p < end; n++)
		p += line_len(p, end);
	return n;
}

/* Would the place one line further up or down hold the same lines? */
static bool can_slide(const struct side *s)
{
	if (s->from == s->to)
		return false;
	return (s->last < s->from &&
		is_same_line(s->last, s->from, line_before(s->from, s->to), s->to)) ||
	       (s->to < s->end && is_same_line(s->from, s->to, s->to, s->end));
}

static bool share_a_line(const struct side *a, const struct side *b)
{
	for (const char *p = a->from; p < a->to; p += line_len(p, a->to))
		for (const char *q = b->from; q < b->to; q += line_len(q, b->to))
			if (is_same_line(p, a->to, q, b->to))
				return true;
	return false;
}

/* 1 and the answer; 0 if libgit2 must be asked. */
static int find_one(const struct buf *old, const struct buf *new, struct hunks *ret,
		    struct err *err)
{
	struct side a = side_of(old), b = side_of(new);
	struct hunk one;

	ret->n = 0;
	find_place(&a, &b);
	if (a.from == a.to && b.from == b.to)
		return 1;
	one.n_a = count_lines(a.from, a.to);
	one.n_b = count_lines(b.from, b.to);
	if (one.n_a > 0 && one.n_b > 0 && (one.n_a > FEW || one.n_b > FEW || share_a_line(&a, &b)))
		return 0;
	if (can_slide(&a) || can_slide(&b))
		return 0;
	one.a = one.b = count_lines(a.text, a.from);
	if (!VEC_ROOM(ret->list, ret->n, ret->cap))
		return err_nomem(err);
	ret->list[ret->n++] = one;
	return 1;
}

int hunks_find(const struct buf *a, const struct buf *b, struct hunks *ret, struct err *err)
{
	const int r = find_one(a, b, ret, err);

	return r != 0 ? (r < 0 ? r : 0) : hunks_find_by_git(a, b, ret, err);
}
