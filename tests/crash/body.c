#include "tests/crash/body.h"

#include "base/le.h"
#include "tests/lib/test.h"

#define PIECE_MAX 8192 /* bytes handed over or read at once */

uint64_t body_mix(uint64_t a, uint64_t b)
{
	struct test_rng rng = { a ^ b * 0x9e3779b97f4a7c15ULL };

	return test_rand(&rng);
}

struct body body_of(uint64_t seed, bool small)
{
	static const uint64_t most[] = { 0, 40, 4000, CHUNK_SIZE_MAX, 4 * CHUNK_SIZE_MAX };
	struct test_rng rng = { seed };
	uint64_t max = most[test_rand(&rng) % (small ? 3 : ARRAY_LEN(most))];

	return (struct body){
		.seed = seed,
		.size = max ? 1 + test_rand(&rng) % max : 0,
		.noise = test_rand(&rng) % 2,
	};
}

struct body body_of_blocks(uint64_t seed)
{
	return (
	    struct body){ .seed = seed, .size = 2 * CHUNK_SIZE_MAX + seed % 999, .noise = false };
}

static bool is_hole(const struct body *y, uint64_t block)
{
	return y->size > 2 * CHUNK_SIZE_MAX && body_mix(y->seed, ~block) % 4 == 0;
}

void body_fill(const struct body *y, uint64_t off, uint8_t *out, size_t len)
{
	uint8_t word[8];

	for (size_t at = 0; at < len; at += 8, off += 8) {
		size_t n = len - at < 8 ? len - at : 8;

		if (is_hole(y, off / CHUNK_SIZE_MAX))
			le64_store(word, 0);
		else
			le64_store(word, body_mix(y->seed, y->noise ? off : off / 8 % 5) | 1);
		memcpy(out + at, word, n);
	}
}

/* How much to take at once from `off` on: a multiple of 8, or what is left of the block or file. */
static size_t piece_at(const struct body *y, uint64_t off)
{
	uint64_t n = (1 + body_mix(y->seed, off) % (PIECE_MAX / 8)) * 8;
	uint64_t block_left = CHUNK_SIZE_MAX - off % CHUNK_SIZE_MAX;

	if (n > block_left)
		n = block_left;
	return (size_t)(n > y->size - off ? y->size - off : n);
}

static int body_stream(struct batch *b, const struct body *y, struct content *ret, struct err *err)
{
	CLEANUP(content_writer_free_p) struct content_writer *w = NULL;
	uint8_t piece[PIECE_MAX];
	size_t n;
	int r;

	r = content_writer_new(b, &w, err);
	for (uint64_t off = 0; off < y->size && r >= 0; off += n) {
		n = piece_at(y, off);
		if (is_hole(y, off / CHUNK_SIZE_MAX)) {
			r = content_writer_skip(w, n, err);
		} else {
			body_fill(y, off, piece, n);
			r = content_writer_add(w, piece, n, err);
		}
	}
	return r < 0 ? r : content_writer_finish(w, ret, err);
}

int body_put(struct batch *b, const struct body *y, struct content *ret, struct err *err)
{
	uint8_t piece[PIECE_MAX];

	if (y->size > sizeof(piece))
		return body_stream(b, y, ret, err);
	body_fill(y, 0, piece, (size_t)y->size);
	return content_put(b, piece, (size_t)y->size, ret, err);
}

static int body_compare(struct content_reader *rd, const struct body *y, uint64_t off, size_t len,
			struct err *err)
{
	uint8_t have[PIECE_MAX], want[PIECE_MAX];
	ssize_t n;

	n = content_reader_read(rd, off, have, len, err);
	if (n < 0)
		return (int)n;
	body_fill(y, off, want, len);
	return (size_t)n == len && memcmp(have, want, len) == 0;
}

int body_verify(struct store *s, const struct body *y, const struct content *c, struct err *err)
{
	CLEANUP(content_reader_free_p) struct content_reader *rd = NULL;
	uint64_t off;
	size_t n;
	int r;

	if (c->size != y->size)
		return 0;
	r = content_reader_new(s, c, &rd, err);
	if (r < 0)
		return r;
	for (off = 0; off < y->size; off += n) {
		n = piece_at(y, off);
		r = body_compare(rd, y, off, n, err);
		if (r <= 0)
			return r;
	}
	/* Once more somewhere, against the order. */
	for (unsigned i = 0; i < 3 && y->size > 0; i++) {
		off = body_mix(y->seed, ~i) % y->size & ~7ULL;
		r = body_compare(rd, y, off, piece_at(y, off), err);
		if (r <= 0)
			return r;
	}
	return 1;
}
