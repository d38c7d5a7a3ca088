#include <errno.h>

#include "cowfs/store/upkeep/check-walk-i.h"

/* 1 if the finding comes up for the first time here: a file may hold one block many times. */
static int first_here(struct check_walk *w, size_t finding, struct err *err)
{
	const size_t need = (finding + 1) * sizeof(w->place);
	uint64_t *last;

	if (w->blamed.len < need && buf_append_zero(&w->blamed, need - w->blamed.len) < 0)
		return err_nomem(err);
	last = (uint64_t *)w->blamed.data + finding;
	if (*last == w->place)
		return 0;
	*last = w->place;
	return 1;
}

int walk_blame(struct check_walk *w, size_t finding, struct err *err)
{
	struct bad_link bad = { .finding = finding };
	int r;

	if (w->depth > 0)
		w->stack[w->depth - 1].trouble = true;
	if (w->in_links && !w->link_entry) {
		w->links.broken = true;
		w->links.finding = finding;
		return 0;
	}
	r = first_here(w, finding, err);
	if (r <= 0)
		return r;
	if (w->in_links) {
		bad.ino = w->link_entry->ino;
		return buf_append(&w->links.bad, &bad, sizeof(bad)) < 0 ? err_nomem(err) : 0;
	}
	return check_add_path(w->c, finding, (const char *)w->path.data, w->path.len, err);
}

/* What was asked of the database failed, or found nothing. */
static int lost(struct check_walk *w, enum object_kind kind, const struct object_id *id, int r,
		const struct err *why, struct err *err)
{
	size_t finding;

	if (r < 0 && r != -EBADMSG && r != -EIO)
		return err_set(err, r, "%s", why->msg);
	r = check_add_object(w->c, kind, id, r < 0 ? why->msg : "it is missing", &finding, err);
	return r < 0 ? r : walk_blame(w, finding, err);
}

int walk_visit(struct check_walk *w, enum object_kind kind, const struct object_id *id,
	       struct row *ret, struct err *err)
{
	struct bad_object *bad = check_bad(w->c, kind, id);
	struct err why = { 0 };
	int r;

	if (bad)
		return walk_blame(w, bad->finding, err);
	r = reader_find(w->c->rd, kind, id, ret, &why);
	return r > 0 ? 1 : lost(w, kind, id, r, &why, err);
}

int walk_fetch(struct check_walk *w, enum object_kind kind, const struct object_id *id,
	       struct buf *out, struct err *err)
{
	struct reader *rd = w->c->rd;
	struct err why = { 0 };
	struct row row;
	int r = object_fetch(rd->db[table_of(kind)], rd->codec, kind, id, out, &row, &why);

	return r > 0 ? 1 : lost(w, kind, id, r, &why, err);
}

int walk_contradiction(struct check_walk *w, enum object_kind kind, const struct object_id *id,
		       const char *why, struct err *err)
{
	size_t finding;
	int r = check_add_about(w->c, kind, id, why, &finding, err);

	return r < 0 ? r : walk_blame(w, finding, err);
}

int walk_link_flaw(struct check_walk *w, const char *why, struct err *err)
{
	size_t finding;
	int r = check_add_once(w->c, "hard link", why, &finding, err);

	return r < 0 ? r : walk_blame(w, finding, err);
}
