/*
 * A file with several names is damaged at its entry in the links tree, which is therefore walked
 * before the directories; the names that lead to it are added when the walk meets them. One links
 * tree is kept at a time, as a list of inode numbers: refs that share one are mostly adjacent.
 *
 * The number of names of a file is not compared with its nlink: sound directories are walked once
 * for all places where they occur, so names are not counted.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cowfs/store/upkeep/check-walk-i.h"

static int by_ino(const void *a, const void *b)
{
	uint64_t x, y;

	memcpy(&x, a, sizeof(x));
	memcpy(&y, b, sizeof(y));
	return (x > y) - (x < y);
}

void check_links_done(struct check_links *l)
{
	buf_done(&l->inos);
	buf_done(&l->bad);
}

void check_links_begin(struct check_links *l)
{
	buf_reset(&l->inos);
	buf_reset(&l->bad);
	l->no++;
	l->top = NULL;
	l->broken = false;
}

void check_links_end(struct check_links *l, const struct object_id *id)
{
	if (l->inos.len > 0)
		qsort(l->inos.data, l->inos.len / sizeof(uint64_t), sizeof(uint64_t), by_ino);
	if (l->bad.len > 0)
		qsort(l->bad.data, l->bad.len / sizeof(struct bad_link), sizeof(struct bad_link),
		      by_ino);
	l->id = *id;
}

int check_links_add(struct check_walk *w, const struct tree_entry *e, struct err *err)
{
	char name[ROOT_LINK_NAME_SIZE];
	struct err why = { 0 };

	root_link_name(e->ino, name);
	if (tree_name_compare(e->name, e->name_len, name, strlen(name)) != 0) {
		err_set(&why, -EBADMSG,
			"the file with inode %" PRIu64 " stands among the links under another name",
			e->ino);
		return walk_link_flaw(w, why.msg, err);
	}
	if (buf_append_u64(&w->links.inos, 0) < 0)
		return err_nomem(err);
	memcpy(w->links.inos.data + w->links.inos.len - sizeof(e->ino), &e->ino, sizeof(e->ino));
	if (e->form == TREE_LINK || e->form == TREE_DIR)
		err_set(&why, -EBADMSG,
			"what stands among the links for inode %" PRIu64 " is not that file",
			e->ino);
	else if (e->nlink == 0)
		err_set(&why, -EBADMSG,
			"the file with inode %" PRIu64 " stands among the links and has no names",
			e->ino);
	else
		return 0;
	return walk_link_flaw(w, why.msg, err);
}

/* The first bad link that is not below `ino`. */
static size_t find_bad(const struct bad_link *bad, size_t n, uint64_t ino)
{
	size_t low = 0, high = n;

	while (low < high) {
		const size_t mid = low + (high - low) / 2;

		if (bad[mid].ino < ino)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

int walk_link(struct check_walk *w, uint64_t ino, struct err *err)
{
	const struct check_links *l = &w->links;
	const struct bad_link *bad = (const struct bad_link *)l->bad.data;
	const size_t n_bad = l->bad.len / sizeof(*bad);
	struct err why = { 0 };
	int r;

	w->stack[w->depth - 1].linked = true;
	for (size_t i = find_bad(bad, n_bad, ino); i < n_bad && bad[i].ino == ino; i++) {
		r = walk_blame(w, bad[i].finding, err);
		if (r < 0)
			return r;
	}
	if (l->inos.len > 0 &&
	    bsearch(&ino, l->inos.data, l->inos.len / sizeof(ino), sizeof(ino), by_ino))
		return 0;
	if (l->broken)
		return walk_blame(w, l->finding, err);
	err_set(&why, -EBADMSG, "the file with inode %" PRIu64 " is not among the links", ino);
	return walk_link_flaw(w, why.msg, err);
}
