/*
 * The process that holds the run gets a signal that means only this, and some time to end the run.  If
 * it does not, because it is stopped or hangs, we kill it, which ends the run with it, and write the
 * last line of the record ourselves.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/sys.h"
#include "engine/find/engine-i.h"
#include "engine/find/run-record.h"
#include "runner/sandbox.h"

#define ASKED_MS  6000  /* two seconds of grace, and the time to clean up */
#define KILLED_MS 10000 /* what a kernel under load takes to end a process */

static int wait_for(struct engine *e, struct engine_run *run, uint64_t ms, struct err *err)
{
	const char *ids[] = { run->id };
	const struct engine_wait_options o = {
		.ids = ids, .n = 1, .timeout_ms = ms, .stop_fd = -1
	};
	CLEANUP(engine_runs_done) struct engine_runs runs = { 0 };
	int r = engine_run_wait(e, &o, &runs, err);

	if (r < 0)
		return r;
	engine_run_done(run);
	*run = runs.list[0];
	runs.list[0] = (struct engine_run){ 0 };
	return r;
}

static int ask(const struct engine_run *run, int fd, int sig, struct err *err)
{
	struct stat st;
	int r;

	if (fstat(fd, &st) < 0)
		return err_sys(err, "the record of run %s", run->id);
	if (st.st_uid != geteuid())
		return err_set(err, -EACCES, "run %s is one of user %u", run->id, st.st_uid);
	r = sys_signal_holder(run->pid, fd, sig);
	if (r == -ESRCH)
		return err_set(err, r,
			       "process %d, which runs it, is not to be found here: was run %s "
			       "started in a container?",
			       (int)run->pid, run->id);
	return r < 0 ? err_set(err, r, "run %s cannot be ended", run->id) : 0;
}

/* Write the last line of the record for a supervisor that could not. */
static int amend(struct engine *e, struct engine_run *run, struct err *err)
{
	if (run->state != ENGINE_RUN_LOST)
		return 0;
	run->state = ENGINE_RUN_CANCELLED;
	run->exit_code = ENGINE_RUN_CANCELLED_CODE;
	run->ended = engine_now();
	return run_record_amend(e->store_path, run, err);
}

int engine_run_cancel(struct engine *e, const char *id, struct engine_run *ret, struct err *err)
{
	CLEANUP(engine_run_done) struct engine_run run = { 0 };
	AUTO_FREE char *path = NULL;
	AUTO_CLOSE int fd = -1;
	struct err why = { 0 };
	bool done;
	int r = engine_run_find(e, id, &run, err);

	if (r < 0)
		return r;
	done = run.state != ENGINE_RUN_RUNNING;
	path = run_record_path(e->store_path, run.id, ".json");
	fd = path ? open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW) : -1;
	r = done ? 0 : fd < 0 ? -ENOENT : ask(&run, fd, SANDBOX_CANCEL, &why);
	/* -ESRCH: the run ended by itself meanwhile. */
	if (!done && (r >= 0 || r == -ESRCH))
		r = wait_for(e, &run, r < 0 ? 0 : ASKED_MS, err) < 0 ? err->code : r;
	if (!done && r >= 0 && run.state == ENGINE_RUN_RUNNING) {
		r = ask(&run, fd, SIGKILL, &why);
		r = wait_for(e, &run, KILLED_MS, err) < 0 ? err->code : r;
	}
	if (run.state == ENGINE_RUN_RUNNING)
		return err_set(err, r < 0 ? r : -EBUSY, "%s",
			       r < 0 ? why.msg : "the process that runs it does not end");
	if (!done)
		r = amend(e, &run, err);
	if (r < 0 && !done)
		return r;
	*ret = run;
	run = (struct engine_run){ 0 };
	return done;
}
