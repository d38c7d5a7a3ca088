#include "engine/api/projects.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/path.h"
#include "base/vec.h"
#include "engine/find/engine-i.h"

struct gathering {
	struct engine_projects all;
};

void engine_projects_done(struct engine_projects *p)
{
	VEC_FREE(it, p->list, p->n, free(it->path));
	*p = (struct engine_projects){ 0 };
}

static void gathering_done(struct gathering *g)
{
	engine_projects_done(&g->all);
}

static int add_project(const struct project *p, void *ctx, struct err *err)
{
	struct gathering *g = ctx;
	struct engine_project *one;
	struct stat st;

	if (p->hidden != PROJECT_SHOWN)
		return 0;
	if (!VEC_ONE_MORE(g->all.list, g->all.n))
		return err_nomem(err);
	one = &g->all.list[g->all.n];
	*one = (struct engine_project){ .path = strdup(p->path), .created = p->created };
	if (!one->path)
		return err_nomem(err);
	catalog_id_hex(&p->id, one->id);
	one->missing =
	    stat(p->path, &st) < 0 ? errno == ENOENT || errno == ENOTDIR : !S_ISDIR(st.st_mode);
	g->all.n++;
	return 0;
}

static struct engine_project *find_project(struct gathering *g, const struct catalog_id *id)
{
	char hex[CATALOG_HEX_SIZE];

	catalog_id_hex(id, hex);
	return VEC_FIND(it, g->all.list, g->all.n, strcmp(it->id, hex) == 0);
}

static int count_snapshot(const struct snapshot *s, void *ctx, struct err *err)
{
	struct engine_project *p = find_project(ctx, &s->project);

	if (p)
		p->snapshots++;
	return 0;
}

static int count_clone(const struct clone *c, void *ctx, struct err *err)
{
	struct engine_project *p = find_project(ctx, &c->project);

	if (p)
		p->clones++;
	return 0;
}

static int by_path(const void *a, const void *b)
{
	const struct engine_project *x = a, *y = b;

	return strcmp(x->path, y->path);
}

int engine_projects(struct engine *e, struct engine_projects *ret, struct err *err)
{
	CLEANUP(gathering_done) struct gathering g = { 0 };
	struct store *s;
	int r = engine_store(e, STORE_READ, &s, err);

	if (r == -ENOENT) {
		*ret = (struct engine_projects){ 0 };
		return 0;
	}
	if (r < 0)
		return r;
	r = project_each(s, add_project, &g, err);
	if (r < 0)
		return r;
	r = snapshot_each(s, count_snapshot, &g, err);
	if (r < 0)
		return r;
	r = clone_each(s, count_clone, &g, err);
	if (r < 0)
		return r;
	VEC_SORT(g.all.list, g.all.n, by_path);
	*ret = TAKE_STRUCT(g.all);
	return 0;
}

struct engine_project *engine_projects_find(const struct engine *e, struct engine_projects *p,
					    const char *word)
{
	AUTO_FREE char *clean = path_clean(e->dir, word),
		       *real = clean ? realpath(clean, NULL) : NULL;

	for (size_t i = 0; i < p->n; i++) {
		struct engine_project *one = &p->list[i];

		if (strcmp(one->id, word) == 0 || (clean && strcmp(one->path, clean) == 0) ||
		    (real && strcmp(one->path, real) == 0))
			return one;
	}
	return NULL;
}

int engine_project_to_be(struct engine *e, char **ret, struct err *err)
{
	CLEANUP(project_done) struct project project = { 0 };
	int r = project_choose(e, NULL, NULL, &project, err);

	if (r < 0)
		return r;
	*ret = TAKE_PTR(project.path);
	return 0;
}
