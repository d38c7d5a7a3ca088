#include "snapshot/apply.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/lib/grove.h"

#define SEEDS 200

/* No sync reaches the disk (--wrap): nobody cuts the power here, and it would take minutes. */
int __wrap_fsync(int fd);
int __wrap_sys_sync_data(int fd);
int __wrap_sys_sync_all(int fd);

int __wrap_fsync(int fd)
{
	return fd < 0 ? -1 : 0;
}

int __wrap_sys_sync_data(int fd)
{
	return fd < 0 ? -EBADF : 0;
}

int __wrap_sys_sync_all(int fd)
{
	return fd < 0 ? -EBADF : 0;
}

static void apply(struct grove *g, const struct object_id *wanted)
{
	const struct object_id now = grove_capture(g);
	CLEANUP(plan_done) struct plan p = grove_plan(g, &now, wanted);
	CLEANUP(apply_report_done) struct apply_report report = { 0 };
	struct err err = { 0 };

	CHECK_OK(apply_plan(g->s, g->path, &p, NULL, &report, &err), &err);
	CHECK_EQ(report.n, 0);
	CHECK(grove_is_tidy(g));
}

static void name(struct grove *g, const char *as, const struct object_id *root)
{
	CLEANUP(batch_end_p) struct batch *b = stock_begin(g->s);

	stock_name(b, REF_SNAPSHOT, as, root, REF_REPLACE);
	stock_commit(b);
}

TEST(one_of_every_kind_becomes_what_it_was_and_back_again)
{
	CLEANUP(grove_done) struct grove g = grove_new("kinds");
	struct object_id one, two;

	grove_plant(&g, false);
	one = grove_capture(&g);
	name(&g, "one", &one);
	grove_plant(&g, true);
	two = grove_capture(&g);
	name(&g, "two", &two);

	apply(&g, &one);
	CHECK(grove_is(&g, &one));
	apply(&g, &two);
	CHECK(grove_is(&g, &two));
	apply(&g, &one);
	CHECK(grove_is(&g, &one));
}

TEST(random_trees_become_each_other)
{
	CLEANUP(grove_done) struct grove g = grove_new("random");
	const uint64_t seed = test_seed();

	for (uint64_t i = 0; i < SEEDS; i++) {
		struct test_rng rng = { .s = seed + i };
		struct object_id one;

		grove_clear(&g);
		for (int n = 0; n < 40; n++)
			grove_change(&g, &rng);
		one = grove_capture(&g);
		for (unsigned n = 0; n < 1 + (unsigned)(i % 40); n++)
			grove_change(&g, &rng);
		apply(&g, &one);
		if (!grove_is(&g, &one)) {
			printf("# seed %llu\n", (unsigned long long)(seed + i));
			grove_explain(&g, &one);
			CHECK(false);
		}
	}
}

TEST_MAIN("apply")
