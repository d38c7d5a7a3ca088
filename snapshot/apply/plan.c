#include "snapshot/apply/plan-i.h"

#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "base/vec.h"

void plan_step_done(struct plan_step *s)
{
	free(s->path);
	free(s->anchor);
	tree_entry_done(&s->before);
	tree_entry_done(&s->after);
}

void plan_done(struct plan *p)
{
	VEC_FREE(it, p->dirs, p->n_dirs, plan_step_done(it));
	VEC_FREE(it, p->files, p->n_files, plan_step_done(it));
	*p = (struct plan){ 0 };
}

bool plan_leaves(const struct plan_options *o, const char *path)
{
	return VEC_HAS(it, o->leave, o->n_leave, path_is_within(path, *it));
}

bool plan_is_empty(const struct plan *p)
{
	return p->n_dirs == 0 && p->n_files == 0;
}

static bool is_change(const struct plan_step *s)
{
	return s->act != PLAN_TOUCH &&
	       (s->act == PLAN_REMOVE || s->act == PLAN_CREATE || s->what != DIFF_MTIME);
}

int plan_each(const struct plan *p, plan_fn fn, void *ctx)
{
	size_t d = 0, f = 0;
	int r = 0;

	while (r == 0 && (d < p->n_dirs || f < p->n_files)) {
		const bool dir =
		    f == p->n_files ||
		    (d < p->n_dirs && path_compare(p->dirs[d].path, p->files[f].path) <= 0);
		const struct plan_step *s = dir ? &p->dirs[d++] : &p->files[f++];

		if (is_change(s))
			r = fn(s, ctx);
	}
	return r;
}

/* In the order of a walk, what lies below a directory follows it. */
static bool has_files(const struct plan *p, const char *dir)
{
	size_t lo = 0, hi = p->n_files;

	while (lo < hi) {
		const size_t mid = lo + (hi - lo) / 2;

		if (path_compare(p->files[mid].path, dir) <= 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < p->n_files && path_is_within(p->files[lo].path, dir);
}

bool plan_counts(const struct plan *p, const struct plan_step *s)
{
	const struct tree_entry *e = s->act == PLAN_REMOVE ? &s->before : &s->after;

	if (e->form != TREE_DIR || (s->act != PLAN_CREATE && s->act != PLAN_REMOVE))
		return true;
	return p->dirs[s->dir].act != s->act && !has_files(p, s->path);
}

struct count {
	const struct plan *plan;
	uint64_t n;
};

static int count_step(const struct plan_step *s, void *ctx)
{
	struct count *c = ctx;

	c->n += plan_counts(c->plan, s);
	return 0;
}

uint64_t plan_count(const struct plan *p)
{
	struct count c = { .plan = p };

	IGNORE_RESULT(plan_each(p, count_step, &c), "it never ends the walk");
	return c.n;
}
