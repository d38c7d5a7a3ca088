/*
 * What the echoing thread may do, and what others see meanwhile.  That thread is the one of the test;
 * others are threads of their own.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/mount/stage.h"

struct echoed {
	struct stage s;
	struct layer_changes changes;
	char token[MOUNT_ECHO_SIZE];
};

/* "changed" was something else, "made" was there, "gone" was not. */
static void begin(struct echoed *e, const char *name)
{
	struct object_id root;
	struct err err = { 0 };

	stage_open(&e->s, name);
	stage_put(&e->s, "changed", "old");
	stage_put(&e->s, "gone", "gone");
	stage_put(&e->s, "same", "same");
	root = live_persist(&e->s.live);
	stage_put(&e->s, "changed", "new");
	stage_put(&e->s, "made", "made");
	CHECK_EQ(unlink(stage_at(&e->s, "gone")), 0);
	CHECK_OK(live_roll_back(e->s.live.l, &root, NULL, NULL, &e->changes, &err), &err);
	CHECK_EQ(e->changes.n_replaced, 3);
	CHECK_EQ(e->changes.n_left_out, 0);
	CHECK_OK(
	    mount_echo_begin(e->s.m, e->changes.replaced, e->changes.n_replaced, e->token, &err),
	    &err);
	CHECK_OK(mount_announce(e->s.m, &e->changes, &err), &err);
}

static void greet(struct echoed *e)
{
	struct stat st;

	CHECK_EQ(lstat(stage_at(&e->s, e->token), &st), 0);
}

static void end(struct echoed *e)
{
	mount_echo_end(e->s.m, e->token);
	mount_echo_end(e->s.m, e->token);
	CHECK(stage_has(&e->s, "changed", "old"));
	CHECK(stage_has(&e->s, "same", "same"));
	CHECK(stage_has(&e->s, "gone", "gone"));
	layer_changes_done(&e->changes);
	stage_close(&e->s);
}

static void *find_all(void *arg)
{
	const struct echoed *e = arg;

	CHECK(stage_has(&e->s, "changed", "old"));
	CHECK(stage_has(&e->s, "gone", "gone"));
	CHECK(!stage_there(&e->s, "made"));
	return NULL;
}

static void *make_again(void *arg)
{
	const struct echoed *e = arg;

	stage_put(&e->s, "made", "mine");
	return NULL;
}

static void as_another(struct echoed *e, void *(*fn)(void *arg))
{
	pthread_t thread;

	CHECK_EQ(pthread_create(&thread, NULL, fn, e), 0);
	CHECK_EQ(pthread_join(thread, NULL), 0);
}

static int make(const struct echoed *e, const char *name)
{
	const int fd = open(stage_at(&e->s, name), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);

	if (fd < 0)
		return -errno;
	close(fd);
	return 0;
}

TEST(others_find_what_is_there_at_every_step)
{
	struct echoed e = { 0 };

	begin(&e, "steps");
	as_another(&e, find_all);
	greet(&e);
	CHECK_EQ(unlink(stage_at(&e.s, "changed")), 0);
	as_another(&e, find_all);
	CHECK_EQ(make(&e, "changed"), 0);
	as_another(&e, find_all);
	CHECK_EQ(unlink(stage_at(&e.s, "made")), 0);
	as_another(&e, find_all);
	CHECK_EQ(make(&e, "gone"), 0);
	as_another(&e, find_all);
	end(&e);
}

TEST(who_echoes_can_change_nothing)
{
	const struct timespec times[2] = { 0 };
	struct echoed e = { 0 };
	char other[256];

	begin(&e, "refused");
	greet(&e);
	CHECK_EQ(unlink(stage_at(&e.s, "same")), -1);
	CHECK_EQ(errno, EPERM);
	CHECK_EQ(make(&e, "unheard-of"), -EPERM);
	CHECK_EQ(mkdir(stage_at(&e.s, "unheard-of"), 0700), -1);
	snprintf(other, sizeof(other), "%s", stage_at(&e.s, "other"));
	CHECK_EQ(rename(stage_at(&e.s, "same"), other), -1);
	CHECK_EQ(errno, EPERM);
	CHECK_EQ(link(stage_at(&e.s, "same"), other), -1);
	CHECK_EQ(symlink("x", other), -1);
	CHECK_EQ(truncate(stage_at(&e.s, "same"), 0), -1);
	CHECK_EQ(utimensat(AT_FDCWD, stage_at(&e.s, "same"), times, 0), -1);
	CHECK_EQ(unlink(stage_at(&e.s, "made")), 0);
	CHECK_EQ(unlink(stage_at(&e.s, "made")), -1);
	CHECK(!stage_there(&e.s, "unheard-of"));
	end(&e);
}

TEST(what_somebody_made_again_is_not_removed)
{
	struct echoed e = { 0 };

	begin(&e, "again");
	greet(&e);
	as_another(&e, make_again);
	CHECK_EQ(unlink(stage_at(&e.s, "made")), -1);
	CHECK(stage_has(&e.s, "made", "mine"));
	end(&e);
}

TEST(who_does_not_know_the_name_to_begin_with_is_like_others)
{
	struct echoed e = { 0 };
	struct stat st;

	begin(&e, "unknown");
	CHECK_EQ(lstat(stage_at(&e.s, MOUNT_ECHO_PREFIX "00000000000000000000000000000000"), &st),
		 -1);
	CHECK_EQ(make(&e, "changed"), -EEXIST);
	CHECK_EQ(unlink(stage_at(&e.s, "made")), -1);
	CHECK_EQ(errno, ENOENT);
	end(&e);
}

TEST(a_mount_can_be_closed_while_echoes_are_awaited)
{
	struct echoed e = { 0 };

	begin(&e, "closed");
	greet(&e);
	stage_close(&e.s);
	layer_changes_done(&e.changes);
}

TEST_MAIN("echo")
