#include "engine/run/run-perform.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/path.h"
#include "base/signals.h"
#include "base/text.h"
#include "engine/find/engine-i.h"
#include "engine/find/run-record.h"
#include "engine/run/run-after.h"
#include "engine/run/run-asked.h"
#include "engine/run/run-events.h"
#include "runner/sandbox.h"

struct performed {
	struct engine_performing shared; /* first: callbacks get it */
	struct engine_run run;
	struct run_record record;
	struct signals signals;
};

static void performed_done(struct performed *p)
{
	(void)signals_end(&p->signals);
	run_record_done(&p->record);
	engine_run_done(&p->run);
}

static void on_output(struct engine_performing *shared, bool of_stderr, const void *data,
		      size_t len)
{
	struct performed *p = (struct performed *)shared;

	run_record_log(&p->record, of_stderr, data, len);
}

static void on_note(struct engine_performing *shared)
{
	struct performed *p = (struct performed *)shared;
	struct err why = { 0 };

	if (run_record_note(&p->record, &p->run, &why) < 0)
		log_warn("%s, continuing", why.msg);
}

/* --- before ------------------------------------------------------------------------------- */

static int describe_words(struct performed *p, const struct engine_run_options *o, struct err *err)
{
	struct engine_run *run = &p->run;

	for (size_t i = 0; o->argv[i]; i++)
		if (strlist_add(&run->argv, o->argv[i]) < 0)
			return err_nomem(err);
	for (size_t i = 0; i < o->env.n; i++)
		if (strlist_take(&run->env,
				 strndup(o->env.items[i], strcspn(o->env.items[i], "="))) < 0)
			return err_nomem(err);
	return run_asked_fill(&run->asked, o, p->shared.engine->dir, err);
}

static int describe(struct performed *p, struct err *err)
{
	const struct engine_run_options *o = p->shared.options;
	CLEANUP(project_done) struct project project = { 0 };
	struct engine *e = p->shared.engine;
	struct engine_run *run = &p->run;
	struct store *store;
	int r = engine_project(e, &store, &project, err);

	if (r == 0)
		r = run_asked_id(o, run->id, err);
	if (r < 0)
		return r;
	run->state = ENGINE_RUN_RUNNING;
	run->clone = strdup(o->clone);
	run->cwd = path_clean(e->dir, o->workdir ? o->workdir : ".");
	run->profile = strdup(o->profile ? o->profile : "");
	run->net = strdup("");
	if (!run->clone || !run->cwd || !run->profile || !run->net)
		return err_nomem(err);
	catalog_id_hex(&project.id, run->project_id);
	run->project = TAKE_PTR(project.path);
	run->limits = o->limits;
	run->pid = getpid();
	run->detached = o->detached;
	run->started = engine_now();
	return describe_words(p, o, err);
}

/* --- after -------------------------------------------------------------------------------- */

static bool is_asked_to_end(const struct performed *p)
{
	struct pollfd fd = { .fd = p->shared.stop_fd, .events = POLLIN };

	return poll(&fd, 1, 0) > 0;
}

static void take_end(struct performed *p, int r, const struct err *why)
{
	struct engine_run *run = &p->run;

	run->ended = engine_now();
	if (r < 0 && (r == -EINTR || is_asked_to_end(p))) {
		run->state = ENGINE_RUN_CANCELLED;
		run->exit_code = ENGINE_RUN_CANCELLED_CODE;
	} else if (r < 0) {
		run->state = ENGINE_RUN_REFUSED;
		run->exit_code = 125;
		free(run->problem);
		run->problem = strdup(why->msg);
	} else if (run->state == ENGINE_RUN_RUNNING) {
		run->state = ENGINE_RUN_ENDED;
	}
}

int run_perform(struct engine *e, const struct engine_run_options *options, struct engine_run *ret,
		struct err *err)
{
	CLEANUP(performed_done) struct performed p = {
		.shared = { .engine = e, .options = options, .output = on_output, .note = on_note },
		.record = RUN_RECORD_INIT,
		.signals = SIGNALS_INIT,
	};
	int r = describe(&p, err);

	p.shared.run = &p.run;
	if (r < 0)
		return r;
	if (options->begins)
		options->begins(options->begins_ctx);
	/* Before anybody can know of the run: a signal that cancels it is never too early. */
	r = signals_begin(&p.signals, SANDBOX_CANCEL, err);
	p.shared.stop_fd = p.signals.pipe[0];
	if (r == 0)
		r = run_record_begin(e->store_path, &p.run, &p.record, err);
	if (r < 0)
		return r;
	run_event_started(e->store_path, &p.run);
	if (options->began)
		options->began(&p.run, options->began_ctx);
	r = options->perform(&p.shared, options->perform_ctx, err);
	take_end(&p, r, err);
	run_after_end(e, &p.record, &p.run);
	*ret = TAKE_STRUCT(p.run);
	return ret->state == ENGINE_RUN_REFUSED ? r : 0;
}
