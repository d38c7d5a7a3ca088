#include "engine/find/content-sum-i.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define PIECE ((size_t)1 << 18)

/* Bytes from `at` up to `end`. */
static int sum_range(struct content_reader *rd, char *room, uint64_t at, uint64_t end,
		     struct sha256 *sum, struct err *err)
{
	ssize_t n = 0;

	for (; at < end && n >= 0; at += n > 0 ? (uint64_t)n : 0) {
		n = content_reader_read(rd, at, room, end - at < PIECE ? (size_t)(end - at) : PIECE,
					err);
		if (n == 0)
			return err_set(err, -EBADMSG, "its content ends too early");
		if (n > 0)
			sha256_add(sum, room, (size_t)n);
	}
	return n < 0 ? (int)n : 0;
}

static void sum_numbers(struct sha256 *sum, const char *first, uint64_t second)
{
	char text[64];
	const int len = snprintf(text, sizeof(text), "%s %" PRIu64, first, second);

	sha256_add(sum, text, (size_t)len + 1);
}

static int sum_sparse(struct content_reader *rd, char *room, uint64_t size, struct sha256 *sum,
		      struct err *err)
{
	uint64_t data, hole = 0;
	char first[24];
	int r = 0;

	sum_numbers(sum, "sparse", size);
	while (r >= 0 && hole < size) {
		r = content_reader_seek_data(rd, hole, &data, err);
		if (r == -ENXIO)
			return 0;
		if (r < 0)
			return r;
		r = content_reader_seek_hole(rd, data, &hole, err);
		if (r < 0)
			return r;
		snprintf(first, sizeof(first), "%" PRIu64, data);
		sum_numbers(sum, first, hole - data);
		r = sum_range(rd, room, data, hole, sum, err);
	}
	return r;
}

int content_sum(struct store *s, const struct tree_entry *e, uint8_t digest[SHA256_SIZE],
		struct err *err)
{
	CLEANUP(content_reader_free_p) struct content_reader *rd = NULL;
	AUTO_FREE char *room = malloc(PIECE);
	const struct content c = tree_entry_content(e);
	struct sha256 sum;
	int r;

	if (!room)
		return err_nomem(err);
	r = content_reader_new(s, &c, &rd, err);
	if (r < 0)
		return r;
	sha256_begin(&sum);
	r = content_is_sparse(&c) ? sum_sparse(rd, room, c.size, &sum, err)
				  : sum_range(rd, room, 0, c.size, &sum, err);
	sha256_end(&sum, digest);
	return r < 0 ? r : 0;
}
