/*
 * Inode numbers are kept as they are on disk. On one file system they are unique. Two files may
 * share one if there is another file system below, or a bind mount shows a file system twice, or a
 * file was moved during the walk. The end of the walk shows that. Then the walk is repeated,
 * without reading files, and assigns numbers when it knows all of them, in an order that depends on
 * names alone: the first file with a number keeps it, others get an unused one from the top of the
 * range.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "snapshot/capture/capture-i.h"

#define DIGIT_BITS 11
#define DIGITS     ((size_t)1 << DIGIT_BITS)

/* Each of them once, or several times; linked files count once. */
static int gather(const struct walk *w, struct buf *out)
{
	const struct linked *l;
	int r = 0;

	for (unsigned i = 0; r >= 0 && i < w->n_workers; i++)
		r = buf_append(out, w->workers[i].inos.data, w->workers[i].inos.len);
	if (r < 0)
		return r;
	r = glance_append_inos(w, out);
	if (r < 0)
		return r;
	for (size_t pos = 0; r >= 0 && (l = map_next(&w->links.files, &pos));) {
		const uint64_t ino = capture_number(w->links.apart, (uint64_t)l->id.ino);

		if (l->names > 0)
			r = buf_append(out, &ino, sizeof(ino));
	}
	return r;
}

/* One digit of a sort; nothing is moved if all have the same. */
static bool sort_by_digit(const uint64_t *from, uint64_t *to, size_t n, unsigned shift)
{
	size_t start[DIGITS] = { 0 }, at = 0;

	for (size_t i = 0; i < n; i++)
		start[from[i] >> shift & (DIGITS - 1)]++;
	if (n == 0 || start[from[0] >> shift & (DIGITS - 1)] == n)
		return false;
	for (size_t d = 0; d < DIGITS; d++) {
		const size_t count = start[d];

		start[d] = at;
		at += count;
	}
	for (size_t i = 0; i < n; i++)
		to[start[from[i] >> shift & (DIGITS - 1)]++] = from[i];
	return true;
}

/* In time that grows as their number does. */
static int sort(struct buf *inos)
{
	CLEANUP(buf_done) struct buf other = BUF_INIT;
	const size_t n = inos->len / sizeof(uint64_t);

	if (n == 0)
		return 0;
	if (!buf_extend(&other, inos->len))
		return -ENOMEM;
	for (unsigned shift = 0; shift < 64; shift += DIGIT_BITS)
		if (sort_by_digit((const uint64_t *)(const void *)inos->data,
				  (uint64_t *)(void *)other.data, n, shift))
			buf_swap(inos, &other);
	return 0;
}

static int gather_sorted(const struct walk *w, struct buf *out, struct err *err)
{
	return gather(w, out) < 0 || sort(out) < 0 ? err_nomem(err) : 0;
}

int inos_clash(const struct walk *w, struct err *err)
{
	CLEANUP(buf_done) struct buf inos = BUF_INIT;
	const uint64_t *list;
	int r = gather_sorted(w, &inos, err);

	list = (const uint64_t *)(const void *)inos.data;
	/* Programs that list a directory skip a name without a number. */
	if (r == 0 && inos.len > 0)
		r = list[0] == 0;
	for (size_t i = 1; r == 0 && i < inos.len / sizeof(*list); i++)
		r = list[i] == list[i - 1];
	return r;
}

/* --- giving them ------------------------------------------------------------------------ */

struct giver {
	const uint64_t *all; /* in order */
	size_t n;
	bool *taken;    /* owned; numbers of `all` that are taken */
	uint64_t spare; /* the next in place of a taken one, if nothing has it */
	bool renumbered;
	bool apart;
};

static void giver_done(struct giver *g)
{
	free(g->taken);
}

static size_t place_of(const struct giver *g, uint64_t ino)
{
	size_t low = 0, high = g->n;

	while (low < high) {
		const size_t mid = (low + high) / 2;

		if (g->all[mid] < ino)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static uint64_t give(struct giver *g, uint64_t ino)
{
	const size_t at = place_of(g, ino);
	size_t spare;

	if (ino != 0 && !g->taken[at]) {
		g->taken[at] = true;
		return ino;
	}
	g->renumbered = true;
	do {
		ino = g->spare--;
		spare = place_of(g, ino);
	} while (spare < g->n && g->all[spare] == ino);
	return ino;
}

/* `ino` 0 in a linked file: it has none yet. */
static void give_item(struct giver *g, struct item *item)
{
	if (item->kind == ITEM_ABSENT)
		return;
	if (item->kind != ITEM_LINKED) {
		item->ino = give(g, item->ino);
		return;
	}
	if (item->linked->ino == 0)
		item->linked->ino =
		    give(g, capture_number(g->apart, (uint64_t)item->linked->id.ino));
}

/* Those in a directory by their names, then those in the directories in it. */
static int give_all(struct walk *w, struct giver *g)
{
	CLEANUP(buf_done) struct buf todo = BUF_INIT;
	const struct dir *d = w->top.node->dir;
	int r;

	give_item(g, &w->top);
	r = buf_append(&todo, &d, sizeof(d));
	while (r >= 0 && todo.len > 0) {
		todo.len -= sizeof(d);
		memcpy(&d, todo.data + todo.len, sizeof(d));
		for (size_t i = 0; i < d->n_items; i++)
			give_item(g, &d->items[i]);
		for (size_t i = d->n_items; r >= 0 && i-- > 0;)
			if (d->items[i].kind == ITEM_DIR)
				r = buf_append(&todo, &d->items[i].node->dir, sizeof(d));
	}
	return r;
}

int inos_give(struct walk *w, struct err *err)
{
	CLEANUP(buf_done) struct buf inos = BUF_INIT;
	CLEANUP(giver_done) struct giver g = { .apart = w->links.apart };
	struct linked *l;
	int r = gather_sorted(w, &inos, err);

	if (r < 0)
		return r;
	g.spare = g.apart ? 2 * CAPTURE_APART - 1 : INT64_MAX;
	g.all = (const uint64_t *)(const void *)inos.data;
	g.n = inos.len / sizeof(*g.all);
	g.taken = calloc(g.n + 1, sizeof(*g.taken));
	if (!g.taken)
		return err_nomem(err);
	for (size_t pos = 0; (l = map_next(&w->links.files, &pos));)
		l->ino = 0;
	if (give_all(w, &g) < 0)
		return err_nomem(err);
	return g.renumbered;
}
