/*
 * Arms inside of arms: the walk through all levels, what is inherited, what is refused.
 */
#include "tests/lib/test.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/api/matrix.h"
#include "engine/experiment/experiment-i.h"

/* "a" with "b", which has "c" and "d" inside, and "e"; then "f". */
static void build(struct engine_experiment *x)
{
	struct err err = { 0 };

	engine_experiment_init(x);
	CHECK_OK(engine_experiment_add(x, "a=make", &err), &err);
	CHECK_OK(engine_experiment_add(x, "f=make f", &err), &err);
	CHECK_OK(inner_add(&x->arms[0], &err), &err);
	CHECK_OK(engine_experiment_add(x->arms[0].inner, "b=make b", &err), &err);
	CHECK_OK(engine_experiment_add(x->arms[0].inner, "e=make e", &err), &err);
	CHECK_OK(inner_add(&x->arms[0].inner->arms[0], &err), &err);
	CHECK_OK(engine_experiment_add(x->arms[0].inner->arms[0].inner, "c=make c", &err), &err);
	CHECK_OK(engine_experiment_add(x->arms[0].inner->arms[0].inner, "d=make d", &err), &err);
}

/* What a completed plan has. */
static void name(struct engine_experiment *x)
{
	x->name = strdup("x");
	x->project = strdup("/p");
	x->cwd = strdup("/p/sub");
	x->owner = 7;
	CHECK(x->name && x->project && x->cwd);
}

TEST(a_walk_goes_through_all_levels_in_order)
{
	CLEANUP(engine_experiment_done) struct engine_experiment x = { 0 };
	char all[400] = "", path[ENGINE_ARM_PATH_SIZE];
	struct engine_arms_walk walk;
	size_t len = 0;

	build(&x);
	walk = engine_arms_walk(&x);
	for (const struct engine_arm *arm; (arm = engine_arms_next(&walk));) {
		len += (size_t)snprintf(all + len, sizeof(all) - len, "%s:%zu ",
					engine_arms_path(&walk, path), walk.level);
		CHECK(walk.in[walk.level]->arms <= arm &&
		      arm < walk.in[walk.level]->arms + walk.in[walk.level]->n_arms);
	}
	CHECK_STR(all, "a:0 a/b:1 a/b/c:2 a/b/d:2 a/e:1 f:0 ");
	CHECK(engine_arms_next(&walk) == NULL);
	CHECK_EQ(engine_arms_count(&x), 6);
}

TEST(a_walk_through_nothing_ends_at_once)
{
	const struct engine_experiment x = { 0 };
	struct engine_arms_walk walk = engine_arms_walk(&x);

	CHECK(engine_arms_next(&walk) == NULL);
}

TEST(a_matrix_counts_what_is_inside)
{
	CLEANUP(engine_matrix_done) struct engine_matrix m = { 0 };
	struct err err = { 0 };
	char text[20];

	CHECK_OK(engine_matrix_axis(&m, "v", &err), &err);
	/* Six arms at all levels, so many times. */
	for (int n = 1; n <= ENGINE_ARMS_MAX / 6 + 1; n++) {
		CLEANUP(engine_experiment_done) struct engine_experiment x = { 0 };
		const bool fits = n <= ENGINE_ARMS_MAX / 6;

		snprintf(text, sizeof(text), "%d", n);
		CHECK_OK(engine_matrix_value(&m, text, &err), &err);
		build(&x);
		CHECK_EQ(engine_matrix_apply(&m, &x, &err), fits ? 0 : -EINVAL);
		CHECK(engine_arms_count(&x) <= ENGINE_ARMS_MAX);
	}
}

TEST(what_is_inside_has_all_else_from_the_whole)
{
	CLEANUP(engine_experiment_done) struct engine_experiment x = { 0 };
	const struct engine_experiment *inner, *deepest;
	struct err err = { 0 };

	build(&x);
	name(&x);
	CHECK_OK(engine_experiment_set(&x, ENGINE_ARM_PROFILE, "a:strict", &err), &err);
	CHECK_OK(engine_experiment_set(&x, ENGINE_ARM_ENV, "a:V=1", &err), &err);
	x.limits.mem = 100;
	x.limits.time_ms = 0; /* none */
	x.limits.disk = 50;
	x.arms[0].inner->limits.mem = 200;
	x.arms[0].inner->limits.time_ms = 30;
	x.arms[0].inner->limits.disk = 0;
	x.arms[0].inner->limits.pids = 5;
	x.arms[0].inner->arms[0].inner->limits.pids = 6;
	CHECK_OK(engine_experiment_score(x.arms[0].inner, "time:./bench", &err), &err);
	CHECK_OK(inner_check(&x, &err), &err);
	CHECK_OK(inner_complete(&x, &err), &err);

	inner = x.arms[0].inner;
	deepest = inner->arms[0].inner;
	CHECK_STR(inner->name, "x/a");
	CHECK_STR(deepest->name, "x/a/b");
	CHECK_STR(deepest->profile, "strict");
	CHECK_STR(deepest->cwd, "/p/sub");
	CHECK_EQ(deepest->owner, 7);
	CHECK_EQ(deepest->n_env, 1);
	CHECK_STR(deepest->env[0], "V=1");
	/* A limit can be narrowed inside, and no more than that. */
	CHECK_EQ(inner->limits.mem, 100);
	CHECK_EQ(inner->limits.time_ms, 30);
	CHECK_EQ(inner->limits.disk, 50);
	CHECK_EQ(deepest->limits.mem, 100);
	CHECK_EQ(deepest->limits.time_ms, 30);
	CHECK_EQ(deepest->limits.pids, 5);
	CHECK(deepest->limits.fsize == ENGINE_UNSAID);
	CHECK_EQ(inner->rounds, 5);
	CHECK_EQ(deepest->rounds, 1);
}

TEST(a_copy_of_an_arm_has_the_same_inside)
{
	CLEANUP(engine_experiment_done) struct engine_experiment x = { 0 }, y = { 0 };
	struct engine_arm *arm;
	struct err err = { 0 };

	build(&x);
	CHECK_OK(engine_experiment_score(x.arms[0].inner, "size:out", &err), &err);
	x.arms[0].inner->limits.mem = 9;
	engine_experiment_init(&y);
	CHECK_OK(experiment_add_arm(&y, "copy", 4, &arm, &err), &err);
	CHECK_OK(arm_copy_plan(arm, &x.arms[0], &err), &err);
	CHECK_EQ(engine_arms_count(&y), 5);
	CHECK_EQ(arm->inner->limits.mem, 9);
	CHECK_STR(arm->inner->score_of, "out");
	CHECK_STR(arm->inner->arms[0].inner->arms[1].command, "make d");
}

TEST(what_cannot_be_tried_is_refused)
{
	CLEANUP(engine_experiment_done) struct engine_experiment x = { 0 };
	struct engine_experiment *deepest;
	struct err err = { 0 };

	build(&x);
	deepest = x.arms[0].inner->arms[0].inner;
	CHECK_OK(inner_check(&x, &err), &err);
	x.repeat = 2;
	CHECK_EQ(inner_check(&x, &err), -EINVAL);
	x.repeat = 1;
	x.score = ENGINE_SCORE_TIME;
	CHECK_EQ(inner_check(&x, &err), -EINVAL);
	CHECK(strstr(err.msg, "time:COMMAND"));
	x.score = ENGINE_SCORE_LINES;
	CHECK_OK(inner_check(&x, &err), &err);
	CHECK_OK(inner_add(&deepest->arms[0], &err), &err);
	CHECK_OK(engine_experiment_add(deepest->arms[0].inner, "g=make g", &err), &err);
	CHECK_EQ(inner_check(&x, &err), -EINVAL);
	CHECK(strstr(err.msg, "levels deep"));
	CHECK_EQ(inner_add(&x.arms[0], &err), -EINVAL);
}

TEST_MAIN("inner")
