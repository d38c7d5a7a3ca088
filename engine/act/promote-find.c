/*
 * promote-find.c - find the clone of a promotion, and the promotion of an undo.
 */
#include <errno.h>
#include <string.h>

#include "engine/act/hold-i.h"
#include "engine/act/promoting-i.h"
#include "engine/find/image-i.h"

/* A snapshot of the clone, taken while it had the base that it has now, or the one that it started as. */
static int find_saved(struct promoting *p, struct err *err)
{
	const char *state = p->options->asked->state;
	struct held held;
	int r = hold_state(p->task, state, &p->options->asked->watch, &held, err);

	if (r < 0)
		return r;
	r = state_resolve(&p->task->engine, p->store, state, &p->theirs, err);
	if (r < 0)
		return r;
	if (catalog_id_same(&p->theirs.id, clone_start(&p->clone))) {
		p->theirs_root = p->theirs.root;
		return 0;
	}
	if (!p->theirs.clone || strcmp(p->theirs.clone, p->clone.name) != 0 ||
	    p->theirs.created < p->clone.created)
		return err_set(err, -EINVAL, "'%s' is no snapshot of clone '%s'", state,
			       p->clone.name);
	if (!catalog_id_same(&p->theirs.base, &p->clone.base))
		return err_set(err, -ESTALE, "clone '%s' had another base when '%s' was taken",
			       p->clone.name, state);
	p->theirs_root = p->theirs.root;
	return 0;
}

int promoting_find_clone(struct promoting *p, struct err *err)
{
	struct held held;
	int r = clone_meant(&p->task->engine, p->store, p->options->asked->clone, &p->clone, err);

	if (r < 0)
		return r;
	r = clone_origin(p->store, &p->clone, &p->project, &p->base, err);
	if (r >= 0)
		r = image_refuse(&p->clone, &p->project, "promoted to", err);
	if (r < 0)
		return r;
	if (p->options->asked->state)
		return find_saved(p, err);
	r = hold_clone(p->task, p->clone.name, &held, err);
	if (r < 0)
		return r;
	p->theirs_root = held.root;
	return r;
}

/* Load a snapshot of the receipt; somebody may have removed it since. */
static int find_state(struct promoting *p, const struct catalog_id *id, struct snapshot *ret,
		      struct err *err)
{
	char hex[CATALOG_HEX_SIZE], of[CATALOG_HEX_SIZE];
	int r = snapshot_get(p->store, id, ret, err);

	if (r == -ENOENT)
		return err_set(err, r, "%s cannot be undone: its snapshot %s was removed",
			       catalog_id_hex(&p->undoes.id, of), catalog_id_hex(id, hex));
	return r;
}

/* Does this undo, through a chain of undos, concern a rollback? */
static int is_of_rollback(struct promoting *p, struct err *err)
{
	struct catalog_id next = p->undoes.undoes;
	uint64_t kind = p->undoes.kind;
	int r = 0;

	while (kind == RECEIPT_UNDO && !catalog_id_is_zero(&next) && r >= 0) {
		CLEANUP(receipt_done) struct receipt of = { 0 };

		r = receipt_get(p->store, &next, &of, err);
		kind = of.kind;
		next = of.undoes;
	}
	p->with_git = kind == RECEIPT_ROLLBACK;
	return r == -ENOENT ? 0 : r;
}

int promoting_find_project(struct promoting *p, struct err *err)
{
	AUTO_FREE char *here = p->options->receipt ? NULL : clone_here(&p->task->engine);

	if (here)
		return err_set(err, -EINVAL,
			       "this is clone '%s', and 'undo' is for projects: 'rollback' takes a "
			       "clone back",
			       here);
	return project_around(&p->task->engine, p->store, &p->project, err);
}

int promoting_find_undone(struct promoting *p, struct err *err)
{
	struct held held;
	char hex[CATALOG_HEX_SIZE];
	int r = receipt_find(p->store, &p->project, p->options->receipt, &p->undoes, err);

	if (r < 0)
		return r;
	if (!catalog_id_same(&p->undoes.target, &p->target.id))
		return err_set(err, -EBUSY, "something else was promoted just now");
	r = is_of_rollback(p, err);
	if (r < 0)
		return r;
	r = find_state(p, &p->undoes.after, &p->base, err);
	if (r < 0)
		return r;
	r = find_state(p, &p->undoes.before, &p->theirs, err);
	if (r < 0)
		return r;
	r = hold_state(p->task, catalog_id_hex(&p->theirs.id, hex), &p->options->asked->watch,
		       &held, err);
	if (r < 0)
		return r;
	p->theirs_root = p->theirs.root;
	catalog_id_hex(&p->undoes.id, p->result.undone);
	return 0;
}
