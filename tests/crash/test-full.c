/*
 * The disk is full, or broken, at the n-th thing it is asked to keep, until an attempt gets
 * by without meeting the fault.  With SNAP_TESTS_LONG every n is tried, otherwise a third.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/path.h"
#include "cowfs/store/ref.h"
#include "cowfs/store/root.h"
#include "cowfs/store/upkeep/gc.h"
#include "tests/crash/full-fixture.h"

#define N_MOST 2000 /* no attempt asks so much of the disk */

/* Committed before anything fails; must be there after everything that did. */
#define FIRST  (SPECIMEN_SMALL | 1)
#define SECOND 2

static const struct {
	enum disk_fault fault;
	bool onwards;
	const char *name;
} modes[] = {
	{ DISK_FULL, false, "full-once" },
	{ DISK_FULL, true, "full-from-then-on" },
	{ DISK_SHORT, false, "short-once" },
	{ DISK_BROKEN, true, "broken-from-then-on" },
};

static const char *store_dir(const char *what, size_t mode)
{
	char name[64];

	snprintf(name, sizeof(name), "%s-%s", what, modes[mode].name);
	return test_path(name);
}

static void arm(uint64_t n, size_t mode)
{
	disk_fail_at(n, modes[mode].fault, modes[mode].onwards);
}

static void make_store(const char *path)
{
	CLEANUP(store_close_p) struct store *s = open_store(path, STORE_CREATE);
	struct err err = { 0 };

	CHECK_OK(specimen_commit(s, FIRST, BATCH_DURABLE, &err), &err);
	CHECK_OK(specimen_commit(s, SECOND, BATCH_SAFE, &err), &err);
}

static void must_be_sound(struct store *s)
{
	struct err err = { 0 };

	CHECK_OK(specimen_store_sound(s, &err), &err);
	CHECK_OK(specimen_find(s, FIRST, &err), &err);
	CHECK_EQ(specimen_find(s, FIRST, &err), 1);
	CHECK_OK(specimen_find(s, SECOND, &err), &err);
	CHECK_EQ(specimen_find(s, SECOND, &err), 1);
}

/* Remove it with all that only it had. */
static void forget(struct store *s, uint64_t number)
{
	struct gc_progress progress;
	struct err err = { 0 };

	CHECK_OK(specimen_remove(s, number, &err), &err);
	CHECK_OK(gc_run(s, &progress, &err), &err);
}

static void must_be_disk_trouble(int r, const struct err *err, size_t mode)
{
	/* SQLite knows no word for a sync or a truncation that finds no room. */
	CHECK(r == -EIO || (r == -ENOSPC && modes[mode].fault != DISK_BROKEN));
	CHECK_EQ(err->code, r);
	CHECK(err->msg[0] != '\0');
}

/* Chunks of several pages each, on top of what a small specimen has. */
static int put_bulk(struct batch *b, struct err *err)
{
	static uint8_t bytes[60000];
	struct test_rng rng = { tried_number };
	struct object_id id;
	int r = 0;

	for (int i = 0; i < 3 && r >= 0; i++) {
		for (size_t at = 0; at < sizeof(bytes); at++)
			bytes[at] = (uint8_t)test_rand(&rng);
		r = batch_put(b, OBJECT_CHUNK, bytes, sizeof(bytes), &id, err);
	}
	return r;
}

/* --- a batch ------------------------------------------------------------------------------ */

enum after { AFTER_COMMIT_AGAIN, AFTER_CALM_CLOSE, AFTER_CLOSE_IN_TROUBLE, AFTERS };

/* The failed batch once more, as batch.h allows it.  False if a sync had failed: then never. */
static bool commit_again(struct store *s, struct batch *b, bool was_put, uint64_t number)
{
	struct err err = { 0 };
	int r;

	r = was_put ? 0 : specimen_put(b, number, &err);
	if (r >= 0)
		r = batch_commit(b, BATCH_DURABLE, &err);
	if (r == -EIO && strstr(err.msg, "closed and opened again"))
		return false;
	CHECK_OK(r, &err);
	CHECK_EQ(specimen_find(s, number, &err), 1);
	return true;
}

/* One attempt.  Did it meet the fault? */
static bool batch_at(const char *path, uint64_t n, size_t mode, enum batch_durability durability,
		     enum after after)
{
	CLEANUP(store_close_p) struct store *s = open_store(path, STORE_WRITE);
	CLEANUP(batch_end_p) struct batch *b = NULL;
	const uint64_t number = tried_number;
	struct err err = { 0 };
	bool was_put, met;
	int r;

	CHECK_OK(batch_begin(s, &b, &err), &err);
	arm(n, mode);
	r = put_bulk(b, &err);
	if (r >= 0)
		r = specimen_put(b, number, &err);
	was_put = r >= 0;
	if (was_put)
		r = batch_commit(b, durability, &err);
	if (r < 0)
		must_be_disk_trouble(r, &err, mode);

	if (r < 0 && after == AFTER_CLOSE_IN_TROUBLE) {
		batch_end(TAKE_PTR(b));
		store_close(TAKE_PTR(s));
	}
	met = disk_calm() > 0;
	CHECK(r >= 0 || met);
	if (r < 0 && after == AFTER_COMMIT_AGAIN) {
		CHECK_EQ(specimen_find(s, number, &err), 0);
		if (!commit_again(s, b, was_put, number))
			after = AFTER_CALM_CLOSE;
	}
	batch_end(TAKE_PTR(b));
	if (s) {
		CHECK_EQ(specimen_find(s, number, &err), r >= 0 || after == AFTER_COMMIT_AGAIN);
		store_close(TAKE_PTR(s));
	}

	s = open_store(path, STORE_WRITE);
	must_be_sound(s);
	if (r < 0 && after == AFTER_CALM_CLOSE)
		CHECK_EQ(specimen_find(s, number, &err), 0);
	/* All of it was in the log and only the sync of it failed: then it may come back, whole. */
	if (specimen_find(s, number, &err) == 0)
		CHECK_OK(specimen_commit(s, number, BATCH_DURABLE, &err), &err);
	CHECK_OK(specimen_find(s, number, &err), &err);
	CHECK_EQ(specimen_find(s, number, &err), 1);
	forget(s, number);
	return met;
}

TEST(a_batch_that_meets_a_full_disk_leaves_nothing_and_succeeds_once_there_is_room)
{
	for (size_t mode = 0; mode < ARRAY_LEN(modes); mode++) {
		const char *path = store_dir("batch", mode);
		uint64_t n[2] = { 1, 1 };

		make_store(path);
		for (int d = BATCH_SAFE; d <= BATCH_DURABLE; d++)
			while (batch_at(path, n[d], mode, (enum batch_durability)d,
					(enum after)(n[d] % AFTERS))) {
				n[d] += test_stride();
				CHECK(n[d] < N_MOST);
			}
		printf("# %s: %" PRIu64 " places, %" PRIu64 " if durable\n", modes[mode].name,
		       n[BATCH_SAFE] - 1, n[BATCH_DURABLE] - 1);
		CHECK(n[BATCH_SAFE] > 8 &&
		      n[BATCH_DURABLE] + (getenv("SNAP_TESTS_LONG") ? 0 : 5) > n[BATCH_SAFE]);
	}
}

/* --- creation ----------------------------------------------------------------------------- */

static bool creation_at(const char *path, uint64_t n, size_t mode)
{
	CLEANUP(store_close_p) struct store *s = NULL;
	struct err err = { 0 };
	bool met;
	int r;

	arm(n, mode);
	r = store_open(path, STORE_CREATE, &s, &err);
	if (r < 0)
		must_be_disk_trouble(r, &err, mode);
	else
		store_close(TAKE_PTR(s));
	met = disk_calm() > 0;

	s = open_store(path, STORE_CREATE);
	CHECK_OK(specimen_store_sound(s, &err), &err);
	CHECK_OK(specimen_commit(s, FIRST, BATCH_DURABLE, &err), &err);
	store_close(TAKE_PTR(s));
	s = open_store(path, STORE_READ);
	CHECK_EQ(specimen_find(s, FIRST, &err), 1);
	return met;
}

TEST(a_store_that_could_not_be_made_is_made_the_next_time)
{
	for (size_t mode = 0; mode < ARRAY_LEN(modes); mode++) {
		uint64_t n = 1;
		char name[64];

		for (;; n += test_stride()) {
			CHECK(n < N_MOST);
			snprintf(name, sizeof(name), "make-%s-%" PRIu64, modes[mode].name, n);
			if (!creation_at(test_path(name), n, mode))
				break;
		}
		printf("# %s: %" PRIu64 " places\n", modes[mode].name, n - 1);
		CHECK(n > 15);
	}
}

/* --- opening ------------------------------------------------------------------------------ */

static bool opening_at(const char *path, uint64_t n, size_t mode)
{
	CLEANUP(store_close_p) struct store *s = NULL;
	struct err err = { 0 };
	bool met;
	int r;

	arm(n, mode);
	r = store_open(path, n % 2 ? STORE_WRITE : STORE_READ, &s, &err);
	if (r < 0)
		must_be_disk_trouble(r, &err, mode);
	else
		store_close(TAKE_PTR(s));
	met = disk_calm() > 0;
	s = open_store(path, STORE_WRITE);
	must_be_sound(s);
	return met;
}

TEST(a_store_opens_again_after_it_could_not_be_opened)
{
	for (size_t mode = 0; mode < ARRAY_LEN(modes); mode++) {
		const char *path = store_dir("open", mode);
		uint64_t n = 1;

		make_store(path);
		/* Twice each: for reading and for writing ask different amounts. */
		for (unsigned quiet = 0; quiet < 2; n++) {
			CHECK(n < N_MOST);
			quiet = opening_at(path, n, mode) ? 0 : quiet + 1;
		}
		printf("# %s: %" PRIu64 " places\n", modes[mode].name, n - 3);
	}
}

/* --- gc ----------------------------------------------------------------------------------- */

/* Step through a gc, and on when it fails: what is lost then is time, never an object. */
static int stubborn_gc(struct store *s, size_t mode)
{
	CLEANUP(gc_end_p) struct gc *g = NULL;
	struct gc_progress progress = { 0 };
	struct err err = { 0 };
	int r, first = 0;

	r = gc_begin(s, &g, &err);
	if (r < 0) {
		must_be_disk_trouble(r, &err, mode);
		return r;
	}
	for (unsigned failures = 0; failures < 3;) {
		err = (struct err){ 0 };
		r = gc_step(g, 8, &progress, &err);
		if (r == 0)
			break;
		if (r > 0)
			continue;
		if (first == 0)
			must_be_disk_trouble(r, &err, mode);
		first = r;
		failures++;
	}
	return first;
}

static void leave_bulk(struct store *s)
{
	CLEANUP(batch_end_p) struct batch *b = NULL;
	struct err err = { 0 };

	CHECK_OK(batch_begin(s, &b, &err), &err);
	CHECK_OK(put_bulk(b, &err), &err);
	CHECK_OK(batch_commit(b, BATCH_SAFE, &err), &err);
}

static bool gc_at(const char *path, uint64_t n, size_t mode)
{
	CLEANUP(store_close_p) struct store *s = open_store(path, STORE_WRITE);
	const uint64_t kept = kept_number, lost = tried_number;
	struct err err = { 0 };
	bool met;
	int r;

	CHECK_OK(specimen_commit(s, kept, BATCH_SAFE, &err), &err);
	CHECK_OK(specimen_commit(s, lost, BATCH_SAFE, &err), &err);
	CHECK_OK(specimen_remove(s, lost, &err), &err);
	leave_bulk(s);
	arm(n, mode);
	r = stubborn_gc(s, mode);
	if (n % 2)
		store_close(TAKE_PTR(s));
	met = disk_calm() > 0;
	CHECK(r >= 0 || met);
	store_close(TAKE_PTR(s));

	s = open_store(path, STORE_WRITE);
	must_be_sound(s);
	CHECK_EQ(specimen_find(s, kept, &err), 1);
	CHECK_EQ(specimen_find(s, lost, &err), 0);
	CHECK_OK(specimen_commit(s, lost, BATCH_SAFE, &err), &err);
	forget(s, kept);
	must_be_sound(s);
	CHECK_EQ(specimen_find(s, lost, &err), 1);
	forget(s, lost);
	return met;
}

TEST(a_gc_that_meets_a_full_disk_frees_less_and_nothing_else)
{
	for (size_t mode = 0; mode < ARRAY_LEN(modes); mode++) {
		const char *path = store_dir("gc", mode);
		uint64_t n = 1;

		make_store(path);
		for (; gc_at(path, n, mode); n += test_stride())
			CHECK(n < N_MOST);
		printf("# %s: %" PRIu64 " places\n", modes[mode].name, n - 1);
		CHECK(n > 15);
	}
}

/* --- checkpoint and close ----------------------------------------------------------------- */

static bool checkpoint_at(const char *path, uint64_t n, size_t mode)
{
	CLEANUP(store_close_p) struct store *s = open_store(path, STORE_WRITE);
	const uint64_t number = tried_number;
	struct err err = { 0 };
	bool met;
	int r;

	CHECK_OK(specimen_commit(s, number, BATCH_SAFE, &err), &err);
	arm(n, mode);
	r = store_checkpoint(s, &err);
	if (r < 0)
		must_be_disk_trouble(r, &err, mode);
	if (n % 2)
		store_close(TAKE_PTR(s));
	met = disk_calm() > 0;
	CHECK(r >= 0 || met);
	if (s) {
		CHECK_EQ(specimen_find(s, number, &err), 1);
		r = store_checkpoint(s, &err);
		if (r < 0) /* a sync failed before, and that is not believed again */
			CHECK_HAS(err.msg, "closed and opened again");
		store_close(TAKE_PTR(s));
	}

	s = open_store(path, STORE_WRITE);
	must_be_sound(s);
	CHECK_EQ(specimen_find(s, number, &err), 1);
	forget(s, number);
	return met;
}

TEST(a_checkpoint_that_meets_a_full_disk_loses_nothing)
{
	for (size_t mode = 0; mode < ARRAY_LEN(modes); mode++) {
		const char *path = store_dir("checkpoint", mode);
		uint64_t n = 1;

		make_store(path);
		/* Closing asks for more, so only two attempts in a row tell the end. */
		for (unsigned quiet = 0; quiet < 2; n++) {
			CHECK(n < N_MOST);
			quiet = checkpoint_at(path, n, mode) ? 0 : quiet + 1;
		}
		printf("# %s: %" PRIu64 " places\n", modes[mode].name, n - 3);
		CHECK(n > 8);
	}
}

int main(void)
{
	return run_all("full");
}
