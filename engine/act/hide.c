#include "engine/act/hide-i.h"

#include <errno.h>
#include <string.h>

#include "engine/find/hidden-i.h"
#include "engine/host/host-i.h"

static int put(struct batch *b, const struct hidden *h, struct err *err)
{
	if (h->numbers.n + h->dirs.n > RECORD_NUMBERS_MAX)
		return err_set(err, -E2BIG,
			       "more than %d files were hidden from runs of clone '%s': promote "
			       "its changes and make a new clone of the project",
			       RECORD_NUMBERS_MAX, h->clone);
	return hidden_put(b, h, err);
}

int hide_add(struct task *task, const char *name, const struct hidden *more, struct err *err)
{
	CLEANUP(turn_give_p) struct turn *turn = NULL;
	CLEANUP(clone_done) struct clone clone = { 0 };
	CLEANUP(hidden_done) struct hidden h = { 0 };
	CLEANUP(batch_end_p) struct batch *b = NULL;
	struct store *s = task->host->store;
	int r = turns_take(&task->host->turns, name, &turn, err);

	r = r < 0 ? r : clone_find(s, name, &clone, err);
	r = r < 0 ? r : hidden_load(s, &clone, &h, err);
	if (r < 0)
		return r;
	r = hidden_add(&h, more);
	if (r < 0)
		return err_nomem(err);
	if (r == 0)
		return 0;
	r = batch_begin(s, &b, err);
	r = r < 0 ? r : put(b, &h, err);
	return r < 0 ? r : batch_commit(b, BATCH_SAFE, err);
}

int hide_inherit(struct store *s, struct batch *b, const struct snapshot *start,
		 const struct clone *clone, struct err *err)
{
	CLEANUP(hidden_done) struct hidden there = { 0 };
	CLEANUP(hidden_done) struct hidden own = { 0 };
	int r = hidden_load_of(s, start, &there, err);

	if (r <= 0)
		return r;
	r = hidden_load(s, clone, &own, err);
	if (r < 0)
		return r;
	r = hidden_add(&own, &there);
	if (r < 0)
		return err_nomem(err);
	return r > 0 ? put(b, &own, err) : 0;
}

/* A snapshot of it that stays still has the files.  One that was fetched under its name has a list of its own. */
static int leave_to_snapshots(struct batch *b, const struct hidden *h, const struct forget *f,
			      struct err *err)
{
	int r = 0;

	for (size_t i = 0; i < f->n && r >= 0; i++)
		if (f->list[i].stays)
			r = hidden_put_of(b, &f->list[i].id, h, err);
	return r;
}

int hide_forget(struct store *s, struct batch *b, const struct clone *clone,
		const struct forget *snapshots, struct err *err)
{
	CLEANUP(hidden_done) struct hidden h = { 0 };
	int r = hidden_get(s, clone->name, &h, err);
	const bool damaged = r == -EBADMSG;

	if (r == -ENOENT)
		return 0;
	if (r >= 0 && h.created == clone->created)
		r = leave_to_snapshots(b, &h, snapshots, err);
	if (r < 0 && !damaged)
		return r;
	r = ref_delete(b, REF_HIDDEN, clone->name, strlen(clone->name), err);
	return r < 0 ? r : damaged;
}
