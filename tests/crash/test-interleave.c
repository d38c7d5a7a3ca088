/*
 * What threads meet once in a million, brought about on purpose: the linker lets this
 * program stand between the store and its packing of objects (--wrap), and act there as
 * another thread would.
 */
#include "cowfs/store/upkeep/gc.h"
#include "tests/crash/disk.h"
#include "tests/crash/specimen.h"
#include "tests/lib/test.h"

static struct test_rng rng;

typedef void (*meanwhile_fn)(void);

static struct store *meanwhile_store;
static struct gc *meanwhile_gc;
static uint64_t meanwhile_number;
static meanwhile_fn while_packing, while_unpacking; /* called once, then forgotten */

int __real_object_pack(struct codec *c, const void *data, size_t len, struct buf *out,
		       struct err *err);
int __wrap_object_pack(struct codec *c, const void *data, size_t len, struct buf *out,
		       struct err *err);
int __real_object_unpack(struct codec *c, const void *packed, size_t len, size_t max,
			 struct buf *out, struct err *err);
int __wrap_object_unpack(struct codec *c, const void *packed, size_t len, size_t max,
			 struct buf *out, struct err *err);

static void happen(meanwhile_fn *what)
{
	meanwhile_fn fn = *what;

	if (!fn)
		return;
	*what = NULL;
	fn();
}

int __wrap_object_pack(struct codec *c, const void *data, size_t len, struct buf *out,
		       struct err *err)
{
	if (while_packing)
		happen(&while_packing);
	return __real_object_pack(c, data, len, out, err);
}

int __wrap_object_unpack(struct codec *c, const void *packed, size_t len, size_t max,
			 struct buf *out, struct err *err)
{
	int r = __real_object_unpack(c, packed, len, max, out, err);

	if (while_unpacking)
		happen(&while_unpacking);
	return r;
}

/* Objects of the specimen, committed without a name. */
static void leave_garbage(void)
{
	CLEANUP(batch_end_p) struct batch *b = NULL;
	struct object_id root;
	struct err err = { 0 };

	CHECK_OK(batch_begin(meanwhile_store, &b, &err), &err);
	CHECK_OK(specimen_put_tree(b, meanwhile_number, &root, &err), &err);
	CHECK_OK(batch_commit(b, BATCH_SAFE, &err), &err);
}

static void step_gc_to(enum gc_phase phase)
{
	struct gc_progress progress = { 0 };
	struct err err = { 0 };

	while (progress.phase < phase)
		CHECK_OK(gc_step(meanwhile_gc, 1000, &progress, &err), &err);
}

static void begin_gc(void)
{
	struct err err = { 0 };

	CHECK_OK(gc_begin(meanwhile_store, &meanwhile_gc, &err), &err);
	step_gc_to(GC_SWEEP);
}

static void end_gc(void)
{
	if (meanwhile_gc)
		step_gc_to(GC_DONE);
	gc_end(TAKE_PTR(meanwhile_gc));
}

static void garbage_then_marked_gc(void)
{
	leave_garbage();
	begin_gc();
}

static void begin_and_sweep(void)
{
	begin_gc();
	step_gc_to(GC_SHRINK);
}

static void whole_gc(void)
{
	begin_gc();
	end_gc();
}

static void gc_and_the_next_marked(void)
{
	whole_gc();
	begin_gc();
}

static void set_stage(const char *name)
{
	struct err err = { 0 };

	CHECK_OK(store_open(test_path(name), STORE_CREATE, &meanwhile_store, &err), &err);
	meanwhile_number = test_rand(&rng) | SPECIMEN_SMALL;
}

static void clear_stage(void)
{
	struct err err = { 0 };

	CHECK(!while_packing && !while_unpacking);
	end_gc();
	CHECK_OK(specimen_store_sound(meanwhile_store, &err), &err);
	CHECK_OK(specimen_find(meanwhile_store, meanwhile_number, &err), &err);
	CHECK_EQ(specimen_find(meanwhile_store, meanwhile_number, &err), 1);
	CHECK_OK(specimen_remove(meanwhile_store, meanwhile_number, &err), &err);
	CHECK_OK(specimen_store_empties(meanwhile_store, &err), &err);
	store_close(TAKE_PTR(meanwhile_store));
}

static void commit_specimen(void)
{
	struct err err = { 0 };

	CHECK_OK(specimen_commit(meanwhile_store, meanwhile_number, BATCH_SAFE, &err), &err);
}

TEST(an_object_that_another_batch_stores_between_miss_and_insert_survives_the_gc)
{
	set_stage("between-miss-and-insert");
	while_packing = garbage_then_marked_gc;
	commit_specimen();
	clear_stage();
}

TEST(an_object_that_a_gc_under_way_sweeps_while_it_is_compared_is_stored_anew)
{
	set_stage("swept-under-way");
	leave_garbage();
	while_unpacking = begin_and_sweep;
	commit_specimen();
	clear_stage();
}

TEST(an_object_that_a_whole_gc_sweeps_while_it_is_compared_is_stored_anew)
{
	set_stage("swept-by-whole-gc");
	leave_garbage();
	while_unpacking = whole_gc;
	commit_specimen();
	clear_stage();
}

TEST(an_object_that_a_gc_swept_before_the_one_under_way_is_stored_anew)
{
	set_stage("swept-before");
	leave_garbage();
	while_unpacking = gc_and_the_next_marked;
	commit_specimen();
	clear_stage();
}

TEST(what_a_batch_holds_survives_when_another_batch_stores_it_and_a_gc_follows)
{
	CLEANUP(batch_end_p) struct batch *b = NULL;
	struct err err = { 0 };

	set_stage("held-and-stored");
	CHECK_OK(batch_begin(meanwhile_store, &b, &err), &err);
	CHECK_OK(specimen_put(b, meanwhile_number, &err), &err);
	leave_garbage();
	whole_gc();
	CHECK_OK(batch_commit(b, BATCH_SAFE, &err), &err);
	batch_end(TAKE_PTR(b));
	clear_stage();
}

int main(void)
{
	rng.s = test_seed();
	disk_install();
	return test_run_all("interleave");
}
