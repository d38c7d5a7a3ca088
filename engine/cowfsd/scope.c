#include "engine/cowfsd/scope-i.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "base/vec.h"
#include "engine/find/engine-i.h"
#include "engine/find/moved-i.h"
#include "engine/host/host-i.h"

struct scoping {
	struct task *task;
	const struct scope_rule *rule;
	struct promises_scope *scope;
	const char *written; /* while related projects are looked for */
};

static void add(struct promises_scope *s, const struct catalog_id *project)
{
	if (s->n == PROMISES_PROJECTS_MAX)
		s->all = true;
	else
		s->projects[s->n++] = *project;
}

static int add_related(const struct project *p, void *ctx, struct err *err)
{
	const struct scoping *g = ctx;

	if (path_is_below(g->written, p->path) || path_is_below(p->path, g->written))
		add(g->scope, &p->id);
	return 0;
}

static int add_project(struct scoping *g, const struct project *p, struct err *err)
{
	add(g->scope, &p->id);
	if (!g->rule->writes)
		return 0;
	g->scope->walks = true; /* of directories around it or below, too */
	g->written = p->path;
	return project_each(g->task->host->store, add_related, g, err);
}

/* What is no state is the act's to complain of.  One that has a slash may be a directory. */
static int add_state(struct scoping *g, const char *text, struct err *err)
{
	CLEANUP(state_done) struct state state = { 0 };
	struct err ignored = { 0 };
	int r = state_find(&g->task->engine, g->task->host->store, text, &state, &ignored);

	if (r >= 0)
		return add_project(g, &state.project, err);
	g->scope->walks = true; /* its clone may come to have that name */
	if (strchr(text, '/') || (r != -ENOENT && r != -EINVAL && r != -ENXIO))
		g->scope->all = true;
	return 0;
}

static int add_states(struct scoping *g, struct json options, const char *name, struct err *err)
{
	const enum json_kind kind = json_kind(options, name);
	int r = 0;

	if (kind == JSON_TEXT) {
		AUTO_FREE char *text = json_get_name(options, name);

		return text ? add_state(g, text, err) : 0;
	}
	if (kind == JSON_ARRAY) {
		const struct json list = json_get_array(options, name);

		for (size_t i = 0; r >= 0 && !g->scope->all && i < json_length(list); i++) {
			AUTO_FREE char *text = json_at_name(list, i);

			r = text ? add_state(g, text, err) : 0;
		}
	}
	return r;
}

/* The directory of a project that moved there may become that project. */
static int add_here(struct scoping *g, struct err *err)
{
	CLEANUP(project_done) struct project here = { 0 }, chosen = { 0 };
	CLEANUP(moved_done) struct moved moved = { 0 };
	struct store *s = g->task->host->store;
	struct engine *e = &g->task->engine;
	struct err ignored = { 0 };
	int r;

	if (project_around(e, s, &here, &ignored) >= 0) {
		/* In a clone, what is around it does not count. */
		if (path_is_below(e->dir, here.path)) {
			g->scope->here = e->dir;
			g->scope->around = strlen(here.path);
		}
		return add_project(g, &here, err);
	}
	g->scope->here = e->dir;
	r = project_choose(e, s, NULL, &chosen, &ignored);
	if (r == -ECANCELED)
		return 0; /* as "/" or the home directory: no command picks it */
	if (r < 0 || moved_find(s, chosen.path, chosen.path, &moved, &ignored) != 0)
		g->scope->all = true;
	return 0;
}

static int find(struct task *task, const struct scope_rule *rule, struct json options,
		struct promises_scope *ret, struct err *err)
{
	struct scoping g = { .task = task, .rule = rule, .scope = ret };
	int r;

	*ret = (struct promises_scope){ .all = !rule->by_project, .beside = rule->beside };
	if (ret->all)
		return 0;
	r = add_here(&g, err);
	for (size_t i = 0; r >= 0 && !ret->all && i < SCOPE_NAMES_MAX && rule->names[i]; i++)
		r = add_states(&g, options, rule->names[i], err);
	return r;
}

static bool has(const struct promises_scope *s, const struct catalog_id *project)
{
	return VEC_HAS(it, s->projects, s->n, catalog_id_same(it, project)) || s->all;
}

static bool covers_walks(const struct promises_scope *s, const struct promises_scope *now)
{
	if (s->walks)
		return true;
	return !now->walks && (!now->here || (s->here && s->around <= now->around));
}

static bool covers(const struct promises_scope *s, const struct promises_scope *now)
{
	for (size_t i = 0; i < now->n; i++)
		if (!has(s, &now->projects[i]))
			return false;
	if (s->all)
		return true;
	return !now->all && covers_walks(s, now);
}

int scope_enter(struct task *task, const struct scope_rule *rule, bool despite, struct json options,
		const struct engine_watch *watch, struct err *err)
{
	struct promises *p = task->host->promises;
	struct promises_scope scope, now;
	int r = find(task, rule, options, &scope, err);

	while (r >= 0) {
		scope.despite = despite;
		r = promises_enter(p, task, &scope, watch, err);
		if (r < 0)
			return r;
		/* From now on no capture begins. */
		r = find(task, rule, options, &now, err);
		if (r >= 0 && covers(&scope, &now))
			return 0;
		promises_leave(p);
		scope = now;
	}
	return r;
}
