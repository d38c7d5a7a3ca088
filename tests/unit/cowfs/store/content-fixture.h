/*
 * content-fixture.h - what the tests of content share: every step checked, on one line.
 */
#pragma once

#include "cowfs/store/content.h"
#include "tests/lib/stock.h"
#include "tests/lib/test.h"

#define BLOCK ((uint64_t)CHUNK_SIZE_MAX)
#define NODE  (BLOCK * RECIPE_FANOUT) /* what a node of level 0 covers */
#define TIB   ((uint64_t)1 << 40)

static inline struct store *open_store(const char *name)
{
	return stock_open(test_path(name), STORE_CREATE);
}

static inline struct content_writer *new_writer(struct batch *b)
{
	struct content_writer *w = NULL;
	struct err err = { 0 };

	CHECK_OK(content_writer_new(b, &w, &err), &err);
	return w;
}

static inline struct content_reader *new_reader(struct store *s, const struct content *c)
{
	struct content_reader *rd = NULL;
	struct err err = { 0 };

	CHECK_OK(content_reader_new(s, c, &rd, &err), &err);
	return rd;
}

static inline void add(struct content_writer *w, const void *data, uint64_t len)
{
	struct err err = { 0 };

	CHECK_OK(content_writer_add(w, data, (size_t)len, &err), &err);
}

static inline void leave_hole(struct content_writer *w, uint64_t hole)
{
	struct err err = { 0 };

	CHECK_OK(content_writer_skip(w, hole, &err), &err);
}

static inline struct content finish(struct content_writer *w)
{
	struct content c;
	struct err err = { 0 };

	CHECK_OK(content_writer_finish(w, &c, &err), &err);
	return c;
}

static inline struct content put(struct batch *b, const void *data, uint64_t len)
{
	struct content c;
	struct err err = { 0 };

	CHECK_OK(content_put(b, data, (size_t)len, &c, &err), &err);
	return c;
}

static inline void check_content(const struct content *c, enum content_form form, uint64_t size,
				 uint64_t data)
{
	CHECK_EQ(c->form, form);
	CHECK_EQ(c->size, size);
	CHECK_EQ(c->data, data);
	CHECK_EQ(object_id_is_zero(&c->id), form == CONTENT_HOLE);
}

/* Bytes that differ from place to place and do not compress. */
static inline void fill(uint8_t *p, uint64_t off, uint64_t len)
{
	while (len > 0) {
		struct test_rng rng = { .s = off / 8 };
		const uint64_t word = test_rand(&rng), in_word = off % 8;
		const uint64_t n = len < 8 - in_word ? len : 8 - in_word;

		memcpy(p, (const uint8_t *)&word + in_word, n);
		p += n;
		off += n;
		len -= n;
	}
}

static inline uint8_t *filled(uint64_t len)
{
	uint8_t *p = malloc(len > 0 ? len : 1);

	CHECK(p);
	fill(p, 0, len);
	return p;
}

/* Read into memory of exactly that size, so that a sanitizer sees a byte too many. */
static inline void check_read(struct content_reader *rd, uint64_t off, uint64_t len,
			      const uint8_t *want, uint64_t n_want)
{
	AUTO_FREE uint8_t *p = malloc(len > 0 ? len : 1);
	struct err err = { 0 };
	ssize_t n;

	CHECK(p);
	memset(p, 0xaa, len);
	n = content_reader_read(rd, off, p, (size_t)len, &err);
	CHECK_OK(n < 0 ? (int)n : 0, &err);
	CHECK_MEM(p, (size_t)n, want, n_want);
}

static inline void check_read_fails(struct content_reader *rd, uint64_t off, int code,
				    const char *why)
{
	uint8_t p[100], before[sizeof(p)];
	struct err err = { 0 };

	memset(p, 0xaa, sizeof(p));
	memset(before, 0xaa, sizeof(before));
	CHECK_EQ(content_reader_read(rd, off, p, sizeof(p), &err), code);
	CHECK_EQ(err.code, code);
	CHECK_HAS(err.msg, why);
	CHECK_MEM(p, sizeof(p), before, sizeof(before));
}
