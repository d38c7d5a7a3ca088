/*
 * For each path that changed, in the order of a walk: 'A', 'M' or 'D', a space, the mode in octal, a
 * space, the SHA-256 of the content or of the target of a link in hex ("-" if there is none), a space, the
 * path, a NUL.  The digest is the SHA-256 of all that.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/hex.h"
#include "base/sha256.h"
#include "engine/promote-i.h"
#include "snapshot/plan.h"

#define PIECE ((size_t)1 << 18)

struct digesting {
	struct store *store;
	struct sha256 all;
	char *room; /* owned */
	struct err *err;
};

static int add_content(struct digesting *d, const struct tree_entry *e, struct sha256 *sum)
{
	CLEANUP(content_reader_free_p) struct content_reader *rd = NULL;
	const struct content c = tree_entry_content(e);
	uint64_t off = 0;
	ssize_t n = content_reader_new(d->store, &c, &rd, d->err);

	while (n >= 0 && off < c.size) {
		n = content_reader_read(rd, off, d->room, PIECE, d->err);
		if (n > 0)
			sha256_add(sum, d->room, (size_t)n);
		off += n > 0 ? (uint64_t)n : 0;
	}
	return n < 0 ? (int)n : 0;
}

/* "-" for what has nothing to sum up. */
static int sum_up(struct digesting *d, const struct tree_entry *e, char hex[SHA256_HEX_SIZE])
{
	uint8_t digest[SHA256_SIZE];
	struct sha256 sum;
	int r = 0;

	sha256_begin(&sum);
	if (S_ISREG(e->mode))
		r = add_content(d, e, &sum);
	else if (S_ISLNK(e->mode))
		sha256_add(&sum, e->target, e->target_len);
	else
		return snprintf(hex, SHA256_HEX_SIZE, "-") < 0;
	sha256_end(&sum, digest);
	hex_encode(digest, sizeof(digest), hex);
	return r;
}

static int add_step(const struct plan_step *s, void *ctx)
{
	struct digesting *d = ctx;
	char hex[SHA256_HEX_SIZE], head[SHA256_HEX_SIZE + 32];
	const bool gone = s->act == PLAN_REMOVE;
	int r = gone ? snprintf(hex, sizeof(hex), "-") < 0 : sum_up(d, &s->after, hex);

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

int promote_digest(struct store *s, const struct plan *plan, char hex[65], struct err *err)
{
	AUTO_FREE char *room = malloc(PIECE);
	struct digesting d = { .store = s, .room = room, .err = err };
	uint8_t digest[SHA256_SIZE];
	int r;

	if (!room)
		return err_nomem(err);
	sha256_begin(&d.all);
	r = plan_each(plan, add_step, &d);
	if (r < 0)
		return r;
	sha256_end(&d.all, digest);
	hex_encode(digest, sizeof(digest), hex);
	return 0;
}
