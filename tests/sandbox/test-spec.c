/*
 * test-spec.c - what a spec may say, and what is said of one that may not.
 */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "runner/layout.h"
#include "runner/sandbox.h"
#include "runner/subid.h"
#include "tests/lib/test.h"

TEST(ranges_of_ids_are_read_as_far_as_they_make_sense)
{
	static const char text[] =
	    "ann:100000:65536\n# ann:1:1\n1000:300000:10\nbob:5:5\nann:0:7\n"
	    "ann:4294967290:100\nann:x:1\nann\nann:400000:0\nann:500000:65536";
	struct subid s;

	subid_read(text, "ann", 1000, 65535 + 20, &s);
	CHECK_EQ(s.n, 3);
	CHECK_EQ(s.list[0].first, 100000);
	CHECK_EQ(s.list[0].count, 65536);
	CHECK_EQ(s.list[1].first, 300000);
	CHECK_EQ(s.list[1].count, 10);
	CHECK_EQ(s.list[2].first, 500000); /* as far as there is room */
	CHECK_EQ(s.list[2].count, 9);
	CHECK_EQ(s.total, 65535 + 20);
	subid_read(text, NULL, 7, 65535, &s);
	CHECK_EQ(s.n, 0);
	subid_read(NULL, "ann", 1000, 65535, &s);
	CHECK_EQ(s.n, 0);
}

TEST(a_range_of_ids_that_is_free_is_in_nobodys_way)
{
	static const char text[] = "zoe:231072:65536\n#\nann:100000:65536\nbob:165536:65536\nx\n"
				   "eve:100000:0\n7:300000:1\n";

	CHECK_EQ(subid_free(NULL, 100000, 65536), 100000);
	CHECK_EQ(subid_free("ann:34464:65536\nbob:165536:65536", 100000, 65536), 100000);
	CHECK_EQ(subid_free("bob:165535:65536", 100000, 65536), 231071);
	CHECK_EQ(subid_free(text, 100000, 65536), 300001);
	CHECK_EQ(subid_free(text, 100000, 100), 296608);
	CHECK_EQ(subid_free("ann:100000:4294867290", 100000, 65536), 0);
	CHECK_EQ(subid_free("ann:100000:9999999999", 100000, 65536), 0);
}

TEST(many_users_with_ranges_in_any_order_take_no_time)
{
	enum { USERS = 20000 };
	CLEANUP(buf_done) struct buf rising = BUF_INIT, falling = BUF_INIT;
	const uint64_t began = clock_ms();

	for (int i = 0; i < USERS; i++) {
		CHECK_EQ(buf_printf(&rising, "u%d:%d:65536\n", i, 100000 + i * 65536), 0);
		CHECK_EQ(
		    buf_printf(&falling, "u%d:%d:65536\n", i, 100000 + (USERS - 1 - i) * 65536), 0);
	}
	CHECK_EQ(subid_free(buf_str(&rising), 100000, 65536), 100000 + USERS * 65536);
	CHECK_EQ(subid_free(buf_str(&falling), 100000, 65536), 100000 + USERS * 65536);
	CHECK(clock_ms() - began < 5000);
}

static const char *const argv[] = { "true", NULL };
static const char *const env[] = { NULL };

static struct sandbox_spec fine(void)
{
	struct sandbox_spec spec;

	sandbox_spec_init(&spec);
	spec.argv = argv;
	spec.env = env;
	return spec;
}

static void refused(const struct sandbox_spec *spec, const char *word)
{
	struct sandbox_result res;
	struct err err = { 0 };

	CHECK_EQ(sandbox_spec_check(spec, &err), -EINVAL);
	CHECK_HAS(err.msg, word);
	/* And it is looked at before anything is done. */
	CHECK_EQ(sandbox_run(spec, &res, &err), -EINVAL);
	CHECK_EQ(res.walls, 0);
}

static void mount_refused(struct sandbox_mount m, const char *word)
{
	struct sandbox_spec spec = fine();

	spec.mounts = &m;
	spec.n_mounts = 1;
	refused(&spec, word);
}

TEST(a_spec_as_it_begins_lacks_only_a_command)
{
	struct sandbox_spec spec = fine();
	struct err err = { 0 };

	CHECK_OK(sandbox_spec_check(&spec, &err), &err);
	sandbox_spec_init(&spec);
	refused(&spec, "the run has no command");
	spec.argv = argv;
	refused(&spec, "the run has no environment");
}

TEST(an_empty_command_is_none)
{
	const char *const none[] = { NULL }, *const empty[] = { "", NULL };
	struct sandbox_spec spec = fine();

	spec.argv = none;
	refused(&spec, "the run has no command");
	spec.argv = empty;
	refused(&spec, "the run has no command");
}

TEST(paths_of_a_spec_are_absolute_and_clean)
{
	static const char *const wrong[] = { "",     "a",     "./a",   "/a/",  "//a",
					     "/a/.", "/../a", "/a/..", "/a//b" };

	for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
		struct sandbox_spec spec = fine();

		spec.cwd = wrong[i];
		refused(&spec, "to work in");
		mount_refused((struct sandbox_mount){ SANDBOX_FRESH, .guest = wrong[i] },
			      "to mount at");
		mount_refused((struct sandbox_mount){ SANDBOX_BIND, wrong[i], -1, "/a" },
			      "path to mount");
	}
	mount_refused((struct sandbox_mount){ SANDBOX_BIND, NULL, -1, "/a" }, "path to mount");
	mount_refused((struct sandbox_mount){ SANDBOX_BIND, "/a", -1, NULL }, "to mount at");
	mount_refused((struct sandbox_mount){ SANDBOX_LINK, "", -1, "/a" }, "says nothing");
	mount_refused((struct sandbox_mount){ SANDBOX_TEXT, NULL, -1, "/a" }, "has no text");
}

TEST(proc_dev_sys_and_the_root_are_not_for_mounts)
{
	static const char *const wrong[] = { "/", "/proc", "/proc/sys", "/dev/null",
					     "/sys/kernel" };

	for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
		mount_refused((struct sandbox_mount){ SANDBOX_HIDE, .guest = wrong[i] }, "mount");
}

TEST(only_walls_that_may_be_missing_can_be_named)
{
	struct sandbox_spec spec = fine();
	struct err err = { 0 };

	spec.may_miss = SANDBOX_MAY_MISS;
	CHECK_OK(sandbox_spec_check(&spec, &err), &err);
	spec.may_miss = WALL_BIT(WALL_SECCOMP);
	refused(&spec, "there is no sandbox without the wall 'seccomp'");
	spec.may_miss = WALL_BIT(WALL_USER) | WALL_BIT(WALL_MEMORY);
	refused(&spec, "'user'");
	spec.may_miss = 1u << SANDBOX_N_WALLS;
	refused(&spec, "no such wall");
}

TEST(every_wall_has_a_name_and_is_found_by_it)
{
	for (int w = 0; w < SANDBOX_N_WALLS; w++)
		CHECK_EQ(sandbox_wall_find(sandbox_wall_name((enum sandbox_wall)w)), w);
	CHECK_EQ(sandbox_wall_find("moat"), -1);
}

TEST(numbers_too_large_to_reckon_with_are_refused)
{
	struct sandbox_spec spec = fine();

	spec.limits.wall_ms = UINT64_MAX;
	refused(&spec, "more than any limit");
	spec = fine();
	spec.limits.cpus_milli = UINT64_MAX >> 1;
	refused(&spec, "more than any limit");
	spec = fine();
	spec.uid = 70000;
	refused(&spec, "user 70000");
	spec = fine();
	spec.n_mounts = SANDBOX_MOUNTS_MAX + 1;
	refused(&spec, "mounts are more");
	CHECK(fcntl(0, F_GETFD) >= 0); /* nothing that was never opened is closed */
	spec = fine();
	spec.hostname = "";
	refused(&spec, "host name");
}

TEST(a_layout_keeps_copies_and_has_an_end)
{
	CLEANUP(layout_free_p) struct layout *l = layout_new();
	char host[] = "/a", guest[] = "/b";
	struct sandbox_mount m = { SANDBOX_BIND, host, -1, guest };
	struct err err = { 0 };

	CHECK_OK(layout_add(l, &m, &err), &err);
	host[1] = guest[1] = 'x';
	CHECK_STR(l->mounts[0].host, "/a");
	CHECK_STR(l->mounts[0].guest, "/b");
	while (l->n < SANDBOX_MOUNTS_MAX)
		CHECK_OK(layout_add(l, &m, &err), &err);
	CHECK_EQ(layout_add(l, &m, &err), -E2BIG);
	CHECK_HAS(err.msg, "no more than");
}

TEST_MAIN("sandbox-spec")
