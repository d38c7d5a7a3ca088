#include <errno.h>
#include <string.h>

#include "base/vec.h"
#include "engine/api/diff.h"
#include "engine/experiment/experiment-i.h"
#include "engine/find/digest-i.h"

static int see_delta(const struct engine_state *from, const struct engine_state *to,
		     const struct delta *delta, void *ctx, struct err *err)
{
	*(bool *)ctx = delta->n_files + delta->n_notes > 0;
	return 0;
}

/* 1 if the clone is still as its arm left it. */
static int is_unedited(struct engine *e, const struct engine_arm *arm, struct err *err)
{
	bool differs = true;
	const struct engine_diff_sink sink = { .begin = see_delta, .ctx = &differs };
	int r = engine_diff(
	    e,
	    &(struct engine_diff_options){ .a = arm->result, .b = arm->clone, .no_renames = true },
	    &sink, err);

	return r < 0 ? r : !differs;
}

/* 1 if the state is what the arm left. */
static int is_result(struct engine *e, const struct engine_arm *arm, const char *state,
		     struct err *err)
{
	CLEANUP(snapshot_done) struct snapshot left = { 0 }, now = { 0 };
	char sha256[65];
	struct store *s;
	int r = engine_store(e, STORE_READ, &s, err);

	if (r >= 0)
		r = snapshot_find(s, arm->result, &left, err);
	if (r >= 0)
		r = snapshot_find(s, state, &now, err);
	if (r == -ENOENT)
		return 0;
	if (r >= 0)
		r = digest_trees(s, &left.root, &now.root, sha256, err);
	return r < 0 ? r : r > 0;
}

static const char *standing_of(const struct engine_experiment *x, const struct engine_arm *arm)
{
	if (x->winner && strcmp(x->winner, arm->name) == 0)
		return "won";
	for (size_t i = 0; i < x->n_tie; i++)
		if (strcmp(x->tie[i], arm->name) == 0)
			return "tie";
	return "lost";
}

int engine_experiment_standing(struct engine *e, const char *clone, const char *state,
			       struct engine_standing *ret, struct err *err)
{
	CLEANUP(engine_experiments_done) struct engine_experiments all = { 0 };
	const struct engine_arm *arm = NULL;
	const struct engine_experiment *x = NULL;
	int r = engine_experiments(e, true, &all, err);

	*ret = (struct engine_standing){ .standing = "none" };
	for (size_t i = 0; r >= 0 && i < all.n && !arm; i++) {
		x = &all.list[i];
		arm = VEC_FIND(it, x->arms, x->n_arms, it->clone && strcmp(it->clone, clone) == 0);
	}
	if (r < 0 || !arm || x->state != ENGINE_EXPERIMENT_ENDED || *arm->result == '\0')
		return r < 0 ? r : 0;
	r = state ? is_result(e, arm, state, err) : is_unedited(e, arm, err);
	if (r <= 0)
		return r;
	ret->standing = standing_of(x, arm);
	ret->scored = arm->scored;
	ret->score = arm->score;
	return 0;
}
