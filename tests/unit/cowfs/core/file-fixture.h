/*
 * file-fixture.h - what the tests of files share: a store with its cache, and operations that
 * get what they need and are done again.
 */
#pragma once

#include <errno.h>

#include "cowfs/core/file.h"
#include "tests/unit/cowfs/store/content-fixture.h"

struct world {
	struct store *s;
	struct cache *c;
	unsigned needed; /* objects that operations lacked */
};

static inline struct world world_open(void)
{
	const struct cache_limits limits = { .chunk_bytes = 8 << 20, .meta_bytes = 8 << 20 };
	struct world w = { .s = open_store("store") };
	struct err err = { 0 };

	CHECK_OK(cache_new(w.s, &limits, &w.c, &err), &err);
	return w;
}

static inline void world_close(struct world *w)
{
	cache_free(w->c);
	store_close(w->s);
}

/* What an operation lacked, held until it is done. */
struct held {
	const struct cached *list[32];
	size_t n;
};

static inline void held_done(struct held *h)
{
	while (h->n > 0)
		cached_unref(h->list[--h->n]);
}

/* Did it lack something?  Then that is here now, and the file is as it was. */
static inline bool again(struct world *w, struct held *h, int r, const struct need *need)
{
	struct err err = { 0 };

	if (r != -EAGAIN)
		return false;
	CHECK_EQ(need->kind, NEED_OBJECT);
	CHECK(h->n < ARRAY_LEN(h->list));
	CHECK(!cache_find(w->c, need->object.kind, &need->object.id));
	CHECK_OK(cache_load(w->c, need->object.kind, &need->object.id, &h->list[h->n], &err), &err);
	h->n++;
	w->needed++;
	return true;
}

static inline void check_untouched(const struct file *f, const struct file *before)
{
	CHECK_MEM(f, sizeof(*f), before, sizeof(*before));
}

static inline void write_at(struct world *w, struct file *f, uint64_t off, const void *data,
			    size_t len)
{
	CLEANUP(held_done) struct held h = { .n = 0 };
	const uint64_t memory = file_memory(f);
	const struct file before = *f;
	struct need need;
	int64_t grown;
	int r;

	while (r = file_write(f, w->c, off, data, len, &grown, &need), again(w, &h, r, &need)) {
		CHECK_EQ(grown, 0);
		check_untouched(f, &before);
	}
	CHECK_EQ(r, 0);
	CHECK_EQ((int64_t)(file_memory(f) - memory), grown);
}

static inline void punch(struct world *w, struct file *f, uint64_t off, uint64_t len)
{
	CLEANUP(held_done) struct held h = { .n = 0 };
	const uint64_t memory = file_memory(f);
	const struct file before = *f;
	struct need need;
	int64_t grown;
	int r;

	while (r = file_punch(f, w->c, off, len, &grown, &need), again(w, &h, r, &need)) {
		CHECK_EQ(grown, 0);
		check_untouched(f, &before);
	}
	CHECK_EQ(r, 0);
	CHECK_EQ((int64_t)(file_memory(f) - memory), grown);
}

static inline void allocate_at(struct world *w, struct file *f, uint64_t off, uint64_t len)
{
	CLEANUP(held_done) struct held h = { .n = 0 };
	const uint64_t memory = file_memory(f);
	const struct file before = *f;
	struct need need;
	int r;

	while (r = file_allocate(f, w->c, off, len, &need), again(w, &h, r, &need))
		check_untouched(f, &before);
	CHECK_EQ(r, 0);
	CHECK_EQ(file_memory(f), memory);
}

static inline void truncate_to(struct file *f, uint64_t size)
{
	const uint64_t memory = file_memory(f);
	int64_t grown;

	CHECK_EQ(file_truncate(f, size, &grown), 0);
	CHECK_EQ((int64_t)(file_memory(f) - memory), grown);
}

static inline void settle(struct file *f, const struct file *frozen, const struct content *stored)
{
	const uint64_t memory = file_memory(f);
	int64_t grown;

	file_settle(f, frozen, stored, &grown);
	CHECK_EQ((int64_t)(file_memory(f) - memory), grown);
}

static inline struct file freeze(struct file *f)
{
	struct file frozen = { 0 };

	CHECK_EQ(file_freeze(f, &frozen), 0);
	return frozen;
}

/* In a batch of its own, committed. */
static inline struct content store_file(struct world *w, const struct file *frozen)
{
	CLEANUP(batch_end_p) struct batch *b = stock_begin(w->s);
	struct err err = { 0 };
	struct content c;

	CHECK_OK(file_store(frozen, b, w->c, &c, &err), &err);
	stock_commit(b);
	return c;
}

static inline void persist(struct world *w, struct file *f)
{
	CLEANUP(file_done) struct file frozen = freeze(f);
	const struct content stored = store_file(w, &frozen);

	settle(f, &frozen, &stored);
}

/* Copy a piece, and let its block go. */
static inline void piece_read(struct world *w, const struct piece *p, uint8_t *to)
{
	const struct cached *chunk = NULL;
	struct err err = { 0 };

	if (p->block) {
		CHECK(p->at >= p->block->lo && p->at + p->len <= p->block->hi);
		memcpy(to, p->block->data + p->at, p->len);
		block_unref(p->block);
	} else if (object_id_is_zero(&p->chunk)) {
		memset(to, 0, p->len);
	} else {
		CHECK_OK(cache_load(w->c, OBJECT_CHUNK, &p->chunk, &chunk, &err), &err);
		CHECK_EQ(chunk->len, p->chunk_len);
		CHECK(p->at + p->len <= chunk->len);
		memcpy(to, chunk->data + p->at, p->len);
		cached_unref(chunk);
	}
}

/* Up to `len` bytes; how many there were. */
static inline size_t read_at(struct world *w, const struct file *f, uint64_t off, uint8_t *to,
			     size_t len)
{
	CLEANUP(held_done) struct held h = { .n = 0 };
	AUTO_FREE struct piece *list = calloc(FILE_PIECES(len), sizeof(*list));
	size_t n, done = 0;
	struct need need;
	int r;

	CHECK(list);
	while (r = file_map(f, w->c, off, len, list, &n, &need), again(w, &h, r, &need))
		;
	CHECK_EQ(r, 0);
	CHECK(n <= FILE_PIECES(len));
	for (size_t i = 0; i < n; i++) {
		CHECK(list[i].len > 0 && list[i].len <= len - done);
		piece_read(w, &list[i], to + done);
		done += list[i].len;
	}
	return done;
}

static inline void check_bytes(struct world *w, const struct file *f, uint64_t off,
			       const void *want, size_t len)
{
	AUTO_FREE uint8_t *got = malloc(len > 0 ? len : 1);

	CHECK(got);
	CHECK_EQ(read_at(w, f, off, got, len), len);
	CHECK_MEM(got, len, want, len);
}

static inline void check_zeros(struct world *w, const struct file *f, uint64_t off, size_t len)
{
	AUTO_FREE uint8_t *zeros = calloc(1, len);

	CHECK(zeros);
	check_bytes(w, f, off, zeros, len);
}

/* The answer, or a negative errno. */
static inline int64_t seek_from(struct world *w, const struct file *f, uint64_t off, bool hole)
{
	CLEANUP(held_done) struct held h = { .n = 0 };
	struct need need;
	uint64_t at = 0;
	int r;

	while (r = file_seek(f, w->c, off, hole, &at, &need), again(w, &h, r, &need))
		;
	return r < 0 ? r : (int64_t)at;
}

/* --- files to begin with, and short ways to say things -------------------------------------- */

static inline struct file new_file(void)
{
	static const struct content nothing;
	struct file f;

	file_init(&f, &nothing);
	return f;
}

/* The first `len` bytes of fill(), stored, and nothing of it in memory. */
static inline struct file stored_file(struct world *w, uint64_t len)
{
	CLEANUP(batch_end_p) struct batch *b = stock_begin(w->s);
	AUTO_FREE uint8_t *bytes = filled(len);
	const struct content c = put(b, bytes, len);
	struct file f;

	stock_commit(b);
	file_init(&f, &c);
	return f;
}

static inline void check_filled(struct world *w, const struct file *f, uint64_t off, uint64_t len)
{
	AUTO_FREE uint8_t *bytes = malloc(len);

	CHECK(bytes);
	fill(bytes, off, len);
	check_bytes(w, f, off, bytes, len);
}

static inline void write_text(struct world *w, struct file *f, uint64_t off, const char *text)
{
	write_at(w, f, off, text, strlen(text));
}

static inline void check_text(struct world *w, const struct file *f, uint64_t off, const char *text)
{
	check_bytes(w, f, off, text, strlen(text));
}

static inline void write_full(struct world *w, struct file *f, uint64_t off, uint64_t len)
{
	AUTO_FREE uint8_t *bytes = malloc(len);

	CHECK(bytes);
	fill(bytes, off, len);
	write_at(w, f, off, bytes, len);
}
