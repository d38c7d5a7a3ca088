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

static bool counts(const struct plan_step *s)
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

		if (counts(s))
			r = fn(s, ctx);
	}
	return r;
}

static int count_step(const struct plan_step *s, void *ctx)
{
	*(uint64_t *)ctx += 1;
	return 0;
}

uint64_t plan_count(const struct plan *p)
{
	uint64_t n = 0;

	IGNORE_RESULT(plan_each(p, count_step, &n), "it never ends the walk");
	return n;
}
