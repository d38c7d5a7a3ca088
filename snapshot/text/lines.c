/*
 * The common beginning and end of both texts are set aside. The rest goes through E. Myers' greedy
 * search ("An O(ND) difference algorithm and its variations", 1986): for each number of edits d,
 * how far each diagonal can be followed; the result for every d is kept, to find the way back.
 */
#include "snapshot/text/lines-i.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/vec.h"

#define LINES_MAX 100000 /* of a text */
#define EDITS_MAX 400    /* lines that go or come, but for those where nothing else remains */

void lines_done(struct lines *l)
{
	free(l->a);
	free(l->b);
	free(l->blocks);
	*l = (struct lines){ 0 };
}

/* --- lines ------------------------------------------------------------------------------ */

/* 1, or 0 if there are too many. */
static int split(const struct buf *text, struct line **ret, size_t *ret_n, struct err *err)
{
	const char *p = (const char *)text->data, *end = p + text->len;
	struct line *list;
	size_t n = 0;

	for (const char *q = p; q < end && n <= LINES_MAX; n++) {
		q = memchr(q, '\n', (size_t)(end - q));
		q = q ? q + 1 : end;
	}
	if (n > LINES_MAX)
		return 0;
	list = calloc(n + 1, sizeof(*list));
	if (!list)
		return err_nomem(err);
	for (size_t i = 0; i < n; i++) {
		const char *q = memchr(p, '\n', (size_t)(end - p));
		uint32_t hash = 2166136261u; /* FNV-1a */

		list[i].text = p;
		for (q = q ? q + 1 : end; p < q; p++)
			hash = (hash ^ (uint8_t)*p) * 16777619u;
		list[i].len = (size_t)(q - list[i].text);
		list[i].hash = hash;
	}
	*ret = list;
	*ret_n = n;
	return 1;
}

static bool same(const struct line *x, const struct line *y)
{
	return x->hash == y->hash && x->len == y->len && memcmp(x->text, y->text, x->len) == 0;
}

/* --- the shortest way ------------------------------------------------------------------- */

/* The part of both texts that is searched: lines [from, from + n_a) and [from, from + n_b). */
struct search {
	const struct line *a, *b;
	long n_a, n_b;
	long *reached;      /* by diagonal, -EDITS_MAX - 1 to EDITS_MAX + 1; owned */
	long *kept;         /* of each d, 2 * d + 1 of them; owned */
	bool *goes, *comes; /* which lines; owned */
};

static void search_done(struct search *s)
{
	free(s->reached);
	free(s->kept);
	free(s->goes);
	free(s->comes);
}

/* Where step d begins in `kept`; diagonal k is at d + k from there. */
static size_t step_at(long d)
{
	return (size_t)(d * d);
}

/* Is the last edit of a way to diagonal k a line that comes?  By how far its neighbours were. */
static bool comes_down(const long *reached, long d, long k)
{
	return k == -d || (k != d && reached[k - 1] < reached[k + 1]);
}

/* The number of edits, or -1 if there are too many. */
static long search_forth(struct search *s)
{
	long *reached = s->reached + EDITS_MAX + 1;

	reached[1] = 0;
	for (long d = 0; d <= EDITS_MAX; d++) {
		for (long k = -d; k <= d; k += 2) {
			long x = comes_down(reached, d, k) ? reached[k + 1] : reached[k - 1] + 1;

			while (x < s->n_a && x - k < s->n_b && same(&s->a[x], &s->b[x - k]))
				x++;
			reached[k] = x;
			s->kept[step_at(d) + (size_t)(d + k)] = x;
			if (x >= s->n_a && x - k >= s->n_b)
				return d;
		}
	}
	return -1;
}

static void search_back(struct search *s, long edits)
{
	long x = s->n_a, k = s->n_a - s->n_b;

	for (long d = edits; d > 0; d--) {
		/* By diagonal: those that step d - 1 did not reach are not asked for. */
		const long *before = s->kept + step_at(d - 1) + (d - 1);
		const bool down = comes_down(before, d, k);

		k += down ? 1 : -1;
		x = before[k];
		if (down)
			s->comes[x - k] = true;
		else
			s->goes[x] = true;
	}
}

/* 1 and the lines that go and come, or 0. */
static int search_run(struct search *s, struct err *err)
{
	long edits;

	s->goes = calloc((size_t)s->n_a + 1, sizeof(*s->goes));
	s->comes = calloc((size_t)s->n_b + 1, sizeof(*s->comes));
	s->reached = calloc(2 * EDITS_MAX + 3, sizeof(*s->reached));
	s->kept = malloc(step_at(EDITS_MAX + 1) * sizeof(*s->kept));
	if (!s->goes || !s->comes || !s->reached || !s->kept)
		return err_nomem(err);
	/* Where only one side has lines there is nothing to search. */
	if (s->n_a == 0 || s->n_b == 0) {
		memset(s->goes, true, (size_t)s->n_a);
		memset(s->comes, true, (size_t)s->n_b);
		return 1;
	}
	edits = search_forth(s);
	if (edits >= 0)
		search_back(s, edits);
	return edits >= 0;
}

/* --- blocks ----------------------------------------------------------------------------- */

/*
 * Slide a block of only added or only removed lines down over equal lines, so that text added below
 * something reads that way.
 */
static void slide(const struct lines *l, struct lines_block *block, const struct lines_block *next)
{
	const struct line *text = block->n_a > 0 ? l->a : l->b;
	const size_t n = block->n_a > 0 ? block->n_a : block->n_b;
	size_t *at = block->n_a > 0 ? &block->a : &block->b;
	const size_t end = block->n_a > 0 ? (next ? next->a : l->n_a) : (next ? next->b : l->n_b);

	if (block->n_a > 0 && block->n_b > 0)
		return;
	/* One line at least stays between it and the next. */
	while (*at + n + (next != NULL) < end && same(&text[*at], &text[*at + n])) {
		block->a++;
		block->b++;
	}
}

static int make_blocks(struct lines *l, const struct search *s, size_t from, struct err *err)
{
	size_t cap = 0;

	for (long i = 0, j = 0; i < s->n_a || j < s->n_b;) {
		struct lines_block block = { .a = from + (size_t)i, .b = from + (size_t)j };

		for (; i < s->n_a && s->goes[i]; i++)
			block.n_a++;
		for (; j < s->n_b && s->comes[j]; j++)
			block.n_b++;
		if (block.n_a == 0 && block.n_b == 0) {
			i++;
			j++;
			continue;
		}
		if (!VEC_ROOM(l->blocks, l->n, cap))
			return err_nomem(err);
		l->blocks[l->n++] = block;
	}
	for (size_t i = l->n; i > 0; i--)
		slide(l, &l->blocks[i - 1], i < l->n ? &l->blocks[i] : NULL);
	return 1;
}

static int compare(struct lines *l, struct err *err)
{
	CLEANUP(search_done) struct search s = { 0 };
	size_t begin = 0, end = 0;
	int r;

	while (begin < l->n_a && begin < l->n_b && same(&l->a[begin], &l->b[begin]))
		begin++;
	while (end < l->n_a - begin && end < l->n_b - begin &&
	       same(&l->a[l->n_a - 1 - end], &l->b[l->n_b - 1 - end]))
		end++;
	s.a = l->a + begin;
	s.b = l->b + begin;
	s.n_a = (long)(l->n_a - begin - end);
	s.n_b = (long)(l->n_b - begin - end);
	r = search_run(&s, err);
	return r <= 0 ? r : make_blocks(l, &s, begin, err);
}

int lines_compare(const struct buf *a, const struct buf *b, struct lines *ret, struct err *err)
{
	CLEANUP(lines_done) struct lines l = { 0 };
	int r = split(a, &l.a, &l.n_a, err);

	if (r > 0)
		r = split(b, &l.b, &l.n_b, err);
	if (r > 0)
		r = compare(&l, err);
	if (r <= 0)
		return r;
	*ret = TAKE_STRUCT(l);
	return 1;
}
