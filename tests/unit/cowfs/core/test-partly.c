/* Large files that are changed while they are promised. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/cowfs/core/partly-fixture.h"

static const struct layer_call call = { .uid = 1000, .gid = 1000, .may_wait = true };

/* --- a model ------------------------------------------------------------------------------ */

struct model {
	uint8_t *bytes; /* owned; room for 2 * SIZE */
	uint64_t size;
};

static struct model model_new(const struct behind *b)
{
	struct model m = { .bytes = calloc(2, SIZE), .size = SIZE };

	CHECK(m.bytes);
	memcpy(m.bytes, b->bytes, SIZE);
	return m;
}

static void model_done(struct model *m)
{
	free(m->bytes);
}

static void model_write(struct model *m, uint64_t off, const void *data, size_t len)
{
	memcpy(m->bytes + off, data, len);
	m->size = off + len > m->size ? off + len : m->size;
}

static void model_truncate(struct model *m, uint64_t size)
{
	if (size < m->size)
		memset(m->bytes + size, 0, m->size - size);
	m->size = size;
}

static void check_same(struct live *v, const struct model *m)
{
	CLEANUP(buf_done) struct buf got = BUF_INIT;

	live_get(v, "big", &got);
	CHECK_EQ(got.len, m->size);
	CHECK(memcmp(got.data, m->bytes, m->size) == 0);
}

static void write_both(struct live *v, struct model *m, uint64_t off, const void *data, size_t len)
{
	CHECK_EQ(live_try_write(v, "big", off, data, len), 0);
	model_write(m, off, data, len);
}

static int read_at(struct live *v, uint64_t off, size_t len, struct layer_bytes *ret)
{
	const uint64_t node = live_hold(v, "big");
	struct err err = { 0 };
	int r = layer_read(v->l, &call, node, off, len, ret, &err);

	live_drop(v, node);
	return r;
}

static void check_part(struct live *v, const struct model *m, uint64_t off, size_t len)
{
	CLEANUP(layer_bytes_done) struct layer_bytes got = { 0 };

	CHECK_EQ(read_at(v, off, len, &got), 0);
	CHECK_EQ(got.len, off >= m->size ? 0 : m->size - off < got.len ? m->size - off : got.len);
	for (int i = 0; i < got.n; i++) {
		CHECK(memcmp(got.iov[i].iov_base, m->bytes + off, got.iov[i].iov_len) == 0);
		off += got.iov[i].iov_len;
	}
}

static int sync_file(struct live *v)
{
	struct err err = { 0 };

	return layer_sync(v->l, 0, &err);
}

/* --- tests -------------------------------------------------------------------------------- */

TEST(a_change_reads_the_blocks_that_it_covers_in_part_and_no_others)
{
	CLEANUP(live_close) struct live v = { 0 };
	CLEANUP(behind_done) struct behind b;
	CLEANUP(model_done) struct model m = { 0 };
	static uint8_t blocks[3 * CHUNK_SIZE_MAX];

	begin(&v, &b, "blocks");
	m = model_new(&b);
	write_both(&v, &m, 5 * BLOCK + 10, "hello", 5);
	CHECK_EQ(b.peeked, 1);
	CHECK_EQ(b.peek_max, BLOCK);
	write_both(&v, &m, 5 * BLOCK + 30000, "again", 5);
	CHECK_EQ(b.peeked, 1);
	memset(blocks, 3, sizeof(blocks));
	write_both(&v, &m, 8 * BLOCK, blocks, 2 * BLOCK);
	CHECK_EQ(b.peeked, 1);
	write_both(&v, &m, 20 * BLOCK + 1, blocks, 2 * BLOCK);
	CHECK_EQ(b.peeked, 3);
	/* The end of the file, and beyond it. */
	write_both(&v, &m, SIZE - 3, "the end", 7);
	CHECK_EQ(b.peeked, 4);
	write_both(&v, &m, 160 * BLOCK, blocks, BLOCK);
	CHECK_EQ(b.peeked, 4);
	CHECK_EQ(b.kept, 0);
	check_same(&v, &m);
	CHECK_EQ(b.kept, 0);
	CHECK(b.hurried > 0);
}

TEST(a_sync_keeps_the_promise_and_then_a_crash_takes_nothing)
{
	CLEANUP(live_close) struct live v = { 0 };
	CLEANUP(behind_done) struct behind b;
	CLEANUP(model_done) struct model m = { 0 };

	begin(&v, &b, "sync");
	m = model_new(&b);
	write_both(&v, &m, 7, "kept", 4);
	CHECK_EQ(b.kept, 0);
	CHECK_EQ(sync_file(&v), 0);
	CHECK_EQ(b.kept, 1);
	write_both(&v, &m, SIZE / 2, "lost", 4);
	live_crash(&v);
	memcpy(m.bytes + SIZE / 2, b.bytes + SIZE / 2, 4);
	check_same(&v, &m);
}

TEST(a_crash_before_that_leaves_the_file_as_it_was_promised)
{
	CLEANUP(live_close) struct live v = { 0 };
	CLEANUP(behind_done) struct behind b;
	CLEANUP(model_done) struct model m = { 0 };

	begin(&v, &b, "crash");
	m = model_new(&b);
	CHECK_EQ(live_try_write(&v, "big", 7, "gone", 4), 0);
	CHECK_EQ(live_try_truncate(&v, "big", 100), 0);
	live_crash(&v);
	CHECK_EQ(b.kept, 0);
	check_same(&v, &m);
}

TEST(what_is_truncated_is_not_read)
{
	CLEANUP(live_close) struct live v = { 0 };
	CLEANUP(behind_done) struct behind b;
	CLEANUP(model_done) struct model m = { 0 };

	begin(&v, &b, "truncate");
	m = model_new(&b);
	CHECK_EQ(live_try_truncate(&v, "big", 3 * BLOCK + 100), 0);
	model_truncate(&m, 3 * BLOCK + 100);
	CHECK_EQ(live_try_truncate(&v, "big", SIZE + BLOCK), 0);
	model_truncate(&m, SIZE + BLOCK);
	CHECK_EQ(b.peeked + b.kept, 0);
	check_same(&v, &m);
	/* Behind the cut nothing of the promise shows. */
	write_both(&v, &m, 3 * BLOCK + 200, "x", 1);
	check_same(&v, &m);
	CHECK_EQ(b.kept, 0);
	live_reopen(&v);
	CHECK_EQ(b.kept, 1);
	check_same(&v, &m);
}

TEST(truncation_to_nothing_needs_neither_bytes_nor_the_promise)
{
	CLEANUP(live_close) struct live v = { 0 };
	CLEANUP(behind_done) struct behind b;
	CLEANUP(model_done) struct model m = { 0 };

	begin(&v, &b, "empty");
	m = model_new(&b);
	write_both(&v, &m, 10, "x", 1);
	CHECK_EQ(live_try_truncate(&v, "big", 0), 0);
	model_truncate(&m, 0);
	write_both(&v, &m, 5, "new", 3);
	CHECK_EQ(sync_file(&v), 0);
	CHECK_EQ(b.kept, 0);
	live_crash(&v);
	check_same(&v, &m);
}

TEST(a_file_that_may_change_before_it_is_kept_is_kept_first)
{
	CLEANUP(live_close) struct live v = { 0 };
	CLEANUP(behind_done) struct behind b;
	CLEANUP(model_done) struct model m = { 0 };

	begin(&v, &b, "unsure");
	m = model_new(&b);
	b.unsure = true;
	write_both(&v, &m, 10, "x", 1);
	CHECK_EQ(b.kept, 1);
	check_same(&v, &m);
}

/* Else an fsync would have to wait for any number of them. */
TEST(beside_another_a_file_is_kept_first_if_both_are_too_large)
{
	CLEANUP(live_close) struct live v = { .options.partly_max = 2 * SIZE - 1 };
	CLEANUP(behind_done) struct behind b;
	CLEANUP(model_done) struct model m = { 0 };

	begin(&v, &b, "many");
	m = model_new(&b);
	write_both(&v, &m, 10, "x", 1);
	write_both(&v, &m, 20 * BLOCK + 10, "x", 1);
	CHECK_EQ(b.kept, 0);
	CHECK_EQ(live_try_write(&v, "twin", 10, "y", 1), 0);
	CHECK_EQ(b.kept, 1);
	check_same(&v, &m);
	CHECK_EQ(sync_file(&v), 0);
	live_crash(&v);
	check_same(&v, &m);
}

TEST(two_files_may_be_changed_before_they_are_kept)
{
	CLEANUP(live_close) struct live v = { .options.partly_max = 2 * SIZE };
	CLEANUP(behind_done) struct behind b;

	begin(&v, &b, "two");
	CHECK_EQ(live_try_write(&v, "big", 10, "x", 1), 0);
	CHECK_EQ(live_try_write(&v, "twin", 10, "y", 1), 0);
	CHECK_EQ(b.kept, 0);
	CHECK_EQ(sync_file(&v), 0);
	CHECK_EQ(b.kept, 2);
}

/* Whoever asks finds out, and nothing else that was changed suffers. */
TEST(what_is_lost_after_all_is_never_shown_and_does_not_stop_others)
{
	CLEANUP(live_close) struct live v = { 0 };
	CLEANUP(behind_done) struct behind b;
	CLEANUP(layer_bytes_done) struct layer_bytes got = { 0 };
	struct err err = { 0 };
	uint64_t node;

	begin(&v, &b, "lost");
	CHECK_EQ(live_try_write(&v, "big", 10, "mine", 4), 0);
	live_put(&v, "other", "other");
	b.lost = true;
	/* The block is its own by now. */
	CHECK_EQ(read_at(&v, 0, 100, &got), 0);
	CHECK(memcmp((const uint8_t *)got.iov[0].iov_base + 10, "mine", 4) == 0);
	layer_bytes_done(&got);
	CHECK_EQ(read_at(&v, 5 * BLOCK, 100, &got), -EIO);
	node = live_hold(&v, "big");
	/* Of another file: it is stored, and fails for nothing. */
	CHECK_EQ(sync_file(&v), 0);
	CHECK_EQ(read_at(&v, 0, 100, &got), -EIO);
	/* Of this one, although the loss was found by somebody else before. */
	CHECK_EQ(layer_sync(v.l, node, &err), -EIO);
	CHECK_EQ(layer_sync(v.l, node, &err), -EIO);
	live_drop(&v, node);
	live_crash(&v);
	CHECK(live_has(&v, "other", "other"));
	CHECK_EQ(read_at(&v, 0, 100, &got), -EIO);
	CHECK_EQ(live_stat(&v, "big").st_size, (off_t)SIZE);
}

TEST(what_is_lost_takes_nothing_with_it_when_the_layer_is_closed)
{
	CLEANUP(live_close) struct live v = { 0 };
	CLEANUP(behind_done) struct behind b;
	CLEANUP(layer_bytes_done) struct layer_bytes got = { 0 };

	begin(&v, &b, "closed");
	CHECK_EQ(live_try_write(&v, "big", 10, "mine", 4), 0);
	live_put(&v, "other", "other");
	b.lost = true;
	live_reopen(&v);
	CHECK(live_has(&v, "other", "other"));
	CHECK_EQ(read_at(&v, 0, 100, &got), -EIO);
}

TEST(a_file_that_was_lost_can_be_begun_anew)
{
	CLEANUP(live_close) struct live v = { 0 };
	CLEANUP(behind_done) struct behind b;
	struct err err = { 0 };
	uint64_t node;

	begin(&v, &b, "anew");
	node = live_hold(&v, "big");
	CHECK_EQ(live_try_write(&v, "big", 10, "mine", 4), 0);
	b.lost = true;
	CHECK_EQ(layer_sync(v.l, node, &err), -EIO);
	CHECK_EQ(live_try_truncate(&v, "big", 0), 0);
	CHECK_EQ(live_try_write(&v, "big", 0, "anew", 4), 0);
	CHECK_EQ(layer_sync(v.l, node, &err), 0);
	live_drop(&v, node);
	live_crash(&v);
	CHECK(live_has(&v, "big", "anew"));
}

TEST(a_failure_that_passes_loses_nothing)
{
	CLEANUP(live_close) struct live v = { 0 };
	CLEANUP(behind_done) struct behind b;
	CLEANUP(model_done) struct model m = { 0 };

	begin(&v, &b, "passes");
	m = model_new(&b);
	write_both(&v, &m, 10, "mine", 4);
	b.failing = true;
	CHECK_EQ(sync_file(&v), -EIO);
	CHECK_EQ(sync_file(&v), -EIO);
	b.failing = false;
	CHECK_EQ(sync_file(&v), 0);
	live_crash(&v);
	check_same(&v, &m);
}

TEST(a_file_without_a_name_is_kept_as_well)
{
	CLEANUP(live_close) struct live v = { 0 };
	CLEANUP(behind_done) struct behind b;
	CLEANUP(buf_done) struct buf got = BUF_INIT;
	uint64_t node;

	begin(&v, &b, "nameless");
	node = live_hold(&v, "big");
	CHECK_EQ(live_try_write(&v, "big", 10, "mine", 4), 0);
	CHECK_EQ(live_try_unlink(&v, "big"), 0);
	CHECK_EQ(sync_file(&v), 0);
	CHECK_EQ(b.kept, 1);
	live_get_node(&v, node, &got);
	memcpy(b.bytes + 10, "mine", 4);
	CHECK(got.len == SIZE && memcmp(got.data, b.bytes, SIZE) == 0);
	live_drop(&v, node);
}

static void punch(struct live *v, struct model *m, uint64_t off, uint64_t len)
{
	const uint64_t node = live_hold(v, "big");
	const uint64_t end = off + len < m->size ? off + len : m->size;

	CHECK_EQ(layer_allocate(v->l, &call, node, LAYER_ALLOC_PUNCH | LAYER_ALLOC_KEEP_SIZE, off,
				len, NULL),
		 0);
	live_drop(v, node);
	if (off < end)
		memset(m->bytes + off, 0, end - off);
}

TEST(holes_are_punched_without_the_rest)
{
	CLEANUP(live_close) struct live v = { 0 };
	CLEANUP(behind_done) struct behind b;
	CLEANUP(model_done) struct model m = { 0 };

	begin(&v, &b, "punch");
	m = model_new(&b);
	punch(&v, &m, 2 * BLOCK + 5, 3 * BLOCK);
	CHECK_EQ(b.peeked, 2);
	punch(&v, &m, 10 * BLOCK, 4 * BLOCK);
	punch(&v, &m, 150 * BLOCK, 100 * BLOCK);
	CHECK_EQ(b.peeked, 2);
	CHECK_EQ(b.kept, 0);
	check_same(&v, &m);
	live_reopen(&v);
	check_same(&v, &m);
}

/* --- anything after anything -------------------------------------------------------------- */

static void step(struct live *v, struct test_rng *rng, struct model *m, struct model *stored)
{
	static uint8_t data[5 * CHUNK_SIZE_MAX];
	const uint64_t off = test_rand(rng) % (2 * SIZE - sizeof(data));
	const size_t len = 1 + test_rand(rng) % (sizeof(data) - 1);

	switch (test_rand(rng) % 12) {
	case 0:
	case 1:
	case 2:
	case 3:
		memset(data, (int)(test_rand(rng) % 256), len);
		write_both(v, m, off, data, len);
		break;
	case 4:
		write_both(v, m, off, "small", 5);
		break;
	case 5:
		CHECK_EQ(live_try_truncate(v, "big", off + 1), 0);
		model_truncate(m, off + 1);
		break;
	case 6:
	case 7:
		punch(v, m, off, len);
		break;
	case 8:
		if (test_rand(rng) % 4 > 0)
			return;
		CHECK_EQ(sync_file(v), 0);
		memcpy(stored->bytes, m->bytes, 2 * SIZE);
		stored->size = m->size;
		break;
	case 9:
		if (test_rand(rng) % 4 > 0)
			return;
		live_crash(v);
		memcpy(m->bytes, stored->bytes, 2 * SIZE);
		m->size = stored->size;
		break;
	default:
		check_part(v, m, off, len);
	}
}

TEST(whatever_is_done_to_it_it_is_like_any_file)
{
	const uint64_t seed = test_seed();

	for (unsigned i = 0; i < 12; i++) {
		CLEANUP(live_close) struct live v = { 0 };
		CLEANUP(behind_done) struct behind b;
		CLEANUP(model_done) struct model m = { 0 }, stored = { 0 };
		struct test_rng rng = { .s = seed + i };
		char name[32];

		snprintf(name, sizeof(name), "any-%u", i);
		begin(&v, &b, name);
		m = model_new(&b);
		stored = model_new(&b);
		for (unsigned n = 0; n < 60; n++)
			step(&v, &rng, &m, &stored);
		check_same(&v, &m);
		live_reopen(&v);
		check_same(&v, &m);
	}
}

TEST_MAIN("partly")
