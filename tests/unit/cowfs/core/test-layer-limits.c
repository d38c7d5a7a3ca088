/*
 * What a layer does when there is not enough of something: memory for dirty data, quota, disk.
 */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mount.h>
#include <time.h>
#include <unistd.h>

#include "tests/lib/live.h"

#define MIB ((uint64_t)1 << 20)

static void fill_noise(uint8_t *data, size_t len, struct test_rng *rng)
{
	for (size_t i = 0; i + 8 <= len; i += 8) {
		uint64_t v = test_rand(rng);

		memcpy(data + i, &v, 8);
	}
}

TEST(more_than_memory_can_hold_is_written_by_waiting)
{
	CLEANUP(live_close) struct live v = { .options.dirty_max = 8 * MIB };
	struct test_rng rng = { .s = 7 };
	struct layers_stats stats;
	static uint8_t block[MIB];

	live_open(&v, "waiting");
	live_put(&v, "big", "");
	for (uint64_t i = 0; i < 64; i++) {
		fill_noise(block, sizeof(block), &rng);
		CHECK_EQ(live_try_write(&v, "big", i * MIB, block, sizeof(block)), 0);
		layers_stats(v.layers, &stats);
		CHECK(stats.dirty <= 9 * MIB);
	}
	CHECK(stats.room_waits > 0);
	live_reopen(&v);
	{
		CLEANUP(buf_done) struct buf bytes = BUF_INIT;

		live_get(&v, "big", &bytes);
		CHECK_EQ(bytes.len, 64 * MIB);
		rng.s = 7;
		for (uint64_t i = 0; i < 64; i++) {
			fill_noise(block, sizeof(block), &rng);
			CHECK_MEM(bytes.data + i * MIB, MIB, block, MIB);
		}
	}
}

TEST(the_lower_of_quota_and_ceiling_counts_and_what_it_refuses_is_counted)
{
	CLEANUP(live_close) struct live v = { .quota = 3 * MIB };
	static const uint8_t block[MIB];
	struct layer_usage usage;

	live_open(&v, "ceiling");
	live_put(&v, "f", "");
	layer_set_ceiling(v.l, 2 * MIB);
	CHECK_EQ(live_try_write(&v, "f", 0, block, MIB), 0);
	layer_usage(v.l, &usage);
	CHECK_EQ(usage.refused, 0);
	CHECK_EQ(live_try_write(&v, "f", MIB, block, MIB), 0);
	CHECK_EQ(live_try_write(&v, "f", 2 * MIB, block, 1), -ENOSPC);
	layer_usage(v.l, &usage);
	CHECK_EQ(usage.refused, 1);
	CHECK_EQ(usage.quota, 3 * MIB);
	layer_set_ceiling(v.l, 0);
	CHECK_EQ(live_try_write(&v, "f", 2 * MIB, block, MIB), 0);
	layer_set_ceiling(v.l, 9 * MIB);
	CHECK_EQ(live_try_write(&v, "f", 3 * MIB, block, 1), -ENOSPC);
}

TEST(a_ceiling_ends_with_the_layer)
{
	CLEANUP(live_close) struct live v = { 0 };
	static const uint8_t block[MIB];

	live_open(&v, "passing-ceiling");
	live_put(&v, "f", "");
	layer_set_ceiling(v.l, MIB / 2);
	CHECK_EQ(live_try_write(&v, "f", 0, block, MIB), -ENOSPC);
	live_reopen(&v);
	CHECK_EQ(live_try_write(&v, "f", 0, block, MIB), 0);
}

TEST(a_file_without_a_name_may_be_larger_than_memory_too)
{
	const struct layer_call call = { .may_wait = true };
	CLEANUP(live_close) struct live v = { .options.dirty_max = 8 * MIB };
	CLEANUP(buf_done) struct buf bytes = BUF_INIT;
	struct test_rng rng = { .s = 9 };
	struct layer_found found;
	static uint8_t block[MIB];
	struct err err = { 0 };

	live_open(&v, "stray");
	CHECK_EQ(layer_make_nameless(v.l, &call, LAYER_ROOT, S_IFREG | 0600, &found, NULL), 0);
	for (uint64_t i = 0; i < 32; i++) {
		fill_noise(block, sizeof(block), &rng);
		CHECK_OK(layer_write(v.l, &call, found.node, i * MIB, block, MIB, false, &err),
			 &err);
	}
	stock_gc(v.store);
	live_get_node(&v, found.node, &bytes);
	rng.s = 9;
	for (uint64_t i = 0; i < 32; i++) {
		fill_noise(block, sizeof(block), &rng);
		CHECK_MEM(bytes.data + i * MIB, MIB, block, MIB);
	}
	live_drop(&v, found.node);
}

TEST(beyond_the_quota_there_is_no_space_until_something_goes)
{
	CLEANUP(live_close) struct live v = { .quota = 4 * MIB };
	static uint8_t block[MIB];
	struct layer_usage usage;
	struct statvfs st;
	uint64_t n = 0;

	live_open(&v, "quota");
	live_put(&v, "f", "");
	live_put(&v, "small", "x");
	while (live_try_write(&v, "f", n * MIB, block, MIB) == 0)
		n++;
	CHECK_EQ(n, 3);
	CHECK_EQ(live_try_write(&v, "f", n * MIB, block, MIB), -ENOSPC);
	CHECK_EQ(live_try_write(&v, "f", 0, block, MIB), 0); /* in place */
	CHECK_EQ(layer_statfs(v.l, &st, NULL), 0);
	CHECK_EQ(st.f_blocks * st.f_frsize, 4 * MIB);
	CHECK(st.f_bavail * st.f_frsize < MIB);
	live_reopen(&v);
	layer_usage(v.l, &usage);
	CHECK_EQ(usage.quota, 4 * MIB);
	CHECK_EQ(usage.used, 3 * MIB + 1);
	CHECK_EQ(live_try_unlink(&v, "f"), 0);
	live_put(&v, "g", "");
	CHECK_EQ(live_try_write(&v, "g", 0, block, MIB), 0);
}

TEST(what_leaves_memory_still_counts_against_the_quota)
{
	CLEANUP(live_close) struct live v = { .options.persist_ms = 1000000, .quota = 4 * MIB };
	static uint8_t block[MIB];
	struct layer_usage usage;

	live_open(&v, "evicted");
	live_put(&v, "f", "");
	for (uint64_t i = 0; i < 3; i++)
		CHECK_EQ(live_try_write(&v, "f", i * MIB, block, MIB), 0);
	live_persist(&v);
	for (int i = 0; i < 5; i++)
		live_stat(&v, "f");
	layer_usage(v.l, &usage);
	CHECK_EQ(usage.used, 3 * MIB);
	live_put(&v, "g", "g");
	CHECK_EQ(live_try_write(&v, "g", 0, block, MIB), 0);
	CHECK_EQ(live_try_write(&v, "g", MIB, block, 1), -ENOSPC);
}

TEST(asking_for_all_there_can_be_is_beyond_any_quota)
{
	const struct layer_call call = { .may_wait = true };
	CLEANUP(live_close) struct live v = { .quota = 4 * MIB };
	uint64_t node;

	live_open(&v, "all");
	live_put(&v, "f", "f");
	node = live_hold(&v, "f");
	CHECK_EQ(layer_allocate(v.l, &call, node, 0, 0, INT64_MAX, NULL), -ENOSPC);
	CHECK_EQ(layer_allocate(v.l, &call, node, 0, 0, MIB, NULL), 0);
	live_drop(&v, node);
}

TEST(a_quota_may_be_as_large_as_a_number)
{
	CLEANUP(live_close) struct live v = { .quota = UINT64_MAX };
	static const uint8_t block[MIB];

	live_open(&v, "wide");
	live_put(&v, "f", "");
	CHECK_EQ(live_try_write(&v, "f", 0, block, MIB), 0);
}

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

static int write_file(struct live *v, unsigned number, const uint8_t *data, size_t len)
{
	char path[32];
	int r;

	snprintf(path, sizeof(path), "f%u", number);
	r = live_try_make(v, path, S_IFREG | 0644);
	return r < 0 && r != -EEXIST ? r : live_try_write(v, path, 0, data, len);
}

TEST(on_a_full_disk_writers_are_told_and_deleting_makes_room)
{
	CLEANUP(live_close) struct live v = { .options.persist_ms = 20 };
	struct test_rng rng = { .s = 11 };
	static uint8_t block[MIB];
	unsigned n = 0, kept;
	int r = 0;

	mount_disk("full", 48 * MIB);
	live_open(&v, "full/store");
	while (n < 200 && r >= 0) {
		fill_noise(block, sizeof(block), &rng);
		r = write_file(&v, n, block, sizeof(block));
		n += r >= 0;
	}
	CHECK_EQ(r, -ENOSPC);
	CHECK(n > 8);
	printf("# %u MiB fit on a disk of 48\n", n);
	live_persist(&v);
	stock_check_clean(v.store);

	kept = n / 2;
	for (unsigned i = kept; i < n; i++) {
		char path[32];

		snprintf(path, sizeof(path), "f%u", i);
		CHECK_EQ(live_try_unlink(&v, path), 0);
	}
	for (int tries = 0; tries < 100 && (r = write_file(&v, n, block, sizeof(block))) < 0;
	     tries++)
		usleep(50000);
	CHECK_EQ(r, 0);
	live_reopen(&v);
	rng.s = 11;
	for (unsigned i = 0; i < kept; i++) {
		CLEANUP(buf_done) struct buf bytes = BUF_INIT;
		char path[32];

		fill_noise(block, sizeof(block), &rng);
		snprintf(path, sizeof(path), "f%u", i);
		live_get(&v, path, &bytes);
		CHECK_MEM(bytes.data, bytes.len, block, sizeof(block));
	}
	stock_check_clean(v.store);
	live_close(&v);
	CHECK(umount2(test_path("full"), MNT_DETACH) == 0);
}

TEST(no_operation_waits_for_the_store_when_memory_has_it)
{
	CLEANUP(live_close) struct live v = { .options.persist_ms = 1000000 };
	struct layers_stats before, after;
	char path[32], other[32];

	live_open(&v, "memory");
	live_mkdir(&v, "d");
	live_reopen(&v);
	free(live_names(&v, "d"));
	layers_stats(v.layers, &before);
	for (int i = 0; i < 200; i++) {
		snprintf(path, sizeof(path), "d/f%d", i);
		snprintf(other, sizeof(other), "d/g%d", i);
		live_put(&v, path, path);
		live_stat(&v, path);
		CHECK_EQ(live_try_rename(&v, path, other, 0), 0);
		if (i % 2)
			CHECK_EQ(live_try_unlink(&v, other), 0);
	}
	layers_stats(v.layers, &after);
	CHECK_EQ(after.store_waits, before.store_waits);
	CHECK_EQ(after.persists, before.persists);
}

static uint64_t loads(struct live *v)
{
	struct layers_stats stats;

	layers_stats(v->layers, &stats);
	return stats.cache.loaded;
}

/* The first block that is not written whole is read once; what follows was in memory just now. */
TEST(a_persist_of_an_append_reads_nothing_of_the_last_one)
{
	CLEANUP(live_close) struct live v = { .options.persist_ms = 1000000 };
	static uint8_t data[4096];
	struct test_rng rng = { .s = 3 };
	uint64_t before = 0;

	live_open(&v, "append");
	CHECK_EQ(live_try_make(&v, "log", S_IFREG | 0600), 0);
	for (unsigned i = 0; i < 40; i++) {
		fill_noise(data, sizeof(data), &rng);
		CHECK_EQ(live_try_write(&v, "log", i * sizeof(data), data, sizeof(data)), 0);
		live_persist(&v);
		/* At 17 a second block begins, and at 18 that is read. */
		if (i == 2)
			before = loads(&v);
	}
	CHECK(loads(&v) <= before + 2);
}

static uint64_t persists(struct live *v)
{
	struct layers_stats stats;

	layers_stats(v->layers, &stats);
	return stats.persists;
}

/* The time that a change may stay in memory is long here, and what is tried takes a few seconds. */
TEST(many_that_have_come_to_an_end_are_persisted_before_their_time)
{
	CLEANUP(live_close) struct live v = { .options.persist_ms = 48000 };
	const time_t start = time(NULL);
	uint64_t before;
	char path[32];

	live_open(&v, "ended");
	live_put(&v, "little", "little");
	before = persists(&v);
	for (int i = 0; i < 3000; i++)
		CHECK_EQ(live_try_write(&v, "little", 0, &i, sizeof(i)), 0);
	sleep(5);
	if (time(NULL) - start > 40)
		TEST_SKIP("this machine is too slow to tell");
	CHECK_EQ(persists(&v), before);
	for (int i = 0; i < 1100; i++) {
		snprintf(path, sizeof(path), "f%d", i);
		live_put(&v, path, path);
	}
	while (persists(&v) == before && time(NULL) - start < 40)
		usleep(10000);
	CHECK(persists(&v) > before);
	live_crash(&v);
	CHECK(live_has(&v, "f1099", "f1099"));
}

TEST(what_is_refused_leaves_nothing_in_memory)
{
	CLEANUP(live_close) struct live v = { .options.persist_ms = 1000000 };
	struct layers_stats stats;

	live_open(&v, "refused");
	live_mkdir(&v, "d");
	live_mkdir(&v, "d/e");
	live_mkdir(&v, "full");
	live_put(&v, "full/f", "f");
	live_put(&v, "f", "f");
	live_put(&v, "two", "two");
	CHECK_EQ(live_try_link(&v, "two", "d/two"), 0);
	live_reopen(&v);
	CHECK_EQ(live_try_make(&v, "f", S_IFREG), -EEXIST);
	CHECK_EQ(live_try_make(&v, "d/e", S_IFDIR), -EEXIST);
	CHECK_EQ(live_try_link(&v, "f", "two"), -EEXIST);
	CHECK_EQ(live_try_unlink(&v, "d/e"), -EISDIR);
	CHECK_EQ(live_try_rmdir(&v, "f"), -ENOTDIR);
	CHECK_EQ(live_try_rmdir(&v, "full"), -ENOTEMPTY);
	CHECK_EQ(live_try_rename(&v, "f", "two", LAYER_RENAME_NOREPLACE), -EEXIST);
	CHECK_EQ(live_try_rename(&v, "f", "d/e", 0), -EISDIR);
	CHECK_EQ(live_try_rename(&v, "d/e", "full", 0), -ENOTEMPTY);
	CHECK_EQ(live_try_rename(&v, "d", "d/e/d", 0), -EINVAL);
	CHECK_EQ(live_try_rename(&v, "f", "no", LAYER_RENAME_EXCHANGE), -ENOENT);
	CHECK_EQ(live_try_rename(&v, "two", "d/two", 0), 0);
	CHECK_EQ(live_try_rename(&v, "two", "two", 0), 0);
	layers_stats(v.layers, &stats);
	CHECK_EQ(stats.nodes, 2);
}

TEST_MAIN("layer-limits")
