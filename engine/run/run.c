/*
 * The order of a run: check the options; let cowfsd prepare the clone, while the sandbox prepares what
 * every run needs; begin the record; run the command; ask cowfsd what changed; end the record.  If
 * anything fails after the second step, cowfsd removes the clone when our connection ends.
 */
#include "engine/api/run.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/vec.h"
#include "engine/api/artifact.h"
#include "engine/ask/ask-stage-i.h"
#include "engine/run/run-after.h"
#include "engine/run/run-asked.h"
#include "engine/run/run-caller.h"
#include "engine/run/run-curve.h"
#include "engine/run/run-events.h"
#include "engine/run/run-guess.h"
#include "engine/run/run-output.h"
#include "engine/run/run-plan.h"
#include "engine/run/run-project.h"
#include "engine/run/run-questions.h"
#include "engine/run/run-refusal.h"
#include "engine/run/run-root.h"
#include "engine/run/run-snapshot.h"
#include "engine/run/waiting-i.h"

#define TTL_SLACK_MS ((uint64_t)600000)   /* that a clone outlives its run's time limit */
#define TTL_MAX_MS   ((uint64_t)86400000) /* without a time limit */

/* A run in progress. */
struct running {
	struct engine *engine;
	const struct engine_run_options *options;
	struct control control;
	struct stage_options staging;
	struct stage_asking asking;
	struct stage stage;
	struct run_project project;
	bool begun; /* the clone was asked for */
	bool ready; /* the clone and the record exist */
	struct raw_terminal raw;
	struct cancel_wait cancel;
	struct run_plan plan;
	struct sandbox_root root;
	char *root_dir; /* owned; what its clone is made of; NULL: as the options say */
	struct run_record record;
	struct run_output output;
	struct run_curve curve;
	struct engine_run run;
};

static void running_done(struct running *r)
{
	run_output_done(&r->output);
	run_record_done(&r->record);
	run_plan_done(&r->plan);
	raw_terminal_end(&r->raw);
	cancel_wait_end(&r->cancel);
	run_project_done(&r->project);
	stage_done(&r->stage);
	stage_asking_done(&r->asking);
	control_done(&r->control);
	free(r->root_dir);
	engine_run_done(&r->run);
}

/* --- before ----------------------------------------------------------------------------- */

static bool hides(const struct running *r)
{
	return r->plan.terms.profile.hide.n + r->options->hide.n > 0;
}

static struct stage_options staging_of(const struct running *r)
{
	const struct engine_run_options *o = r->options;
	const uint64_t time = r->plan.terms.limits.time_ms;
	uint32_t ids;
	const uint32_t first_id = sandbox_ids_outside(&ids);

	return (struct stage_options){
		.run = r->run.id,
		.clone = o->clone,
		.from = o->from,
		.root = r->root_dir,
		.lazy = o->lazy || o->root,
		.eager = o->eager,
		.skip_unreadable = o->skip_unreadable,
		.part = o->part,
		.keep = o->keep,
		.strict = o->strict,
		/* Artifacts are read from it when the run has ended, by another cowfsd perhaps. */
		.passing = !o->clone && !o->keep && !o->waits && !o->strict && o->artifacts.n == 0,
		.wait = o->waits && !o->keep,
		.remove = o->remove,
		.no_snapshot = o->no_snapshot,
		/* In a mount of its own a root's are refused by number. */
		.masks = !o->root && hides(r),
		.disk = r->plan.terms.limits.disk,
		.inodes = r->plan.terms.limits.inodes,
		.ttl_ms = o->keep                         ? r->plan.terms.ttl_ms
			  : o->waits                      ? TTL_MAX_MS
			  : time > 0 && time < TTL_MAX_MS ? time + TTL_SLACK_MS
							  : TTL_MAX_MS,
		.first_id = first_id,
		/* A root is mounted in the run's own namespaces, which know its ids. */
		.ids = o->root ? 0 : ids,
		.watch = o->watch,
	};
}

/* Record the names of variables only, and the words without secrets. */
static int describe_words(struct running *r, struct err *err)
{
	const char *const *argv = r->plan.terms.argv;
	struct strlist *a = &r->run.argv, *v = &r->run.env;

	for (size_t i = 0; argv[i]; i++) {
		if (strlist_take(a, scrub_text(&r->plan.env.secrets, argv[i])) < 0)
			return err_nomem(err);
		r->run.asked.scrubbed |= strcmp(a->list[i], argv[i]) != 0;
	}
	for (size_t i = 0; i < r->plan.secrets.n; i++)
		if (strlist_add(&r->run.secret_for, r->plan.secrets.list[i].rule) < 0)
			return err_nomem(err);
	if (run_tls_describe(&r->plan.net.tls, &r->run.tls_inspect) < 0)
		return err_nomem(err);
	for (size_t i = 0; i < r->plan.env.words.n; i++) {
		const char *entry = r->plan.env.words.list[i];

		if (strlist_take(v, strndup(entry, strcspn(entry, "="))) < 0)
			return err_nomem(err);
	}
	return run_asked_fill(&r->run.asked, r->options, r->engine->dir, err);
}

static int describe(struct running *r, struct err *err)
{
	struct engine_run *run = &r->run;

	run->state = ENGINE_RUN_RUNNING;
	run->clone = strdup(r->stage.clone);
	run->project = strdup(r->stage.project);
	run->cwd = strdup(r->plan.view.cwd);
	run->profile = strdup(r->plan.terms.profile.name);
	run->net = strdup(r->plan.terms.net ? r->plan.terms.net : "none");
	if (!run->clone || !run->project || !run->cwd || !run->profile || !run->net)
		return err_nomem(err);
	memcpy(run->before, r->stage.before, sizeof(run->before));
	memcpy(run->project_id, r->stage.project_id, sizeof(run->project_id));
	run->made = !r->options->clone;
	run->root = r->options->root;
	snprintf(run->as, sizeof(run->as), "%s", r->options->as ? r->options->as : "");
	run_publish_describe(&r->plan.publish, run);
	run->limits = r->plan.terms.limits;
	run->unread = r->stage.unread;
	run->pid = getpid();
	run->detached = r->options->detached;
	run->started = engine_now();
	return describe_words(r, err);
}

/* Ask for the clone without waiting for it. */
static int prepare(struct running *r, struct err *err)
{
	int x = run_plan_check(&r->plan, r->engine, r->options, err);

	if (x < 0)
		return x;
	x = run_asked_id(r->options, r->run.id, err);
	if (x < 0)
		return x;
	x = run_plan_trace(&r->plan, r->run.id, r->run.trace, err);
	if (x < 0)
		return x;
	x = run_root_find(r->engine, r->options, &r->root_dir, err);
	if (x < 0)
		return x;
	x = run_project_find(&r->project, r->engine, r->options, r->root_dir, err);
	if (x < 0)
		return x;
	r->staging = staging_of(r);
	stage_ask_ahead(r->engine, &r->staging, &r->control, &r->asking);
	return run_plan_begin(&r->plan, r->options, err);
}

/* --- during ----------------------------------------------------------------------------- */

static void begin_output(struct running *r)
{
	const struct engine_run_options *o = r->options;

	r->output = (struct run_output){
		.streams = { { .scrub = &r->plan.env.secrets }, { .scrub = &r->plan.env.secrets } },
		.record = &r->record,
		.fds = { o->out_fd, o->err_fd },
		.unlogged = o->out_is_data,
		.shows = { o->show_out, o->show_err },
		.captured = { o->detached ? NULL : &r->run.out, o->detached ? NULL : &r->run.err },
	};
}

/* A slow reader of the output cannot extend the run's time limit. */
static void begin_time(void *ctx)
{
	struct running *r = ctx;
	const uint64_t time = r->plan.terms.limits.time_ms;

	run_view_began(&r->plan.view);
	r->output.deadline_ms = time > 0 ? engine_clock_ms() + time : 0;
	run_publish_began(&r->plan.publish);
	if (r->options->began)
		r->options->began(&r->run, r->options->began_ctx);
}

/* Called when the sandbox needs the clone, just before the command starts. */
static int begin(struct running *r, struct sandbox_view *ret, struct err *err)
{
	int x;

	r->begun = true;
	x = stage_ask(r->engine, &r->staging, &r->asking, &r->control, &r->stage, err);
	if (x < 0)
		return x;
	x = run_project_stage(&r->project, r->engine, &r->staging, &r->stage, hides(r), err);
	if (x < 0)
		return x;
	x = run_plan_fill(&r->plan, r->engine, r->options, &r->stage, &r->project, ret, err);
	if (x < 0)
		return x;
	x = describe(r, err);
	if (x < 0)
		return x;
	x = run_record_begin(r->engine->store_path, &r->run, &r->record, err);
	if (x < 0)
		return x;
	r->ready = true;
	run_event_started(r->engine->store_path, &r->run);
	if (r->options->begins)
		r->options->begins(r->options->begins_ctx);
	return 0;
}

static int show(void *ctx, struct sandbox_view *ret, struct err *err)
{
	struct running *r = ctx;
	int x = begin(r, ret, err);

	if (x < 0)
		return x;
	begin_output(r);
	if (r->options->tty)
		raw_terminal_begin(&r->raw, r->options->in_fd);
	return 0;
}

static int serve_root(void *ctx, int fd, const uint32_t *one, struct err *err)
{
	struct running *r = ctx;

	const struct stage_root how = {
		.one = one,
		.hidden = r->plan.view.hidden,
		.n_hidden = r->plan.view.n_hidden,
	};

	return stage_ask_root(r->engine, &r->control, fd, &how, err);
}

static int open_questions(struct running *r, struct run_questions **ret, struct err *err)
{
	const struct run_questions_options o = {
		.engine = r->engine,
		.run = r->options,
		.secrets = &r->plan.env.secrets,
		.net = &r->plan.net,
		.wait_ms = r->plan.terms.ask_ms,
		.into = &r->run,
	};

	return o.wait_ms == 0 ? 0 : run_questions_open(&o, &r->plan.spec, ret, err);
}

static int execute(struct running *r, struct sandbox_result *result, struct err *err)
{
	CLEANUP(run_questions_close_p) struct run_questions *questions = NULL;
	CLEANUP(run_snapshots_close_p) struct run_snapshots *snapshots = NULL;
	const struct run_snapshots_options taking = {
		.engine = r->engine,
		.run = &r->run,
		.most = r->plan.terms.profile.snapshots,
	};
	struct sandbox_spec *spec = &r->plan.spec;
	int x, held;

	spec->output = run_output_take;
	spec->output_ctx = &r->output;
	spec->began = begin_time;
	spec->began_ctx = r;
	spec->refused = run_refusals_take_call;
	spec->refused_ctx = &r->run.refusals;
	r->root = (struct sandbox_root){ serve_root, run_root_home(r->options), r };
	spec->root = r->options->root ? &r->root : NULL;
	run_curve_watch(&r->curve, &r->record, spec);
	spec->view = show;
	spec->view_ctx = r;
	x = run_snapshots_open(&taking, spec, &snapshots, err);
	if (x < 0)
		return x;
	x = open_questions(r, &questions, err);
	if (x < 0)
		return x;
	x = run_net_open(&r->plan.net, &r->plan.env.secrets, &r->run.refusals, spec, err);
	if (x < 0)
		return x;
	x = sandbox_run(spec, result, err);
	raw_terminal_end(&r->raw);
	held = r->ready ? run_output_end(&r->output) : 0;
	run_net_tell(&r->plan.net, &r->run);
	run_publish_end(&r->plan.publish);
	run_net_done(&r->plan.net);
	return x < 0 ? x : held < 0 ? err_wrap(err, held, "passing on what the run wrote") : 0;
}

/*
 * A sandbox that failed before it asked for the clone gets a record like any other run, unless there
 * is no clone either.
 */
static int catch_up(struct running *r, struct err *err)
{
	struct sandbox_view unused;
	struct err why = { 0 };
	int x;

	if (r->begun)
		return r->ready ? 0 : err->code;
	x = begin(r, &unused, &why);
	return x < 0 ? err_set(err, x, "%s", why.msg) : 0;
}

/* --- after ------------------------------------------------------------------------------ */

static void take_walls(struct engine_run *run, uint32_t walls)
{
	_Static_assert(SANDBOX_N_WALLS <= ENGINE_WALLS_MAX, "a place for every wall");

	for (unsigned i = 0; i < SANDBOX_N_WALLS; i++)
		if (walls & WALL_BIT(i))
			run->walls[run->n_walls++] = sandbox_wall_name((enum sandbox_wall)i);
}

static void take_missing(struct engine_run *run, const struct sandbox_result *result)
{
	struct engine_missing *m = &run->missing;

	for (unsigned i = 0; i < SANDBOX_N_WALLS && m->n < ARRAY_LEN(m->list); i++) {
		if (!(result->missing & WALL_BIT(i)))
			continue;
		m->list[m->n].wall = sandbox_wall_name((enum sandbox_wall)i);
		snprintf(m->list[m->n].reason, sizeof(m->list[0].reason), "%s",
			 i == WALL_LANDLOCK ? "no Landlock can be had here"
					    : result->unbounded.msg);
		m->n++;
	}
}

static int take_problem(struct engine_run *run, const struct scrub *secrets, const struct err *why)
{
	run->problem = scrub_text(secrets, why->msg);
	return run->problem ? 0 : -ENOMEM;
}

/* If a slow reader kept us until the time was up, the run timed out as well. */
static bool ran_out_of_time(const struct running *r, const struct sandbox_result *result)
{
	return result->timed_out || r->output.failed == -ETIMEDOUT;
}

static bool was_cancelled(const struct running *r, const struct sandbox_result *result)
{
	return result->cancelled || (r->output.failed == -EINTR && cancel_wait_has_come());
}

static void take_cancelled(struct engine_run *run)
{
	run->state = ENGINE_RUN_CANCELLED;
	run->exit_code = ENGINE_RUN_CANCELLED_CODE;
	run->timed_out = false;
}

static void take_result(struct running *r, const struct sandbox_result *result, int x,
			const struct err *why)
{
	struct engine_run *run = &r->run;

	run->state = x < 0 && !result->exec_failed && r->output.failed == 0 ? ENGINE_RUN_REFUSED
									    : ENGINE_RUN_ENDED;
	run->ended = engine_now();
	run->timed_out = ran_out_of_time(r, result);
	run->exit_code = run->state == ENGINE_RUN_REFUSED      ? 125
			 : result->exec_failed && x == -ENOENT ? 127
			 : result->exec_failed                 ? 126
			 : run->timed_out                      ? 124
			 : r->output.failed == -EPIPE          ? 128 + SIGPIPE
							       : result->exit_code;
	run->signal = result->signal;
	run->interrupted = result->interrupted;
	run->oom_killed = result->oom_killed;
	/* The limit that ended the run comes before one that only truncated something. */
	if (result->limit || run->timed_out)
		snprintf(run->limit, sizeof(run->limit), "%s",
			 result->limit ? result->limit : "time");
	take_walls(run, result->walls);
	take_missing(run, result);
	snprintf(run->ids, sizeof(run->ids), "%s", run_root_ids(r->options, result->ids));
	run->owners_lost = result->owners_lost;
	run->landlock = result->landlock;
	snprintf(run->cgroup, sizeof(run->cgroup), "%s", result->cgroup ? result->cgroup : "none");
	run->duration_ms = result->duration_ms;
	run->cpu_ms = result->cpu_ms;
	run->max_rss = result->max_rss;
	run->max_mem = result->max_mem;
	run_curve_end(&r->curve, run);
	run->truncated = result->truncated || r->output.truncated;
	if (run_guess_hosts(run, &r->plan.env.secrets, r->output.tail) < 0)
		log_warn("out of memory: what the run could not reach is not told, continuing");
	if (was_cancelled(r, result))
		take_cancelled(run);
	else if (x < 0 && take_problem(run, &r->plan.env.secrets, why) < 0)
		log_warn("out of memory, continuing");
}

/* One artifact for each path; what cannot be saved is part of the result. */
static int save_artifact(struct running *r, const char *path)
{
	CLEANUP(engine_artifact_done) struct engine_artifact saved = { 0 };
	char *paths[] = { strdup(path), NULL };
	const struct engine_artifact_options o = {
		.clone = r->stage.clone,
		.paths = paths,
		.n_paths = 1,
		.run = r->run.id,
	};
	struct engine_run_artifact *a;
	struct err err = { 0 };

	if (!paths[0] || !VEC_ONE_MORE(r->run.artifacts, r->run.n_artifacts)) {
		free(paths[0]);
		return -ENOMEM;
	}
	a = &r->run.artifacts[r->run.n_artifacts++];
	*a = (struct engine_run_artifact){ .path = paths[0] };
	if (engine_artifact_save(r->engine, &o, &saved, &err) < 0)
		return (a->problem = scrub_text(&r->plan.env.secrets, err.msg)) ? 0 : -ENOMEM;
	memcpy(a->id, saved.id, sizeof(a->id));
	return 0;
}

static void save_artifacts(struct running *r)
{
	for (size_t i = 0; i < r->options->artifacts.n && r->run.state != ENGINE_RUN_REFUSED; i++)
		if (save_artifact(r, r->options->artifacts.items[i]) < 0)
			log_warn("out of memory: '%s' is not saved, continuing",
				 r->options->artifacts.items[i]);
}

/* Ask cowfsd what changed.  If it cannot say, the run counts all the same. */
static void settle(struct running *r)
{
	CLEANUP(stage_end_done) struct stage_end end = { 0 }, project = { 0 };
	struct engine_run *run = &r->run;
	struct err err = { 0 };

	run_view_release(&r->plan.view);
	run_project_end(&r->project, r->engine, &project);
	if (stage_ask_end(r->engine, &r->control, &end, &err) < 0) {
		log_warn("cannot list the run's changes: %s, continuing", err.msg);
		return;
	}
	run_project_leave_out(&r->project, &end);
	run->compared = end.compared;
	run->added = end.added;
	run->modified = end.modified;
	run->deleted = end.deleted;
	run->changed = end.changed;
	run->removed = end.removed;
	end.changed = (struct engine_paths){ 0 };
	if ((end.no_inodes || project.no_inodes) && *run->limit == '\0')
		snprintf(run->limit, sizeof(run->limit), "inodes");
	if ((end.full || project.full) && *run->limit == '\0')
		snprintf(run->limit, sizeof(run->limit), "disk");
}

/* If cowfsd died meanwhile, another one can still clean up. */
static void clear_away(struct running *r)
{
	const bool goes =
	    r->options->clone ? r->options->remove : !r->options->keep && !r->options->waits;
	struct engine_removed removed;
	struct err err = { 0 };
	int x;

	if (!goes || r->run.compared || r->run.removed)
		return;
	x = engine_remove(r->engine, r->stage.clone, false, &removed, &err);
	if (x < 0 && x != -ENOENT)
		log_warn("removing clone '%s': %s, continuing", r->stage.clone, err.msg);
	r->run.removed = x >= 0 || x == -ENOENT;
}

/* From here on the clone lives as long as the connection. */
static int hand_over(struct running *r, struct err *err)
{
	if (!r->options->waits || r->run.state == ENGINE_RUN_REFUSED)
		return 0;
	return waiting_new(r->engine, r->stage.clone, r->options->keep, &r->control, &r->record,
			   r->options->waits, err);
}

int engine_run(struct engine *e, const struct engine_run_options *options, struct engine_run *ret,
	       struct err *err)
{
	CLEANUP(running_done) struct running r = {
		.engine = e,
		.options = options,
		.control = CONTROL_INIT,
		.project = RUN_PROJECT_INIT,
		.plan = RUN_PLAN_INIT,
		.record = RUN_RECORD_INIT,
		.raw = { .fd = -1 },
	};
	struct sandbox_result result = { 0 };
	int x, caught, handed;

	cancel_wait_begin(&r.cancel);
	x = prepare(&r, err);
	if (x < 0)
		return x;
	x = execute(&r, &result, err);
	caught = catch_up(&r, err);
	if (caught < 0)
		return caught;
	take_result(&r, &result, x, err);
	save_artifacts(&r);
	settle(&r);
	clear_away(&r);
	run_after_end(e, &r.record, &r.run);
	handed = hand_over(&r, x < 0 ? NULL : err);
	*ret = TAKE_STRUCT(r.run);
	if (handed < 0 && x >= 0)
		return handed;
	/* A program that could not be executed, a timeout and a cancellation are results. */
	return result.exec_failed || ret->timed_out || ret->state == ENGINE_RUN_CANCELLED ? 0 : x;
}
