/*
 * A small disk that really is full, by our own hand or by somebody else's.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "base/path.h"
#include "cowfs/store/ref.h"
#include "cowfs/store/root.h"
#include "cowfs/store/upkeep/gc.h"
#include "tests/crash/full-fixture.h"

#define SMALL_DISK ((size_t)8 << 20)

/* Take up to `most` bytes of the room there is. */
static void take_room(const char *path, size_t most)
{
	AUTO_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	static const char block[4096];

	CHECK(fd >= 0);
	for (; most >= sizeof(block); most -= sizeof(block))
		if (write(fd, block, sizeof(block)) <= 0)
			break;
	CHECK(most < sizeof(block) || errno == ENOSPC);
}

/* Commit until there is no room; the number that found none. */
static uint64_t commit_until_full(struct store *s, uint64_t first)
{
	for (uint64_t number = first;; number++) {
		struct err err = { 0 };
		int r = specimen_commit(s, number, number % 2 ? BATCH_SAFE : BATCH_DURABLE, &err);

		if (r < 0) {
			CHECK_EQ(r, -ENOSPC);
			CHECK_EQ(err.code, r);
			CHECK_HAS(err.msg, "full");
			return number;
		}
		CHECK(number - first < 5000);
	}
}

static void must_hold(struct store *s, uint64_t from, uint64_t to)
{
	struct err err = { 0 };

	CHECK_OK(specimen_store_sound(s, &err), &err);
	for (uint64_t i = from; i < to; i++) {
		CHECK_OK(specimen_find(s, i, &err), &err);
		CHECK_EQ(specimen_find(s, i, &err), 1);
	}
}

static void fill_small_disk(const char *dir)
{
	CLEANUP(store_close_p) struct store *s = NULL;
	AUTO_FREE char *path = NULL, *reserve = NULL, *rest = NULL;
	struct gc_progress progress;
	struct err err = { 0 };
	uint64_t first = tried_number & ~SPECIMEN_SMALL, end;

	CHECK(asprintf(&path, "%s/store", dir) > 0);
	CHECK(asprintf(&reserve, "%s/reserve", dir) > 0);
	CHECK(asprintf(&rest, "%s/rest", dir) > 0);
	take_room(reserve, SMALL_DISK / 2);
	s = open_store(path, STORE_CREATE);
	end = commit_until_full(s, first);
	CHECK(end > first);
	must_hold(s, first, end);
	CHECK_EQ(specimen_find(s, end, &err), 0);

	take_room(rest, SMALL_DISK);
	CHECK_EQ(specimen_commit(s, end, BATCH_DURABLE, &err), -ENOSPC);
	must_hold(s, first, end);
	store_close(TAKE_PTR(s));

	CHECK(unlink(rest) == 0 && unlink(reserve) == 0);
	s = open_store(path, STORE_WRITE);
	must_hold(s, first, end);
	CHECK_EQ(specimen_find(s, end, &err), 0);
	CHECK_OK(specimen_commit(s, end, BATCH_DURABLE, &err), &err);
	for (uint64_t i = first; i < end; i++)
		CHECK_OK(specimen_remove(s, i, &err), &err);
	CHECK_OK(gc_run(s, &progress, &err), &err);
	CHECK_OK(store_checkpoint(s, &err), &err);
	must_hold(s, end, end + 1);
}

/* A file system of this size.  In a namespace of its own: however this process ends, it goes with it. */
static const char *mount_disk(const char *name, size_t size)
{
	const char *dir = test_path(name);
	char options[32];

	CHECK(mkdir(dir, 0700) == 0);
	snprintf(options, sizeof(options), "size=%zu", size);
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("tmpfs", dir, "tmpfs", MS_NODEV | MS_NOSUID, options) < 0)
		TEST_SKIP("mounting a tmpfs needs CAP_SYS_ADMIN");
	return dir;
}

TEST(a_store_on_a_disk_without_room_keeps_what_it_has_and_goes_on_when_there_is_some)
{
	const char *dir = mount_disk("tmpfs", SMALL_DISK);

	fill_small_disk(dir);
	CHECK(umount2(dir, MNT_DETACH) == 0);
}

/* Fill the disk, remove all but the first, collect: there must be room again for as many. */
static void fill_and_empty(struct store *s, uint64_t first, uint64_t *most)
{
	const uint64_t end = commit_until_full(s, first);
	struct gc_progress progress;
	struct err err = { 0 };

	CHECK(end > first + 1);
	must_hold(s, first, end);
	for (uint64_t i = first + 1; i < end; i++)
		CHECK_OK(specimen_remove(s, i, &err), &err);
	CHECK_OK(gc_run(s, &progress, &err), &err);
	CHECK_EQ(progress.phase, GC_DONE);
	must_hold(s, first, first + 1);
	printf("# %" PRIu64 " fit\n", end - first);
	CHECK(end - first >= *most / 2);
	*most = end - first;
	CHECK_OK(specimen_remove(s, first, &err), &err);
}

TEST(removing_makes_room_on_a_full_disk)
{
	static const struct {
		uint64_t sort;
		size_t disk;
	} sorts[] = { { SPECIMEN_SMALL, 4 << 20 }, { 0, SMALL_DISK } };
	struct test_rng rng = { test_seed() };
	const size_t chosen = test_rand(&rng) % ARRAY_LEN(sorts); /* with SNAP_TESTS_LONG: both */

	for (size_t i = 0; i < ARRAY_LEN(sorts); i++) {
		if (i != chosen && !getenv("SNAP_TESTS_LONG"))
			continue;

		char name[16];
		uint64_t most = 0;

		snprintf(name, sizeof(name), "removing-%zu", i);
		const char *dir = mount_disk(name, sorts[i].disk);
		AUTO_FREE char *path = path_join(dir, "store");
		struct store *s = open_store(path, STORE_CREATE);

		for (uint64_t turn = 0; turn < 3; turn++) {
			fill_and_empty(s, sorts[i].sort | (turn + 1) << 32, &most);
			if (turn == 1) {
				store_close(s);
				s = open_store(path, STORE_WRITE);
			}
		}
		store_close(s);
		CHECK(umount2(dir, MNT_DETACH) == 0);
	}
}

TEST(removing_makes_room_on_a_disk_that_somebody_else_filled)
{
	const char *dir = mount_disk("filled", SMALL_DISK);
	AUTO_FREE char *path = path_join(dir, "store"), *rest = path_join(dir, "rest");
	struct store *s = open_store(path, STORE_CREATE);
	struct gc_progress progress;
	struct err err = { 0 };
	uint64_t end;

	end = commit_until_full(s, 1);
	CHECK_OK(store_checkpoint(s, &err), &err);
	take_room(rest, SMALL_DISK);
	CHECK_EQ(specimen_commit(s, end, BATCH_SAFE, &err), -ENOSPC);
	for (uint64_t i = 2; i < end; i++)
		CHECK_OK(specimen_remove(s, i, &err), &err);
	CHECK_OK(gc_run(s, &progress, &err), &err);
	CHECK_OK(specimen_commit(s, end, BATCH_SAFE, &err), &err);
	must_hold(s, 1, 2);
	must_hold(s, end, end + 1);
	store_close(s);
	CHECK(umount2(dir, MNT_DETACH) == 0);
}

#define LARGE ((size_t)1 << 20)

/* A root with one file of LARGE bytes that do not compress, under a name. */
static int commit_large(struct store *s, uint64_t number, struct err *err)
{
	CLEANUP(batch_end_p) struct batch *b = NULL;
	CLEANUP(tree_builder_free_p) struct tree_builder *t = NULL;
	struct tree_entry file = { .name = "f", .name_len = 1, .mode = S_IFREG | 0600 };
	struct root root = {
		.top = { .name = ROOT_TOP, .name_len = 3, .form = TREE_DIR, .mode = S_IFDIR | 0700 }
	};
	struct ref ref = { .kind = REF_SNAPSHOT, .name = (const char *)&number, .name_len = 8 };
	AUTO_FREE uint64_t *bytes = malloc(LARGE);
	struct test_rng rng = { number };
	struct content c;
	int r;

	CHECK(bytes);
	for (size_t i = 0; i < LARGE / 8; i++)
		bytes[i] = test_rand(&rng);
	CHECK_OK(batch_begin(s, &b, err), err);
	r = content_put(b, bytes, LARGE, &c, err);
	if (r < 0)
		return r;
	tree_entry_set_content(&file, &c);
	CHECK_OK(tree_builder_new(b, &t, err), err);
	CHECK_OK(tree_builder_add(t, &file, err), err);
	CHECK_OK(tree_builder_finish(t, &root.top.id, &root.top.below, err), err);
	CHECK_OK(root_put(b, &root, &ref.root, err), err);
	CHECK_OK(ref_put(b, &ref, REF_NEW, err), err);
	return batch_commit(b, BATCH_SAFE, err);
}

static void remove_large(struct store *s, uint64_t number)
{
	CLEANUP(batch_end_p) struct batch *b = NULL;
	struct gc_progress progress;
	struct err err = { 0 };

	CHECK_OK(batch_begin(s, &b, &err), &err);
	CHECK_OK(ref_delete(b, REF_SNAPSHOT, (const char *)&number, 8, &err), &err);
	CHECK_OK(batch_commit(b, BATCH_SAFE, &err), &err);
	CHECK_OK(gc_run(s, &progress, &err), &err);
}

TEST(room_for_one_file_is_made_by_removing_one)
{
	const char *dir = mount_disk("one-by-one", 2 * SMALL_DISK);
	AUTO_FREE char *path = path_join(dir, "store");
	CLEANUP(store_close_p) struct store *s = open_store(path, STORE_CREATE);
	struct err err = { 0 };
	uint64_t n = 0;
	int r;

	while ((r = commit_large(s, n, &err)) >= 0)
		CHECK(++n < 2 * SMALL_DISK / LARGE);
	CHECK_EQ(r, -ENOSPC);
	printf("# %" PRIu64 " fit\n", n);
	for (uint64_t i = 0; i < 2 * n; i++) {
		CHECK_EQ(commit_large(s, n + i, &err), -ENOSPC);
		remove_large(s, i);
		CHECK_OK(commit_large(s, n + i, &err), &err);
	}
	CHECK_OK(specimen_store_sound(s, &err), &err);
	store_close(TAKE_PTR(s));
	CHECK(umount2(dir, MNT_DETACH) == 0);
}

int main(void)
{
	return run_all("full-disk");
}
