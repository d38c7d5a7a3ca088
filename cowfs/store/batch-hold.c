#include <errno.h>
#include <string.h>

#include "base/vec.h"
#include "cowfs/store/batch-i.h"

void pending_object_unref(struct store *s, struct pending_object *p)
{
	if (--p->refs > 0)
		return;
	if (!p->stored.seq)
		map_remove(&s->pending, &p->what);
	free(p);
}

void batch_let_go(struct batch *b, struct pending_object *p)
{
	/* The address of this batch may be another's one day. */
	if (p->last == b)
		p->last = NULL;
	pending_object_unref(b->store, p);
}

void batches_keep(struct store *s, struct marks *m)
{
	for (struct batch *b = s->batches; b; b = b->next) {
		for (size_t i = 0; i < b->n_touched; i++)
			marks_keep(m, b->touched[i]);
		for (size_t i = 0; i < b->n_held; i++)
			if (b->held[i]->stored.seq)
				marks_keep(m, b->held[i]->stored);
	}
}

/* lock held */
static int hold(struct batch *b, struct pending_object *p)
{
	if (p->last == b)
		return 0;
	if (!VEC_ROOM(b->held, b->n_held, b->cap_held))
		return -ENOMEM;
	b->held[b->n_held++] = p;
	p->refs++;
	p->last = b;
	if (!p->stored.seq)
		b->pending_bytes[table_of(p->what.kind)] += p->len;
	return 0;
}

/* Depend on a row of the database.  lock held */
static int touch(struct batch *b, struct row row)
{
	if (!VEC_ROOM(b->touched, b->n_touched, b->cap_touched))
		return -ENOMEM;
	b->touched[b->n_touched++] = row;
	return 0;
}

int batch_touch_found(struct batch *b, struct row row, uint64_t gcs_ended)
{
	struct store *s = b->store;
	int r = 0;

	LOCKED(&s->lock);
	if (s->gcs_ended == gcs_ended && (!s->marks || marks_keep(s->marks, row)))
		r = touch(b, row) < 0 ? -ENOMEM : 1;
	return r;
}

/* lock held */
static int hold_and_ref(struct batch *b, struct pending_object *p)
{
	if (hold(b, p) < 0)
		return -ENOMEM;
	p->refs++;
	return 0;
}

int batch_take_pending(struct batch *b, const struct object_ref *key, struct pending_object **ret,
		       uint64_t *ret_gcs_ended)
{
	struct store *s = b->store;
	int r = 0;

	LOCKED(&s->lock);
	*ret_gcs_ended = s->gcs_ended;
	*ret = map_get(&s->pending, key);
	if (*ret)
		r = hold_and_ref(b, *ret) < 0 ? -ENOMEM : 1;
	return r;
}

int batch_make_pending(struct batch *b, const struct object_ref *key, const struct buf *packed,
		       struct pending_object **ret)
{
	struct store *s = b->store;
	AUTO_FREE struct pending_object *p = malloc(sizeof(*p) + packed->len);
	void *there = NULL;
	int r;

	if (!p)
		return -ENOMEM;
	*p = (struct pending_object){ .what = *key, .len = packed->len };
	memcpy(p->packed, packed->data, p->len);

	LOCKED(&s->lock);
	r = map_add(&s->pending, &p->what, p, &there);
	if (r == 1) {
		*ret = there;
		r = hold_and_ref(b, there);
	} else if (r == 0 && hold(b, p) < 0) {
		map_remove(&s->pending, &p->what);
		r = -ENOMEM;
	} else if (r == 0) {
		b->appended += p->len;
		TAKE_PTR(p);
		r = 1;
	}
	return r;
}

void batch_settle(struct batch *b, struct pending_object **stored, const struct row *rows, size_t n)
{
	struct store *s = b->store;
	size_t kept = 0;

	LOCKED(&s->lock);
	for (size_t i = 0; i < n; i++) {
		map_remove(&s->pending, &stored[i]->what);
		stored[i]->stored = rows[i];
		/* An insert that met an existing row relies on an old one.  invariant 5 */
		if (s->marks)
			marks_keep(s->marks, rows[i]);
	}
	memset(b->pending_bytes, 0, sizeof(b->pending_bytes));
	for (size_t i = 0; i < b->n_held; i++) {
		struct pending_object *p = b->held[i];

		/* Where memory is short the object itself goes on doing. */
		if (p->stored.seq && touch(b, p->stored) == 0) {
			batch_let_go(b, p);
			continue;
		}
		if (!p->stored.seq)
			b->pending_bytes[table_of(p->what.kind)] += p->len;
		b->held[kept++] = p;
	}
	b->n_held = kept;
}
