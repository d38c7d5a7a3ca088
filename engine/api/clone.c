#include "engine/api/clone.h"

#include <stdlib.h>

#include "base/vec.h"
#include "engine/api/since.h"

void engine_paths_done(struct engine_paths *p)
{
	VEC_FREE(it, p->list, p->n, free(it->path));
	*p = (struct engine_paths){ 0 };
}

void engine_clone_done(struct engine_clone *c)
{
	free(c->allow);
	free(c->name);
	free(c->path);
	free(c->project);
	free(c->part);
	free(c->who);
	free(c->via);
	engine_paths_done(&c->changed);
	engine_paths_done(&c->lost);
	engine_paths_done(&c->unread);
	free(c->stuck);
	engine_paths_done(&c->stale.in_project);
	*c = (struct engine_clone){ 0 };
}

void engine_clones_done(struct engine_clones *c)
{
	VEC_FREE(it, c->list, c->n, engine_clone_done(it));
	free(c->project);
	free(c->git_dir);
	engine_strays_free(c->strays, c->n_strays);
	engine_strays_free(c->links, c->n_links);
	*c = (struct engine_clones){ 0 };
}

void engine_overview_done(struct engine_overview *o)
{
	free(o->path);
	engine_paths_done(&o->changed);
	*o = (struct engine_overview){ 0 };
}

void engine_since_done(struct engine_since *s)
{
	free(s->token);
	strlist_done(&s->paths);
	*s = (struct engine_since){ 0 };
}
