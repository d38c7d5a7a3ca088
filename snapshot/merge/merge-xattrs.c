#include <stdlib.h>

#include "base/bytes.h"
#include "base/vec.h"
#include "cowfs/store/xattrs.h"
#include "snapshot/merge/merge-i.h"

struct sets {
	struct buf bytes[VERSIONS];
	struct xattr *list; /* owned; the wanted attributes, borrowed from the sets */
	size_t n, cap;
};

static void sets_done(struct sets *s)
{
	for (int v = 0; v < VERSIONS; v++)
		buf_done(&s->bytes[v]);
	free(s->list);
}

static bool same(const struct xattr *a, const struct xattr *b)
{
	if (!a || !b)
		return !a && !b;
	return bytes_compare(a->value, a->value_len, b->value, b->value_len) == 0;
}

static int want(struct sets *s, const struct xattr *x, struct err *err)
{
	if (!x)
		return 0;
	if (!VEC_ROOM(s->list, s->n, s->cap))
		return err_nomem(err);
	s->list[s->n++] = *x;
	return 0;
}

/* One name; 1 if both changed it, each in its way. */
static int merge_one(struct sets *s, const char *name, size_t len, bool theirs_first,
		     struct err *err)
{
	struct xattr found[VERSIONS];
	const struct xattr *x[VERSIONS];
	bool clash;
	int r;

	for (int v = 0; v < VERSIONS; v++)
		x[v] = xattrs_find(&s->bytes[v], name, len, &found[v]) ? &found[v] : NULL;
	clash = !same(x[OURS], x[THEIRS]) && !same(x[BASE], x[OURS]) && !same(x[BASE], x[THEIRS]);
	if (clash)
		r = want(s, x[theirs_first ? THEIRS : OURS], err);
	else
		r = want(s, same(x[BASE], x[OURS]) ? x[THEIRS] : x[OURS], err);
	return r < 0 ? r : clash;
}

static int load_xattrs(const struct merging *m, const struct object_id *id, struct buf *out,
		       struct err *err)
{
	const struct buf *kept = fresh_get(m, OBJECT_XATTRS, id);

	if (!kept)
		return xattrs_get(m->store, id, out, err);
	return buf_append(out, kept->data, kept->len) < 0 ? err_nomem(err) : 0;
}

static int put(struct merging *m, const struct sets *s, bool keep, struct object_id *ret,
	       struct err *err)
{
	CLEANUP(buf_done) struct buf bytes = BUF_INIT;
	int r = xattrs_put(m->batch, s->list, s->n, ret, err);

	if (r < 0 || !keep)
		return r;
	r = xattrs_encode(s->list, s->n, &bytes, err);
	return r < 0 ? r : fresh_keep(m, OBJECT_XATTRS, ret, bytes.data, bytes.len, err);
}

int merge_xattrs(struct merging *m, const char *path, const struct object_id id[VERSIONS],
		 bool keep, struct object_id *ret, struct err *err)
{
	CLEANUP(sets_done) struct sets s = { 0 };
	const bool theirs_first = merge_wants_theirs(m, path);
	struct xattr x;
	bool clash = false;
	int r = 0;

	for (int v = 0; v < VERSIONS && r >= 0; v++)
		r = load_xattrs(m, &id[v], &s.bytes[v], err);
	for (int v = OURS; v < VERSIONS && r >= 0; v++) {
		for (size_t pos = 0; r >= 0 && xattrs_next(&s.bytes[v], &pos, &x);) {
			struct xattr seen;

			if (v == THEIRS && xattrs_find(&s.bytes[OURS], x.name, x.name_len, &seen))
				continue;
			r = merge_one(&s, x.name, x.name_len, theirs_first, err);
			clash |= r > 0;
		}
	}
	if (r < 0)
		return r;
	r = put(m, &s, keep, ret, err);
	return r < 0 ? r : clash;
}
