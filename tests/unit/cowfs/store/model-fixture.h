/*
 * model-fixture.h - for tests of editing files: what a file should hold, and edits of both.
 *
 * A file as the list of its blocks that are no holes, each with the number that makes its
 * bytes and with how many of them count, zeros behind: as good for exabytes as for bytes.
 */
#pragma once

#include <stdint.h>

#include "cowfs/store/content-edit.h"
#include "tests/lib/damage.h"
#include "tests/unit/cowfs/store/content-fixture.h"

struct model_block {
	uint64_t number;
	uint64_t seed;
	uint64_t counts; /* bytes of it that are not zero; more than a block has: all */
};

struct model {
	struct model_block *block; /* owned; rising */
	size_t n, cap;
	uint64_t size;
	struct content c;
};

static void model_done(struct model *m)
{
	free(m->block);
}

static uint64_t blocks_of(uint64_t size)
{
	return size / BLOCK + (size % BLOCK != 0);
}

static uint64_t block_len(const struct model *m, uint64_t number)
{
	return m->size - number * BLOCK < BLOCK ? m->size - number * BLOCK : BLOCK;
}

/* Not many words, for speed; different for every seed. */
static void block_bytes(const struct model_block *b, uint8_t *p, uint64_t len)
{
	const uint64_t counts = b->counts < len ? b->counts : len;

	memset(p, (int)(b->seed % 255) + 1, counts);
	memcpy(p, &b->seed, counts < sizeof(b->seed) ? counts : sizeof(b->seed));
	memset(p + counts, 0, len - counts);
}

/* Where a block is, or would be. */
static size_t model_find(const struct model *m, uint64_t number)
{
	size_t i = 0;

	while (i < m->n && m->block[i].number < number)
		i++;
	return i;
}

static void model_set(struct model *m, uint64_t number, uint64_t seed)
{
	const size_t i = model_find(m, number);

	if (i == m->n || m->block[i].number != number) {
		if (m->n == m->cap) {
			m->cap = m->cap * 2 + 8;
			m->block = reallocarray(m->block, m->cap, sizeof(*m->block));
			CHECK(m->block);
		}
		memmove(&m->block[i + 1], &m->block[i], (m->n - i) * sizeof(*m->block));
		m->n++;
	}
	m->block[i] = (struct model_block){ number, seed, block_len(m, number) };
}

static void model_punch(struct model *m, uint64_t first, uint64_t n)
{
	const size_t from = model_find(m, first), to = model_find(m, first + n);

	if (to < m->n)
		memmove(&m->block[from], &m->block[to], (m->n - to) * sizeof(*m->block));
	m->n -= to - from;
}

static void model_resize(struct model *m, uint64_t kept, uint64_t size)
{
	m->n = model_find(m, blocks_of(kept));
	if (m->n > 0 && m->block[m->n - 1].number == kept / BLOCK &&
	    m->block[m->n - 1].counts > kept % BLOCK)
		m->block[m->n - 1].counts = kept % BLOCK;
	m->size = size;
}

static struct content write_model(struct batch *b, const struct model *m)
{
	CLEANUP(content_writer_free_p) struct content_writer *w = new_writer(b);
	AUTO_FREE uint8_t *bytes = malloc(BLOCK);
	uint64_t at = 0;

	CHECK(bytes);
	for (size_t i = 0; i < m->n; i++) {
		const uint64_t number = m->block[i].number, len = block_len(m, number);

		leave_hole(w, number * BLOCK - at);
		block_bytes(&m->block[i], bytes, len);
		add(w, bytes, len);
		at = number * BLOCK + len;
	}
	leave_hole(w, m->size - at);
	return finish(w);
}

/* --- edits --------------------------------------------------------------------------------- */

#define CHANGES 24

struct edit_list {
	struct content_change change[CHANGES];
	uint8_t *data[CHANGES]; /* owned */
	size_t n;
	uint64_t next; /* no block before this one can be added */
};

static void list_done(struct edit_list *l)
{
	for (size_t i = 0; i < l->n; i++)
		free(l->data[i]);
}

/* Change a block, or punch a hole if `n` is not 0; not where it would overlap. */
static void change(struct model *m, struct edit_list *l, uint64_t first, uint64_t n, uint64_t seed)
{
	const uint64_t blocks = blocks_of(m->size);
	uint64_t len;

	if (l->n == CHANGES || first < l->next || first >= blocks)
		return;
	if (n > blocks - first)
		n = blocks - first;
	l->data[l->n] = NULL;
	if (n > 0) {
		model_punch(m, first, n);
	} else {
		model_set(m, first, seed);
		len = block_len(m, first);
		l->data[l->n] = malloc(len); /* exactly, so that a sanitizer sees a byte too many */
		CHECK(l->data[l->n]);
		block_bytes(&m->block[model_find(m, first)], l->data[l->n], len);
	}
	l->next = first + (n > 0 ? n : 1);
	l->change[l->n] =
	    (struct content_change){ .first = first, .n = n > 0 ? n : 1, .data = l->data[l->n] };
	l->n++;
}

struct bench {
	struct store *s;
	struct batch *b;
	struct cache *c;
};

static struct bench bench_new(const char *name)
{
	struct bench t = { .s = open_store(name) };

	t.b = stock_begin(t.s);
	t.c = new_cache(t.s);
	return t;
}

static void bench_done(struct bench *t)
{
	cache_free(t->c);
	batch_end(t->b);
	store_close(t->s);
}

static void bench_commit(struct bench *t)
{
	stock_commit(t->b);
	batch_end(t->b);
	t->b = stock_begin(t->s);
}

/* Edit what the model was; it has already become what it is to be. */
static void edit_file(struct bench *t, struct model *m, uint64_t kept, const struct edit_list *l)
{
	struct err err = { 0 };

	CHECK_OK(content_edit(t->b, t->c, &m->c, kept, m->size, l->change, l->n, &m->c, &err),
		 &err);
	bench_commit(t);
}

static void check_file(struct bench *t, const struct model *m)
{
	struct content c;

	counted.fresh = 0;
	c = write_model(t->b, m);
	CHECK_EQ(m->c.form, c.form);
	CHECK_EQ(m->c.size, c.size);
	CHECK_EQ(m->c.data, c.data);
	CHECK(object_id_equal(&m->c.id, &c.id));
	CHECK_EQ(counted.fresh, 0);
}

static void resize(struct bench *t, struct model *m, uint64_t size)
{
	const uint64_t kept = size < m->size ? size : m->size;
	const struct edit_list none = { 0 };

	model_resize(m, kept, size);
	edit_file(t, m, kept, &none);
	check_file(t, m);
}

/* Change one block. */
static void rewrite(struct bench *t, struct model *m, uint64_t block, uint64_t seed)
{
	CLEANUP(list_done) struct edit_list l = { 0 };

	change(m, &l, block, 0, seed);
	edit_file(t, m, m->size, &l);
}

static void punch(struct bench *t, struct model *m, uint64_t first, uint64_t n)
{
	CLEANUP(list_done) struct edit_list l = { 0 };

	change(m, &l, first, n, 0);
	edit_file(t, m, m->size, &l);
}

/* A file of blocks without a hole. */
static void fill_file(struct bench *t, struct model *m, uint64_t size)
{
	m->size = size;
	for (uint64_t i = 0; i < blocks_of(size); i++)
		model_set(m, i, i + 1);
	m->c = write_model(t->b, m);
	bench_commit(t);
}
