/*
 * Only root can give a file to a group that it is not in.  Others give such a file the group of its
 * directory, or their own: better than failing.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/path.h"
#include "snapshot/apply/plan.h"

/* The groups that this process may give files to. */
struct groups {
	gid_t *list; /* owned */
	int n;
};

static void groups_done(struct groups *g)
{
	free(g->list);
}

static int groups_read(struct groups *ret, struct err *err)
{
	const int n = getgroups(0, NULL);

	ret->list = calloc((size_t)(n > 0 ? n : 0) + 1, sizeof(*ret->list));
	if (!ret->list)
		return err_nomem(err);
	ret->n = n > 0 ? getgroups(n, ret->list) : 0;
	if (ret->n < 0)
		return err_sys(err, "reading one's own groups");
	ret->list[ret->n++] = getegid();
	return 0;
}

static bool groups_have(const struct groups *g, gid_t group)
{
	for (int i = 0; i < g->n; i++)
		if (g->list[i] == group)
			return true;
	return false;
}

/* The group of the directory that it is in, if that will do. */
static gid_t choose(const struct groups *g, const char *top, const struct plan_step *s)
{
	AUTO_FREE char *path = path_join(top, s->path);
	char *slash = path ? strrchr(path, '/') : NULL;
	struct stat st;

	if (s->act == PLAN_CHANGE)
		return s->before.gid;
	if (slash)
		*slash = '\0';
	if (slash && lstat(path, &st) == 0 && groups_have(g, st.st_gid))
		return st.st_gid;
	return getegid();
}

static bool is_given(const struct plan_step *s)
{
	return s->act == PLAN_CREATE || s->act == PLAN_REPLACE ||
	       (s->act == PLAN_CHANGE && s->before.gid != s->after.gid);
}

static int fit(struct plan_step *list, size_t n, const struct groups *g, const char *top,
	       plan_fn fn, void *ctx)
{
	int r = 0;

	for (size_t i = 0; i < n && r >= 0; i++) {
		struct plan_step *s = &list[i];

		if (!is_given(s) || groups_have(g, s->after.gid))
			continue;
		r = fn(s, ctx);
		s->after.gid = choose(g, top, s);
	}
	return r;
}

int plan_fit_groups(struct plan *p, const char *top, plan_fn fn, void *ctx, struct err *err)
{
	CLEANUP(groups_done) struct groups g = { 0 };
	int r;

	if (geteuid() == 0)
		return 0;
	r = groups_read(&g, err);
	if (r < 0)
		return r;
	r = fit(p->dirs, p->n_dirs, &g, top, fn, ctx);
	if (r < 0)
		return r;
	r = fit(p->files, p->n_files, &g, top, fn, ctx);
	/* Names of one file have one group. */
	for (size_t i = 0; i < p->n_files && r >= 0; i++)
		if (p->files[i].first < p->n_files && is_given(&p->files[i]))
			p->files[i].after.gid = p->files[p->files[i].first].after.gid;
	return r;
}
