/*
 * The batch is never committed: the objects of the merge go with it.
 */
#include "engine/act/acts-i.h"
#include "engine/find/conflicts-i.h"
#include "engine/wire/wire-i.h"

static bool is_not_git(const char *path, void *unused)
{
	size_t len;

	return !conflicts_is_git(path, &len);
}

int merge_find(struct task *task, const struct merge_ask *asked, struct merge_told *ret,
	       struct err *err)
{
	CLEANUP(merge_told_done) struct merge_told told = { 0 };
	CLEANUP(merge_done) struct merge m = { 0 };
	CLEANUP(batch_end_p) struct batch *b = NULL;
	const struct resolve_set none = { 0 };
	const struct conflict_names names = { asked->base_name, asked->our_name,
					      asked->their_name };
	const struct merge_options options = {
		.on_conflict = MERGE_STOP,
		.label_base = asked->base_name,
		.label_ours = asked->our_name,
		.label_theirs = asked->their_name,
		.take = is_not_git,
		.now = engine_now(),
	};
	struct store *s;
	int r = engine_store(&task->engine, STORE_WRITE, &s, err);

	if (r < 0)
		return r;
	r = batch_begin(s, &b, err);
	if (r < 0)
		return r;
	r = merge_trees(b, &asked->base.root, &asked->ours.root, &asked->theirs.root, &options, &m,
			err);
	if (r < 0)
		return r;
	told.merged = m.n_merged;
	r = conflicts_tell(&m, &none, &names, &told.conflicts, &told.n_conflicts, err);
	if (r < 0)
		return r;
	r = conflicts_show(s, &m, &options, told.conflicts, err);
	if (r < 0)
		return r;
	*ret = TAKE_STRUCT(told);
	return 0;
}
