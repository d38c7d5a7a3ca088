/*
 * For each path that changed, in the order of a walk: 'A', 'M' or 'D', a space, the mode in octal, a
 * space, the SHA-256 of the content or of the target of a link in hex ("-" if there is none), a space, the
 * path, a NUL.  The digest is the SHA-256 of all that.
 */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/hex.h"
#include "base/sha256.h"
#include "engine/find/content-sum-i.h"
#include "engine/find/digest-i.h"
#include "snapshot/apply/plan.h"

struct digesting {
	struct store *store;
	const struct plan *plan;
	struct sha256 all;
	struct err *err;
};

/* The content of a hard-linked file was summed up under its first name. */
static int sum_file(struct digesting *d, const struct plan_step *s, uint8_t digest[SHA256_SIZE])
{
	const struct plan_step *first = s->first < d->plan->n_files ? &d->plan->files[s->first] : s;

	if (!first->summed)
		return content_sum(d->store, &s->after, digest, d->err);
	memcpy(digest, first->sha256, SHA256_SIZE);
	return 0;
}

/* "-" if there is no content. */
static int sum_up(struct digesting *d, const struct plan_step *s, char hex[SHA256_HEX_SIZE])
{
	uint8_t digest[SHA256_SIZE];
	int r = 0;

	if (S_ISREG(s->after.mode)) {
		r = sum_file(d, s, digest);
	} else if (S_ISLNK(s->after.mode)) {
		sha256_of(s->after.target, s->after.target_len, digest);
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

int digest_sum_rest(struct store *s, struct plan *plan, struct err *err)
{
	for (size_t i = 0; i < plan->n_files; i++) {
		struct plan_step *step = &plan->files[i];
		int r;

		if (step->first != i || !S_ISREG(step->after.mode) || step->act == PLAN_REMOVE ||
		    (step->act == PLAN_CHANGE ? step->what == DIFF_MTIME : !step->anchor))
			continue;
		r = content_sum(s, &step->after, step->sha256, err);
		if (r < 0)
			return err_wrap(err, r, "'%s'", step->path);
		step->summed = true;
	}
	return 0;
}

int digest_plan(struct store *s, const struct plan *plan, char hex[65], struct err *err)
{
	struct digesting d = { .store = s, .plan = plan, .err = err };
	int r;

	sha256_begin(&d.all);
	r = plan_each(plan, add_step, &d);
	if (r < 0)
		return r;
	sha256_end_hex(&d.all, hex);
	return 0;
}

int digest_trees(struct store *s, const struct object_id *from, const struct object_id *to,
		 char hex[65], struct err *err)
{
	static const char *const git[] = { ".git" };
	const struct plan_options options = { .leave = git, .n_leave = 1 };
	CLEANUP(plan_done) struct plan plan = { 0 };
	int r = plan_make(s, from, to, &options, &plan, err);

	if (r < 0 || plan_count(&plan) == 0)
		return r < 0 ? r : 1;
	return digest_plan(s, &plan, hex, err);
}

/* --- outlines ------------------------------------------------------------------------------ */

/* What a person sees of it, and what makes it the same: no times, and no number of an inode. */
static void outline_entry(struct sha256 *sum, const struct tree_entry *e)
{
	sha256_add_u64(sum, e->mode);
	sha256_add_u64(sum, e->uid);
	sha256_add_u64(sum, e->gid);
	sha256_add_u64(sum, S_ISDIR(e->mode) ? 0 : e->size);
	sha256_add_u64(sum, e->rdev);
	/* A directory's own steps follow. */
	if (!S_ISDIR(e->mode))
		sha256_add(sum, e->id.b, sizeof(e->id.b));
	sha256_add(sum, e->xattrs.b, sizeof(e->xattrs.b));
	sha256_add_text(sum, e->target, e->target_len);
}

static void outline_steps(struct sha256 *sum, const struct plan_step *steps, size_t n)
{
	sha256_add_u64(sum, n);
	for (size_t i = 0; i < n; i++) {
		const struct plan_step *s = &steps[i];

		sha256_add_u64(sum, s->act);
		sha256_add_text(sum, s->path, strlen(s->path));
		outline_entry(sum, &s->before);
		outline_entry(sum, &s->after);
	}
}

void digest_outline(const struct plan *plan, char hex[65])
{
	struct sha256 sum;

	sha256_begin(&sum);
	outline_steps(&sum, plan->dirs, plan->n_dirs);
	outline_steps(&sum, plan->files, plan->n_files);
	sha256_end_hex(&sum, hex);
}
