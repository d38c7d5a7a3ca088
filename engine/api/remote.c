#include "engine/api/remote.h"

#include <stdlib.h>

#include "base/text.h"
#include "base/vec.h"

void engine_remotes_done(struct engine_remotes *r)
{
	for (size_t i = 0; i < r->n; i++) {
		free(r->list[i].name);
		free(r->list[i].url);
	}
	free(r->list);
	*r = (struct engine_remotes){ 0 };
}

void engine_pushed_done(struct engine_pushed *p)
{
	free(p->remote);
	free(p->name);
	free(p->state);
	free(p->signed_as);
	*p = (struct engine_pushed){ 0 };
}

void engine_fetched_done(struct engine_fetched *f)
{
	free(f->remote);
	free(f->name);
	free(f->tag);
	free(f->signer);
	free(f->project);
	engine_snapshot_done(&f->snapshot);
	*f = (struct engine_fetched){ 0 };
}

void engine_remote_log_done(struct engine_remote_log *l)
{
	for (size_t i = 0; i < l->n; i++) {
		free(l->list[i].name);
		free(l->list[i].message);
		free(l->list[i].who);
		free(l->list[i].host);
	}
	free(l->list);
	free(l->remote);
	*l = (struct engine_remote_log){ 0 };
}

void engine_received_done(struct engine_received *r)
{
	texts_free(r->wanted, r->n_wanted);
	free(r->ranges);
	free(r->project);
	engine_snapshot_done(&r->snapshot);
	*r = (struct engine_received){ 0 };
}

void engine_remote_gc_done(struct engine_remote_gc *g)
{
	free(g->remote);
	VEC_FREE(it, g->gone, g->n_gone, free(it->name));
	*g = (struct engine_remote_gc){ 0 };
}
