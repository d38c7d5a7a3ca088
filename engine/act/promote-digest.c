/*
 * For each path that changed, in the order of a walk: 'A', 'M' or 'D', a space, the mode in octal, a
 * space, the SHA-256 of the content or of the target of a link in hex ("-" if there is none), a space, the
 * path, a NUL.  The digest is the SHA-256 of all that.
 *
 * Of a file that is almost all holes (content_is_sparse()) the SHA-256 is that of "sparse", a space, its
 * size in decimal, a NUL, and for each run of data its offset, a space, its length, a NUL and the bytes.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/hex.h"
#include "base/sha256.h"
#include "engine/act/promote-i.h"
#include "snapshot/apply/plan.h"

#define PIECE ((size_t)1 << 18)

struct digesting {
	struct store *store;
	const struct plan *plan;
	struct sha256 all;
	struct err *err;
};

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

static int sum_content(struct store *s, const struct tree_entry *e, uint8_t digest[SHA256_SIZE],
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

/* The content of a hard-linked file was summed up under its first name. */
static int sum_file(struct digesting *d, const struct plan_step *s, uint8_t digest[SHA256_SIZE])
{
	const struct plan_step *first = s->first < d->plan->n_files ? &d->plan->files[s->first] : s;

	if (!first->summed)
		return sum_content(d->store, &s->after, digest, d->err);
	memcpy(digest, first->sha256, SHA256_SIZE);
	return 0;
}

/* "-" if there is no content. */
static int sum_up(struct digesting *d, const struct plan_step *s, char hex[SHA256_HEX_SIZE])
{
	uint8_t digest[SHA256_SIZE];
	struct sha256 sum;
	int r = 0;

	if (S_ISREG(s->after.mode)) {
		r = sum_file(d, s, digest);
	} else if (S_ISLNK(s->after.mode)) {
		sha256_begin(&sum);
		sha256_add(&sum, s->after.target, s->after.target_len);
		sha256_end(&sum, digest);
	} else {
		return snprintf(hex, SHA256_HEX_SIZE, "-") < 0;
	}
	hex_encode(digest, sizeof(digest), hex);
	return r;
}

static int add_step(const struct plan_step *s, void *ctx)
{
	struct digesting *d = ctx;
	char hex[SHA256_HEX_SIZE], head[SHA256_HEX_SIZE + 32];
	const bool gone = s->act == PLAN_REMOVE;
	int r = gone ? snprintf(hex, sizeof(hex), "-") < 0 : sum_up(d, s, hex);

	if (r < 0)
		return err_wrap(d->err, r, "'%s'", s->path);
	r = snprintf(head, sizeof(head), "%c %o %s ",
		     gone                    ? 'D'
		     : s->act == PLAN_CREATE ? 'A'
					     : 'M',
		     gone ? 0 : s->after.mode, hex);
	sha256_add(&d->all, head, (size_t)r);
	sha256_add(&d->all, s->path, strlen(s->path) + 1);
	return 0;
}

int promote_sum_rest(struct store *s, struct plan *plan, struct err *err)
{
	for (size_t i = 0; i < plan->n_files; i++) {
		struct plan_step *step = &plan->files[i];
		int r;

		if (step->first != i || !S_ISREG(step->after.mode) || step->act == PLAN_REMOVE ||
		    (step->act == PLAN_CHANGE ? step->what == DIFF_MTIME : !step->anchor))
			continue;
		r = sum_content(s, &step->after, step->sha256, err);
		if (r < 0)
			return err_wrap(err, r, "'%s'", step->path);
		step->summed = true;
	}
	return 0;
}

int promote_digest(struct store *s, const struct plan *plan, char hex[65], struct err *err)
{
	struct digesting d = { .store = s, .plan = plan, .err = err };
	uint8_t digest[SHA256_SIZE];
	int r;

	sha256_begin(&d.all);
	r = plan_each(plan, add_step, &d);
	if (r < 0)
		return r;
	sha256_end(&d.all, digest);
	hex_encode(digest, sizeof(digest), hex);
	return 0;
}
