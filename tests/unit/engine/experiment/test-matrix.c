/*
 * A matrix multiplies arms: names, variables, what is left out, and what is refused.
 */
#include "tests/lib/test.h"

#include <errno.h>
#include <string.h>

#include "engine/api/matrix.h"

TEST(each_combination_is_an_arm_with_its_variables)
{
	CLEANUP(engine_experiment_done) struct engine_experiment x = { 0 };
	CLEANUP(engine_matrix_done) struct engine_matrix m = { 0 };
	struct err err = { 0 };

	engine_experiment_init(&x);
	CHECK_OK(engine_experiment_add(&x, "build=make", &err), &err);
	CHECK_OK(engine_experiment_set(&x, ENGINE_ARM_ENV, "build:A=1", &err), &err);
	CHECK_OK(engine_matrix_add(&m, "cc=gcc,clang", &err), &err);
	CHECK_OK(engine_matrix_add(&m, "opt=O1,O2", &err), &err);
	CHECK_OK(engine_matrix_exclude(&m, "cc=clang,opt=O1", &err), &err);
	CHECK_OK(engine_matrix_apply(&m, &x, &err), &err);
	CHECK_EQ(x.n_arms, 3);
	CHECK_STR(x.arms[0].name, "build,cc=gcc,opt=O1");
	CHECK_STR(x.arms[1].name, "build,cc=gcc,opt=O2");
	CHECK_STR(x.arms[2].name, "build,cc=clang,opt=O2");
	CHECK_STR(x.arms[2].command, "make");
	CHECK_EQ(x.arms[2].n_env, 3);
	CHECK_STR(x.arms[2].env[0], "A=1");
	CHECK_STR(x.arms[2].env[1], "cc=clang");
	CHECK_STR(x.arms[2].env[2], "opt=O2");
	CHECK_OK(engine_experiment_set(&x, ENGINE_ARM_BASE, "build,cc=clang,opt=O2:v1", &err),
		 &err);
	CHECK_STR(x.arms[2].from, "v1");
}

TEST(nonsense_in_a_matrix_is_refused)
{
	static const char *const axes[] = { "",    "=a",  "cc",      "c c=a",
					    "1=a", "cc=", "cc=a,,b", "cc=a,a" };
	CLEANUP(engine_matrix_done) struct engine_matrix m = { 0 };
	struct err err = { 0 };

	for (size_t i = 0; i < ARRAY_LEN(axes); i++) {
		CLEANUP(engine_matrix_done) struct engine_matrix one = { 0 };

		if (engine_matrix_add(&one, axes[i], &err) != -EINVAL)
			fail_msg("'%s' is an axis", axes[i]);
	}
	CHECK_OK(engine_matrix_add(&m, "cc=gcc", &err), &err);
	CHECK_EQ(engine_matrix_add(&m, "cc=clang", &err), -EINVAL);
	CHECK_EQ(engine_matrix_exclude(&m, "cc=tcc", &err), -EINVAL);
	CHECK_EQ(engine_matrix_exclude(&m, "ld=gold", &err), -EINVAL);
	CHECK_EQ(engine_matrix_exclude(&m, "", &err), -EINVAL);
}

TEST(too_many_arms_or_none_are_refused)
{
	CLEANUP(engine_experiment_done) struct engine_experiment x = { 0 };
	CLEANUP(engine_matrix_done) struct engine_matrix m = { 0 }, all = { 0 };
	static const char *const axes[] = { "a=1,2,3,4,5,6,7,8", "b=1,2,3,4,5,6,7,8",
					    "c=1,2,3,4,5,6,7,8", "d=1,2,3,4,5,6,7,8" };
	struct err err = { 0 };

	engine_experiment_init(&x);
	CHECK_OK(engine_experiment_add(&x, "a=true", &err), &err);
	for (size_t i = 0; i < ARRAY_LEN(axes); i++)
		CHECK_OK(engine_matrix_add(&m, axes[i], &err), &err);
	CHECK_EQ(engine_matrix_apply(&m, &x, &err), -EINVAL);
	engine_experiment_done(&x);
	engine_experiment_init(&x);
	CHECK_OK(engine_experiment_add(&x, "a=true", &err), &err);
	CHECK_OK(engine_matrix_add(&all, "v=1", &err), &err);
	CHECK_OK(engine_matrix_exclude(&all, "v=1", &err), &err);
	CHECK_EQ(engine_matrix_apply(&all, &x, &err), -EINVAL);
}

TEST(an_option_of_an_arm_names_one_that_is_there)
{
	CLEANUP(engine_experiment_done) struct engine_experiment x = { 0 };
	static const char *const bad[] = { "", "a", "a:", "b:X=1", "a:X", "a:1=2", "a:=2" };
	struct err err = { 0 };

	engine_experiment_init(&x);
	CHECK_OK(engine_experiment_add(&x, "a=true", &err), &err);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		if (engine_experiment_set(&x, ENGINE_ARM_ENV, bad[i], &err) != -EINVAL)
			fail_msg("'%s' is a variable of an arm", bad[i]);
	CHECK_OK(engine_experiment_set(&x, ENGINE_ARM_ENV, "a:X=b:c=d", &err), &err);
	CHECK_STR(x.arms[0].env[0], "X=b:c=d");
}

TEST_MAIN("matrix")
