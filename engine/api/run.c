#include "engine/api/run.h"

#include <stdlib.h>

#include "base/vec.h"
#include "engine/api/profile.h"

void engine_refusal_done(struct engine_refusal *r)
{
	free(r->kind);
	free(r->what);
	free(r->rule);
	free(r->flag);
	free(r->message);
}

static DEFINE_LIST_DONE(engine_refusals_done, struct engine_refusals, engine_refusal_done)

static void asked_done(struct engine_asked *a)
{
	strlist_done(&a->passed);
	strlist_done(&a->secrets);
	strlist_done(&a->set);
	strlist_done(&a->hide);
	strlist_done(&a->ro);
	strlist_done(&a->rw);
}

static void engine_machine_done(struct engine_machine *m)
{
	free(m->worker);
	free(m->host);
	*m = (struct engine_machine){ 0 };
}

void engine_run_done(struct engine_run *r)
{
	asked_done(&r->asked);
	strlist_done(&r->argv);
	strlist_done(&r->env);
	strlist_done(&r->secret_for);
	strlist_done(&r->tls_inspect);
	free(r->clone);
	free(r->project);
	free(r->cwd);
	free(r->profile);
	free(r->net);
	free(r->problem);
	free(r->curve);
	for (size_t i = 0; i < r->n_artifacts; i++) {
		free(r->artifacts[i].path);
		free(r->artifacts[i].problem);
	}
	free(r->artifacts);
	engine_refusals_done(&r->refusals);
	engine_answers_done(&r->answers);
	engine_machine_done(&r->machine);
	engine_paths_done(&r->changed);
	buf_done(&r->out);
	buf_done(&r->err);
	*r = (struct engine_run){ 0 };
}

DEFINE_LIST_DONE(engine_runs_done, struct engine_runs, engine_run_done)

void engine_profile_done(struct engine_profile *p)
{
	free(p->name);
	free(p->file);
	free(p->extends);
	free(p->description);
	free(p->net);
	free(p->seccomp);
	for (size_t i = 0; i < p->n_mounts; i++) {
		free(p->mounts[i].host);
		free(p->mounts[i].guest);
	}
	free(p->mounts);
	strlist_done(&p->hide);
	strlist_done(&p->env);
	strlist_done(&p->pass_env);
	strlist_done(&p->secret_for);
	strlist_done(&p->tls_inspect);
	strlist_done(&p->entrypoint);
	*p = (struct engine_profile){ 0 };
}

void engine_profiles_done(struct engine_profiles *p)
{
	for (size_t i = 0; i < p->n; i++) {
		free(p->list[i].name);
		free(p->list[i].file);
		free(p->list[i].description);
	}
	free(p->list);
	*p = (struct engine_profiles){ 0 };
}
