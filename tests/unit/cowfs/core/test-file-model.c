/*
 * Random changes of a file against blocks in a row, each with all of its bytes or a hole. The
 * cache is emptied again and again, and a frozen copy is stored and settled at any time.
 */
#include <inttypes.h>

#include "tests/unit/cowfs/core/file-fixture.h"

#define BLOCKS_MAX 64

struct model_block {
	uint64_t number;
	uint8_t *bytes; /* BLOCK of them */
};

struct model {
	struct model_block list[BLOCKS_MAX]; /* rising; what is not here is a hole */
	size_t n;
	uint64_t size;
};

static void model_done(struct model *m)
{
	for (size_t i = 0; i < m->n; i++)
		free(m->list[i].bytes);
	m->n = 0;
}

static struct model model_copy(const struct model *m)
{
	struct model copy = *m;

	for (size_t i = 0; i < m->n; i++) {
		copy.list[i].bytes = malloc(BLOCK);
		CHECK(copy.list[i].bytes);
		memcpy(copy.list[i].bytes, m->list[i].bytes, BLOCK);
	}
	return copy;
}

static size_t model_find(const struct model *m, uint64_t number)
{
	size_t i = 0;

	while (i < m->n && m->list[i].number < number)
		i++;
	return i;
}

static uint8_t *model_at(const struct model *m, uint64_t number)
{
	const size_t i = model_find(m, number);

	return i < m->n && m->list[i].number == number ? m->list[i].bytes : NULL;
}

static uint8_t *model_make(struct model *m, uint64_t number)
{
	const size_t i = model_find(m, number);

	if (i == m->n || m->list[i].number != number) {
		CHECK(m->n < BLOCKS_MAX);
		memmove(&m->list[i + 1], &m->list[i], (m->n - i) * sizeof(m->list[0]));
		m->list[i] = (struct model_block){ number, calloc(1, BLOCK) };
		CHECK(m->list[i].bytes);
		m->n++;
	}
	return m->list[i].bytes;
}

/* Blocks [first, end) become holes. */
static void model_drop(struct model *m, uint64_t first, uint64_t end)
{
	size_t n = 0;

	for (size_t i = 0; i < m->n; i++)
		if (m->list[i].number >= first && m->list[i].number < end)
			free(m->list[i].bytes);
		else
			m->list[n++] = m->list[i];
	m->n = n;
}

static uint64_t blocks_in(uint64_t size)
{
	return (size + BLOCK - 1) / BLOCK;
}

static void model_write(struct model *m, uint64_t off, const uint8_t *data, uint64_t len)
{
	for (uint64_t i = 0; i < len; i++)
		model_make(m, (off + i) / BLOCK)[(off + i) % BLOCK] = data[i];
	if (len > 0 && off + len > m->size)
		m->size = off + len;
}

static void model_truncate(struct model *m, uint64_t size)
{
	uint8_t *cut;

	if (size < m->size) {
		model_drop(m, blocks_in(size), UINT64_MAX);
		cut = model_at(m, size / BLOCK);
		if (cut)
			memset(cut + size % BLOCK, 0, BLOCK - size % BLOCK);
	}
	m->size = size;
}

static void model_punch(struct model *m, uint64_t off, uint64_t len)
{
	const uint64_t end = off >= m->size ? off : len < m->size - off ? off + len : m->size;
	const uint64_t behind = end == m->size ? blocks_in(end) : end / BLOCK;

	for (size_t i = 0; i < m->n; i++) {
		const uint64_t start = m->list[i].number * BLOCK;
		const uint64_t from = start > off ? start : off;
		const uint64_t to = start + BLOCK < end ? start + BLOCK : end;

		if (from < to)
			memset(m->list[i].bytes + (from - start), 0, to - from);
	}
	if (blocks_in(off) < behind)
		model_drop(m, blocks_in(off), behind);
}

static void model_allocate(struct model *m, uint64_t off, uint64_t len)
{
	const uint64_t end = off + len < m->size ? off + len : m->size;

	for (uint64_t k = off / BLOCK; off < end && k < blocks_in(end); k++)
		model_make(m, k);
}

static int64_t model_seek(const struct model *m, uint64_t off, bool hole)
{
	uint64_t at = off;

	if (off >= m->size)
		return -ENXIO;
	for (size_t i = 0; i < m->n; i++) {
		const uint64_t start = m->list[i].number * BLOCK;

		if (start + BLOCK <= at)
			continue;
		if (!hole)
			return (int64_t)(at > start ? at : start);
		if (start > at)
			break;
		at = start + BLOCK;
	}
	if (!hole)
		return -ENXIO;
	return (int64_t)(at < m->size ? at : m->size);
}

static uint64_t model_data(const struct model *m)
{
	uint64_t data = 0;

	for (size_t i = 0; i < m->n; i++) {
		const uint64_t left = m->size - m->list[i].number * BLOCK;

		data += left < BLOCK ? left : BLOCK;
	}
	return data;
}

/* The content as one who writes it from its start to its end has it. */
static struct content model_store(const struct model *m, struct batch *b)
{
	CLEANUP(content_writer_free_p) struct content_writer *w = new_writer(b);
	uint64_t at = 0;

	for (size_t i = 0; i < m->n; i++) {
		const uint64_t start = m->list[i].number * BLOCK, left = m->size - start;

		leave_hole(w, start - at);
		add(w, m->list[i].bytes, left < BLOCK ? left : BLOCK);
		at = start + (left < BLOCK ? left : BLOCK);
	}
	leave_hole(w, m->size - at);
	return finish(w);
}

/* --- the file beside it ------------------------------------------------------------------ */

struct run {
	struct world w;
	struct test_rng rng;
	struct file f, frozen;
	struct model m, was;
	struct content stored;
	enum { LIVE, FROZEN, STORED } state;
	uint64_t base[4]; /* blocks around which things happen */
};

static uint64_t below(struct run *t, uint64_t n)
{
	return test_rand(&t->rng) % n;
}

/* An offset that is near an edge of something as often as not. */
static uint64_t some_offset(struct run *t)
{
	uint64_t off = t->base[below(t, 4)] * BLOCK + below(t, 4 * BLOCK);

	switch (below(t, 6)) {
	case 0:
		return off / BLOCK * BLOCK;
	case 1:
		return off / BLOCK * BLOCK + below(t, 8);
	case 2:
		return off / BLOCK * BLOCK + BLOCK - 1 - below(t, 8);
	case 3:
		off = t->m.size + below(t, 3);
		return off > 0 && off <= (t->base[3] + 4) * BLOCK ? off - below(t, 2) : 0;
	default:
		return off;
	}
}

static uint64_t some_length(struct run *t)
{
	switch (below(t, 6)) {
	case 0:
		return 1 + below(t, 8);
	case 1:
		return BLOCK;
	case 2:
		return 1 + below(t, 3 * BLOCK);
	case 3:
		return BLOCK - 1 - below(t, 8);
	default:
		return 1 + below(t, 5000);
	}
}

static void check_file(struct run *t)
{
	const struct file *f = &t->f;
	uint64_t end = 0;

	CHECK_EQ(f->size, t->m.size);
	CHECK(f->kept <= f->size && f->kept <= f->base.size);
	CHECK(f->data <= f->size);
	for (size_t i = 0; i < f->n; i++) {
		const struct extent *e = &f->list[i];
		const uint64_t start = e->first * BLOCK;

		CHECK(e->n > 0 && e->first >= end && start < f->size);
		CHECK(e->first + e->n <= blocks_in(f->size));
		CHECK(i == 0 || e->block || f->list[i - 1].block || e->first > end);
		CHECK(!e->block || e->n == 1);
		if (e->block) {
			CHECK(e->block->lo <= e->block->hi && e->block->hi <= e->block->cap);
			CHECK(start + e->block->hi <= f->size);
		}
		end = e->first + e->n;
	}
}

static void check_read_once(struct run *t)
{
	const uint64_t off = some_offset(t), len = some_length(t);
	const uint64_t left = off < t->m.size ? t->m.size - off : 0, n = len < left ? len : left;
	AUTO_FREE uint8_t *want = calloc(1, len), *got = malloc(len);

	CHECK(want && got);
	for (uint64_t i = 0; i < n;) {
		const uint8_t *bytes = model_at(&t->m, (off + i) / BLOCK);
		const uint64_t in = (off + i) % BLOCK,
			       part = n - i < BLOCK - in ? n - i : BLOCK - in;

		if (bytes)
			memcpy(want + i, bytes + in, part);
		i += part;
	}
	CHECK_EQ(read_at(&t->w, &t->f, off, got, len), n);
	CHECK_MEM(got, n, want, n);
}

static void check_seek_once(struct run *t)
{
	const uint64_t off = some_offset(t);

	CHECK_EQ(seek_from(&t->w, &t->f, off, false), model_seek(&t->m, off, false));
	CHECK_EQ(seek_from(&t->w, &t->f, off, true), model_seek(&t->m, off, true));
}

/* Every byte of every block that is no hole, and the holes between them. */
static void check_all(struct run *t)
{
	int64_t at = 0;

	for (size_t i = 0; i < t->m.n; i++) {
		const uint64_t start = t->m.list[i].number * BLOCK, left = t->m.size - start;

		check_bytes(&t->w, &t->f, start, t->m.list[i].bytes, left < BLOCK ? left : BLOCK);
	}
	for (bool hole = false; at >= 0 && (uint64_t)at < t->m.size; hole = !hole) {
		const int64_t next = seek_from(&t->w, &t->f, (uint64_t)at, hole);

		CHECK_EQ(next, model_seek(&t->m, (uint64_t)at, hole));
		at = next;
	}
}

static void do_write(struct run *t)
{
	const uint64_t off = some_offset(t), len = some_length(t);
	AUTO_FREE uint8_t *bytes = malloc(len);

	CHECK(bytes);
	for (uint64_t i = 0; i < len; i++)
		bytes[i] = (uint8_t)(1 + below(t, 255));
	write_at(&t->w, &t->f, off, bytes, len);
	model_write(&t->m, off, bytes, len);
}

static void do_truncate(struct run *t)
{
	const uint64_t size = below(t, 12) == 0 ? 0 : some_offset(t);

	truncate_to(&t->f, size);
	model_truncate(&t->m, size);
}

static void do_punch(struct run *t)
{
	const uint64_t off = some_offset(t);
	const uint64_t len = below(t, 3) == 0 ? TIB + below(t, BLOCK) : some_length(t);

	punch(&t->w, &t->f, off, len);
	model_punch(&t->m, off, len);
}

static void do_allocate(struct run *t)
{
	const uint64_t off = some_offset(t), len = some_length(t);

	allocate_at(&t->w, &t->f, off, len);
	model_allocate(&t->m, off, len);
}

/* One step further on the way of a frozen copy. */
static void do_persist(struct run *t)
{
	switch (t->state) {
	case LIVE:
		t->frozen = freeze(&t->f);
		t->was = model_copy(&t->m);
		t->state = FROZEN;
		return;
	case FROZEN: {
		CLEANUP(batch_end_p) struct batch *b = stock_begin(t->w.s);
		const struct content want = model_store(&t->was, b);

		t->stored = store_file(&t->w, &t->frozen);
		CHECK(content_equal(&t->stored, &want));
		t->state = STORED;
		return;
	}
	case STORED:
		settle(&t->f, &t->frozen, &t->stored);
		file_done(&t->frozen);
		model_done(&t->was);
		t->state = LIVE;
		return;
	}
}

/* Freeze, store and settle with nothing in between leaves nothing behind. */
static void do_persist_all(struct run *t)
{
	while (t->state != LIVE)
		do_persist(t);
	persist(&t->w, &t->f);
	CHECK(file_is_stored(&t->f));
	CHECK_EQ(file_memory(&t->f), 0);
	CHECK_EQ(t->f.data, model_data(&t->m));
}

static void one_step(struct run *t)
{
	switch (below(t, 18)) {
	case 16:
	case 17:
		do_allocate(t);
		break;
	case 0:
	case 1:
		do_truncate(t);
		break;
	case 2:
	case 3:
		do_punch(t);
		break;
	case 4:
	case 5:
	case 6:
		do_persist(t);
		break;
	case 7:
		do_persist_all(t);
		break;
	default:
		do_write(t);
		break;
	}
}

static void one_run(struct run *t, const uint64_t base[4])
{
	static const struct content nothing;

	memcpy(t->base, base, sizeof(t->base));
	t->m = (struct model){ 0 };
	t->state = LIVE;
	file_init(&t->f, &nothing);
	for (int step = 0; step < 120; step++) {
		one_step(t);
		check_file(t);
		if (below(t, 3) == 0)
			cache_drop(t->w.c);
		check_read_once(t);
		check_seek_once(t);
	}
	check_all(t);
	do_persist_all(t);
	check_all(t);
	while (t->state != LIVE)
		do_persist(t);
	file_done(&t->f);
	model_done(&t->m);
}

TEST(a_file_reads_and_stores_as_the_model_says)
{
	static const uint64_t bases[][4] = {
		{ 0, 0, 0, 0 },                  /* a block or a few */
		{ 0, 3, 6, 9 },                  /* one node */
		{ 0, 2, 510, 512 },              /* two levels */
		{ 0, 510, 1022, 512 * 512 - 2 }, /* three */
		{ 0, 511, TIB / BLOCK, TIB / BLOCK + 510 },
		{ 0, 3, 7, ((uint64_t)INT64_MAX >> 16) - 8 },
	};
	struct run t = { .w = world_open(), .rng = { .s = test_seed() } };

	for (int i = 0; i < 6 * 4; i++)
		one_run(&t, bases[i % 6]);
	CHECK(t.w.needed > 100);
	world_close(&t.w);
}

TEST_MAIN("file-model")
