/*
 * A directory's record follows those of its subdirectories, so one pass from the first to the last
 * finds each directory after everything below it.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/vec.h"
#include "cowfs/store/settle.h"
#include "snapshot/capture/signatures-i.h"

/* Where a record was, and where it is in the draft. */
struct place {
	uint64_t from, to;
};

struct resigning {
	const struct settle *settle;
	struct signatures_draft *draft; /* owned */
	struct buf record;
	struct place *places; /* owned; in order */
	size_t n, cap;
};

static void resigning_done(struct resigning *w)
{
	signatures_draft_free(w->draft);
	buf_done(&w->record);
	free(w->places);
}

static int by_from(const void *a, const void *b)
{
	const uint64_t one = ((const struct place *)a)->from, two = ((const struct place *)b)->from;

	return one < two ? -1 : one > two;
}

/* What was lost is read again, as is a directory whose tree nobody settled. */
static int settle_signature(const struct resigning *w, struct signature *s, struct err *err)
{
	const struct place key = { .from = s->record }, *place;
	int r = settle_entry(w->settle, &s->e, err);

	if (r < 0)
		return r;
	if (r == 0)
		s->trusted = s->whole = false;
	if (s->e.form != TREE_DIR)
		return 0;
	place = w->n == 0 ? NULL : bsearch(&key, w->places, w->n, sizeof(key), by_from);
	if (!place)
		return err_set(err, -EBADMSG, "signatures name a record that comes later");
	s->record = place->to;
	return 0;
}

static int add_names(struct resigning *w, struct signature_iter *it, struct err *err)
{
	struct signature s;
	int r;

	buf_reset(&w->record);
	if (signature_append_count(&w->record, it->left) < 0)
		return err_nomem(err);
	for (; it->left > 0; signature_iter_step(it)) {
		signature_decode(it->next, &s);
		r = settle_signature(w, &s, err);
		if (r < 0)
			return r;
		if (signature_append(&w->record, &s) < 0)
			return err_nomem(err);
	}
	return 0;
}

int signatures_settle(const struct signatures *old, const struct settle *settle,
		      const struct object_id *root, const struct object_key *key,
		      struct signatures **ret, struct err *err)
{
	CLEANUP(resigning_done) struct resigning w = { .settle = settle };
	struct signature_iter it;
	struct signature top;
	size_t at = HEAD_SIZE;
	int r = signatures_draft_new(NULL, &w.draft, err);

	for (; r >= 0 && at < old->top; at = (size_t)(it.next - old->bytes.data)) {
		it = signatures_names(old, at);
		r = add_names(&w, &it, err);
		if (r < 0 || !VEC_ROOM(w.places, w.n, w.cap))
			return r < 0 ? r : err_nomem(err);
		w.places[w.n].from = at;
		if (signatures_draft_add(w.draft, &w.record, &w.places[w.n++].to) < 0)
			return err_nomem(err);
	}
	if (r < 0)
		return r;
	signature_decode(signatures_top(old), &top);
	r = settle_signature(&w, &top, err);
	return r < 0 ? r : signatures_finish(w.draft, &top, root, old->renumbered, key, ret, err);
}
