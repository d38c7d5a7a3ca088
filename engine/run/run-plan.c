#include "engine/run/run-plan.h"

#include <errno.h>

#include "engine/run/run-root.h"

#define FRESH_MAX ((uint64_t)1 << 30) /* bytes of temporary files, if memory has no limit */

void run_plan_done(struct run_plan *p)
{
	run_view_done(&p->view);
	run_net_done(&p->net);
	run_publish_done(&p->publish);
	run_env_done(&p->env);
	run_secrets_done(&p->secrets); /* behind the environment, which borrows from them */
	run_terms_done(&p->terms);
	free(p->git);
	*p = RUN_PLAN_INIT;
}

static int choose_walls(struct run_plan *p, const struct engine_list *missing, struct err *err)
{
	for (size_t i = 0; i < missing->n; i++) {
		const int wall = sandbox_wall_find(missing->items[i]);

		if (wall < 0 || !(SANDBOX_MAY_MISS & WALL_BIT(wall)))
			return err_set(err, -EINVAL,
				       "option '--allow-missing': '%s' is no wall that may be "
				       "missing (landlock, memory, pids, cpu)",
				       missing->items[i]);
		p->spec.may_miss |= WALL_BIT(wall);
	}
	return 0;
}

/* What the terms of the run say about its sandbox. */
static void fill_spec(struct run_plan *p, const struct engine_run_options *o)
{
	const struct engine_run_limits *l = &p->terms.limits;

	sandbox_spec_init(&p->spec);
	if (o->root)
		run_root_user(o, &p->spec);
	p->spec.argv = p->terms.argv;
	p->spec.filter = p->terms.filter.len > 0 ? p->terms.filter.data : NULL;
	p->spec.filter_len = p->terms.filter.len;
	p->spec.strict_calls = p->terms.strict_calls;
	p->spec.in_fd = o->in_fd;
	p->spec.tty = o->tty;
	p->spec.limits = (struct sandbox_limits){
		.mem = l->mem,
		.mem_is_default = !p->terms.mem_by_name,
		.cpus_milli = l->cpus_milli,
		.pids = l->pids,
		.wall_ms = l->time_ms,
		.fsize = l->fsize,
		.nofile = l->nofile,
		.output = l->output,
		.tmp = l->mem > 0 ? l->mem : FRESH_MAX,
	};
}

int run_plan_check(struct run_plan *p, struct engine *e, const struct engine_run_options *o,
		   struct err *err)
{
	int r = run_terms_choose(&p->terms, e, o, err);

	if (r < 0)
		return r;
	r = run_root_check(o, &p->terms, err);
	if (r < 0)
		return r;
	fill_spec(p, o);
	r = run_net_choose(&p->net, &p->terms, &p->spec, err);
	if (r < 0)
		return r;
	r = run_tls_choose(&p->net.tls, o, &p->terms.profile, &p->net.allow, err);
	if (r < 0)
		return r;
	r = choose_walls(p, &o->allow_missing, err);
	if (r < 0)
		return r;
	r = o->root ? 0 : run_git_read(&p->git, err);
	if (r < 0)
		return r;
	r = run_env_build(&p->env, o, &p->terms.profile, run_net_variables(&p->net),
			  p->git ? run_git_variables() : (struct engine_list){ 0 },
			  run_tls_variables(&p->net.tls), err);
	if (r < 0)
		return r;
	r = run_secrets_read(&p->secrets, o, &p->terms.profile, &p->net, &p->env, err);
	if (r < 0)
		return r;
	p->net.hidden = &p->secrets.net;
	p->spec.env = (const char *const *)p->env.words.list;
	r = sandbox_spec_check(&p->spec, err);
	return r < 0 ? r : run_publish_open(&p->publish, &o->publish, &p->spec, err);
}

int run_plan_trace(struct run_plan *p, const char *run, char ret[TRACEPARENT_SIZE], struct err *err)
{
	int r = run_env_trace(&p->env, run, ret, err);

	p->spec.env = (const char *const *)p->env.words.list;
	return r;
}

int run_plan_begin(struct run_plan *p, const struct engine_run_options *o, struct err *err)
{
	int r = run_view_begin(&p->view, o->root, err);

	if (r < 0)
		return r;
	p->spec.mounts = p->view.system->mounts;
	p->spec.n_mounts = p->view.system->n;
	return 0;
}

int run_plan_fill(struct run_plan *p, struct engine *e, const struct engine_run_options *o,
		  const struct stage *stage, const struct run_project *project,
		  struct sandbox_view *ret, struct err *err)
{
	const struct run_sight sight = { .options = o,
					 .profile = &p->terms.profile,
					 .net = &p->net,
					 .home = p->env.home,
					 .git = p->git,
					 .project = project };
	int r = run_view_build(&p->view, e, &sight, stage, err);

	if (r < 0)
		return r;
	*ret = (struct sandbox_view){
		.cwd = p->view.cwd,
		.mounts = p->view.layout->mounts,
		.n_mounts = p->view.layout->n,
		.mounted_by_ms = p->view.mounted_by_ms,
	};
	return 0;
}
