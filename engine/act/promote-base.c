#include "base/text.h"
#include "cowfs/store/pin.h"
#include "cowfs/store/root.h"
#include "engine/act/deliver-i.h"
#include "engine/act/promoting-i.h"
#include "snapshot/diff/changes.h"

/*
 * What has landed is no longer the clone's own change: its new base is the old one with the landed
 * paths as the clone has them.  Not as the project has them: the clone lacks the project's own
 * changes, so it would seem to have reverted them.
 */
static int merge_next_base(struct promoting *p, struct object_id *ret, struct err *err)
{
	CLEANUP(batch_end_p) struct batch *b = NULL;
	CLEANUP(merge_done) struct merge m = { 0 };
	const struct merge_options options = {
		.no_renames = true,
		.take = promoting_takes,
		.take_ctx = p,
		.now = p->now,
	};
	struct changes moved = { 0 };
	int r;

	/* If nobody else changed the project, the next base is what lands. */
	r = changes_count(p->store, &p->base.root, &p->landing.now.root, &moved, err);
	if (r < 0)
		return r;
	if (moved.added + moved.modified + moved.deleted == 0) {
		*ret = p->merge.root;
		return 0;
	}
	r = batch_begin(p->store, &b, err);
	if (r < 0)
		return r;
	r = merge_trees(b, &p->base.root, &p->base.root, &p->theirs_root, &options, &m, err);
	if (r < 0)
		return r;
	r = batch_commit(b, BATCH_SAFE, err);
	if (r < 0)
		return r;
	r = store_pin(p->store, OBJECT_TREE, &m.root, err);
	if (r < 0)
		return r;
	*ret = p->pinned_next = m.root;
	return r;
}

int promoting_next_base(struct promoting *p, struct snapshot *base, char *message, struct err *err)
{
	struct root root;
	int r;

	*base = (struct snapshot){
		.parent = p->base.id,
		.project = p->project.id,
		.clone = p->clone.name,
		.message = message,
		.created = engine_now(),
		.lacks = p->base.lacks,
		.part = p->base.part,
		.made = SNAPSHOT_MADE_AUTOMATICALLY,
	};
	if (base->created <= p->clone.created)
		base->created = p->clone.created + 1;
	r = merge_next_base(p, &base->root, err);
	if (r < 0)
		return r;
	r = root_get(p->store, &base->root, &root, err);
	if (r < 0)
		return r;
	base->files = root.top.below.files;
	base->bytes = root.top.below.bytes + root.in_links.bytes;
	return 0;
}

int promoting_follow(struct promoting *p, struct err *err)
{
	struct changes own = { 0 };
	struct snapshot base;
	int r;

	/* A conflict that was settled for the project leaves the clone with something else. */
	if (!p->clone.name || deliver_is(p) || p->merge.n_conflicts > 0)
		return 0;
	p->said = text_format("promotion of %s", p->clone.name);
	r = p->said ? promoting_next_base(p, &base, p->said, err) : err_nomem(err);
	r = r < 0 ? r : changes_count(p->store, &p->base.root, &base.root, &own, err);
	if (r >= 0 && own.added + own.modified + own.deleted > 0)
		p->followed = base;
	return r;
}
