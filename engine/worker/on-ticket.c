#include "engine/worker/on-i.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "base/text.h"

int on_workdir(struct engine *e, const char *named, char **ret, struct err *err)
{
	CLEANUP(project_done) struct project project = { 0 };
	AUTO_FREE char *path = NULL;
	struct store *store;
	int r = engine_project(e, &store, &project, err);

	if (r < 0)
		return r;
	path = named && *named != '/' ? path_join(e->dir, named) : strdup(named ? named : e->dir);
	if (!path)
		return err_nomem(err);
	/* In a clone, paths are the clone's: the top is as good as any. */
	if (!path_is_below(path, project.path))
		return named ? err_set(err, -EINVAL, "'%s' is not in the project", named)
			     : text_set(ret, err, "%s", "");
	named = path + strlen(project.path);
	return text_set(ret, err, "%s", *named == '/' ? named + 1 : named);
}

int on_labels(const struct engine_list *given, struct strlist *ret, struct err *err)
{
	for (size_t i = 0; i < given->n; i++)
		if (!strlist_has(ret, given->items[i]) && strlist_add(ret, given->items[i]) < 0)
			return err_nomem(err);
	strlist_sort(ret);
	return 0;
}

struct strlist on_names(const struct engine_list *l)
{
	return (struct strlist){ .list = (char **)(uintptr_t)l->items, .n = l->n };
}

static uint64_t said(uint64_t limit)
{
	return limit == ENGINE_UNSAID ? 0 : limit;
}

struct engine_run_limits on_limits(const struct engine_run_limits *l)
{
	return (struct engine_run_limits){ said(l->mem),     said(l->cpus_milli), said(l->pids),
					   said(l->time_ms), said(l->disk),       said(l->inodes),
					   said(l->fsize),   said(l->nofile),     said(l->output),
					   said(l->net_out) };
}
