/*
 * apply-fixture.h - for tests of apply: syncs that cost nothing, and changes of many files.
 */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/sys.h"
#include "snapshot/apply/journal.h"
#include "tests/lib/grove.h"

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

static inline void keep(struct grove *g, const char *as, const struct object_id *root)
{
	CLEANUP(batch_end_p) struct batch *b = stock_begin(g->s);

	stock_name(b, REF_SNAPSHOT, as, root, REF_REPLACE);
	stock_commit(b);
}

#define MANY 200 /* enough to be staged by several threads */

/* What so many files are to become, and one with a hole; the directory is something else by then. */
static inline struct plan plan_many(struct grove *g)
{
	struct object_id one, two;
	char path[32], text[32];

	for (int version = 0; version < 2; version++) {
		for (int i = 0; i < MANY; i++) {
			snprintf(path, sizeof(path), "f%03d", i);
			snprintf(text, sizeof(text), "%d of %d", i, version);
			grove_text(g, path, text);
		}
		if (version == 0) {
			AUTO_CLOSE int fd = openat(g->fd, "f000", O_WRONLY | O_CLOEXEC);

			CHECK(fd >= 0 && ftruncate(fd, 3 * CHUNK_SIZE_MAX) == 0);
			one = grove_capture(g);
			keep(g, "one", &one);
		}
	}
	two = grove_capture(g);
	keep(g, "two", &two);
	return grove_plan(g, &two, &one);
}

/* The same, after something was done to the directory. */
static inline struct plan plan_again(struct grove *g)
{
	const struct object_id now = grove_capture(g), one = stock_root(g->s, "one");

	keep(g, "two", &now);
	return grove_plan(g, &now, &one);
}

static inline int find_stage(const char *name, unsigned char type, void *ctx)
{
	(void)type;
	if (stage_is_name(name))
		snprintf(ctx, JOURNAL_STAGE_SIZE, "%s", name);
	return 0;
}

/* A name in the stage that is in the way at the moment. */
static inline void in_stage(struct grove *g, const char *name, char *path, size_t size)
{
	char stage[JOURNAL_STAGE_SIZE] = "";

	CHECK_EQ(sys_each_name(g->fd, find_stage, stage), 0);
	snprintf(path, size, "%s/%s", stage, name);
}
