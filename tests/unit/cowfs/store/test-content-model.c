/*
 * A file as a list of ranges that were written, everything else skipped: small enough
 * to be obviously right, and as good for exabytes as for bytes.  What the writer makes
 * of random files in random pieces must be one content, and read back as the model says.
 */
#include <errno.h>

#include "tests/unit/cowfs/store/content-fixture.h"

struct range {
	uint64_t off;
	uint64_t len;
	bool zeros; /* written, all the same */
};

struct model {
	struct range range[16];
	size_t n;
	uint64_t size;
};

static void model_read(const struct model *m, uint64_t off, uint8_t *p, uint64_t len)
{
	memset(p, 0, len);
	for (size_t i = 0; i < m->n; i++) {
		const struct range *g = &m->range[i];
		const uint64_t from = g->off > off ? g->off : off;
		const uint64_t to = g->off + g->len < off + len ? g->off + g->len : off + len;

		if (from < to && !g->zeros)
			fill(p + (from - off), from, to - from);
	}
}

/* The whole blocks that a range makes data. */
static void range_blocks(const struct model *m, size_t i, uint64_t *ret_from, uint64_t *ret_to)
{
	const struct range *g = &m->range[i];

	*ret_from = g->off / BLOCK * BLOCK;
	*ret_to = (g->off + g->len - 1) / BLOCK * BLOCK + BLOCK;
	if (*ret_to > m->size)
		*ret_to = m->size;
}

static uint64_t model_seek_data(const struct model *m, uint64_t off)
{
	uint64_t from, to;

	for (size_t i = 0; i < m->n; i++) {
		range_blocks(m, i, &from, &to);
		if (off < to)
			return off > from ? off : from;
	}
	return m->size;
}

static uint64_t model_seek_hole(const struct model *m, uint64_t off)
{
	uint64_t from, to;

	for (size_t i = 0; i < m->n; i++) {
		range_blocks(m, i, &from, &to);
		if (off >= from && off < to)
			off = to;
	}
	return off;
}

static uint64_t model_data(const struct model *m)
{
	uint64_t data = 0, off = 0;

	while (off < m->size) {
		const uint64_t from = model_seek_data(m, off);

		off = model_seek_hole(m, from);
		data += off - from;
	}
	return data;
}

/* A length that ends at, just before, just behind or anywhere around an edge of the format. */
static uint64_t random_step(struct test_rng *rng, uint64_t from, uint64_t unit)
{
	const uint64_t edge = (from / unit + 1 + test_rand(rng) % 3) * unit;

	switch (test_rand(rng) % 5) {
	case 0:
		return edge - from;
	case 1:
		return edge - from - 1;
	case 2:
		return edge - from + 1;
	case 3:
		return 1 + test_rand(rng) % 100;
	default:
		return 1 + test_rand(rng) % unit;
	}
}

static struct model random_model(struct test_rng *rng)
{
	static const uint64_t units[] = { BLOCK,     BLOCK,      BLOCK,     NODE,
					  NODE << 9, NODE << 18, NODE << 27 };
	const size_t pieces = test_rand(rng) % (ARRAY_LEN(((struct model *)0)->range) + 1);
	struct model m = { 0 };

	for (size_t i = 0; i < pieces; i++) {
		if (test_rand(rng) % 5 < 2) {
			m.size +=
			    random_step(rng, m.size, units[test_rand(rng) % ARRAY_LEN(units)]);
			continue;
		}
		m.range[m.n] = (struct range){ .off = m.size,
					       .len = random_step(rng, m.size, BLOCK),
					       .zeros = test_rand(rng) % 6 == 0 };
		if (m.range[m.n].len > 0)
			m.size += m.range[m.n++].len;
	}
	return m;
}

/* How much of `len` to hand over next; now and then nothing at all. */
static uint64_t next_cut(struct test_rng *rng, uint64_t len)
{
	switch (test_rand(rng) % 8) {
	case 0:
		return 0;
	case 1:
		return 1;
	case 2:
		return len;
	default:
		return 1 + test_rand(rng) % len;
	}
}

/* Write the model, each piece at once or, given a generator, cut at random. */
static struct content write_model(struct content_writer *w, const struct model *m,
				  struct test_rng *cuts)
{
	uint64_t at = 0;

	for (size_t i = 0; i <= m->n; i++) {
		const struct range end = { .off = m->size }, *g = i < m->n ? &m->range[i] : &end;
		AUTO_FREE uint8_t *bytes = malloc(g->len > 0 ? g->len : 1);
		uint64_t n;

		CHECK(bytes);
		for (; at < g->off; at += n) {
			n = cuts ? next_cut(cuts, g->off - at) : g->off - at;
			leave_hole(w, n);
		}
		model_read(m, g->off, bytes, g->len);
		for (; at < g->off + g->len; at += n) {
			n = cuts ? next_cut(cuts, g->off + g->len - at) : g->len;
			add(w, bytes + (at - g->off), n);
		}
	}
	return finish(w);
}

/* An offset near something, or anywhere. */
static uint64_t random_offset(struct test_rng *rng, const struct model *m)
{
	uint64_t near = test_rand(rng) % (m->size + 1);

	if (m->n > 0 && test_rand(rng) % 4 > 0) {
		const struct range *g = &m->range[test_rand(rng) % m->n];

		near = test_rand(rng) % 2 ? g->off : g->off + g->len;
	}
	if (test_rand(rng) % 3 == 0)
		near = near / BLOCK * BLOCK;
	near += test_rand(rng) % 3 == 0 ? test_rand(rng) % (2 * BLOCK) : test_rand(rng) % 3;
	return near > BLOCK && test_rand(rng) % 2 ? near - test_rand(rng) % BLOCK : near;
}

static void check_ranges(struct content_reader *rd, const struct model *m, struct test_rng *rng)
{
	for (int i = 0; i < 20; i++) {
		const uint64_t off = random_offset(rng, m),
			       left = off < m->size ? m->size - off : 0;
		const uint64_t len = test_rand(rng) % (test_rand(rng) % 4 ? 5000 : 3 * BLOCK);
		const uint64_t n = len < left ? len : left;
		AUTO_FREE uint8_t *want = malloc(n > 0 ? n : 1);

		CHECK(want);
		model_read(m, off, want, n);
		check_read(rd, off, len, want, n);
	}
}

static void check_seeks(struct content_reader *rd, const struct model *m, struct test_rng *rng)
{
	struct err err = { 0 };
	uint64_t found;

	for (int i = 0; i < 20; i++) {
		const uint64_t off = random_offset(rng, m);
		const bool beyond = off >= m->size;

		if (beyond || model_seek_data(m, off) == m->size) {
			CHECK_EQ(content_reader_seek_data(rd, off, &found, &err), -ENXIO);
		} else {
			CHECK_OK(content_reader_seek_data(rd, off, &found, &err), &err);
			CHECK_EQ(found, model_seek_data(m, off));
		}
		if (beyond) {
			CHECK_EQ(content_reader_seek_hole(rd, off, &found, &err), -ENXIO);
		} else {
			CHECK_OK(content_reader_seek_hole(rd, off, &found, &err), &err);
			CHECK_EQ(found, model_seek_hole(m, off));
		}
	}
}

static void check_form(const struct content *c, const struct model *m)
{
	CHECK_EQ(c->size, m->size);
	CHECK_EQ(c->data, model_data(m));
	CHECK_EQ(c->form == CONTENT_HOLE, m->n == 0);
	CHECK_EQ(c->form == CONTENT_RECIPE, m->n > 0 && m->size > BLOCK);
}

TEST(what_was_written_in_any_pieces_is_one_content_and_reads_as_the_model_says)
{
	CLEANUP(store_close_p) struct store *s = open_store("model");
	CLEANUP(batch_end_p) struct batch *b = stock_begin(s);
	CLEANUP(content_writer_free_p) struct content_writer *w = new_writer(b);
	struct test_rng rng = { .s = test_seed() };
	struct model model[50];
	struct content c[ARRAY_LEN(model)], again;

	for (size_t i = 0; i < ARRAY_LEN(model); i++) {
		model[i] = random_model(&rng);
		c[i] = write_model(w, &model[i], NULL);
		again = write_model(w, &model[i], &rng);
		CHECK(content_equal(&c[i], &again));
		check_form(&c[i], &model[i]);
	}
	stock_commit(b);
	for (size_t i = 0; i < ARRAY_LEN(model); i++) {
		CLEANUP(content_reader_free_p) struct content_reader *rd = new_reader(s, &c[i]);

		check_ranges(rd, &model[i], &rng);
		check_seeks(rd, &model[i], &rng);
		check_ranges(rd, &model[i], &rng);
	}
}

TEST_MAIN("content-model")
