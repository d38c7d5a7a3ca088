/*
 * The process that holds the run gets a signal that means only this, and some time to end the run.  If
 * it does not, because it is stopped or hangs, we kill it, which ends the run with it, and write the
 * last line of the record ourselves.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/sys.h"
#include "base/vec.h"
#include "engine/find/engine-i.h"
#include "engine/find/run-record.h"
#include "runner/sandbox.h"

#define ASKED_MS  6000  /* two seconds of grace, and the time to clean up */
#define KILLED_MS 10000 /* what a kernel under load takes to end a process */

/* A run that is to end. */
struct ending {
	struct engine_run run;
	int fd; /* owned: its record */
	bool was_over;
	int r;          /* of what was tried last */
	struct err why; /* if that failed */
};

static void ending_done(struct ending *d)
{
	engine_run_done(&d->run);
	cleanup_close(&d->fd);
}

static bool is_running(const struct ending *d)
{
	return d->run.state == ENGINE_RUN_RUNNING;
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

static int begin(struct engine *e, const char *id, struct ending *d, struct err *err)
{
	AUTO_FREE char *path = NULL;
	int r = engine_run_find(e, id, &d->run, err);

	if (r < 0)
		return r;
	d->was_over = !is_running(d);
	if (d->was_over)
		return 0;
	path = run_record_path(e->store_path, d->run.id, ".json");
	d->fd = path ? open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW) : -1;
	d->r = d->fd < 0 ? err_set(&d->why, -ENOENT, "the record of run %s is gone", d->run.id)
			 : ask(&d->run, d->fd, SANDBOX_CANCEL, &d->why);
	return 0;
}

/* For all that got a signal; if none did, for no time. */
static int wait_for(struct engine *e, struct ending *all, size_t n, uint64_t ms, struct err *err)
{
	CLEANUP(engine_runs_done) struct engine_runs runs = { 0 };
	AUTO_FREE const char **ids = calloc(n + 1, sizeof(*ids));
	struct engine_wait_options o = { .ids = ids, .stop_fd = -1 };
	int r;

	if (!ids)
		return err_nomem(err);
	for (size_t i = 0; i < n; i++) {
		/* -ESRCH: the run ended by itself meanwhile. */
		if (!is_running(&all[i]) || (all[i].r < 0 && all[i].r != -ESRCH))
			continue;
		ids[o.n++] = all[i].run.id;
		if (all[i].r >= 0)
			o.timeout_ms = ms;
	}
	r = o.n > 0 ? engine_run_wait(e, &o, &runs, err) : 0;
	for (size_t i = 0, k = 0; r >= 0 && i < n && k < runs.n; i++) {
		if (strcmp(all[i].run.id, runs.list[k].id) != 0)
			continue;
		engine_run_done(&all[i].run);
		all[i].run = runs.list[k];
		runs.list[k++] = (struct engine_run){ 0 };
	}
	return r;
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

/* All have been asked to end: wait, and kill those that do not. */
static int finish(struct engine *e, struct ending *all, size_t n, struct err *err)
{
	int r = wait_for(e, all, n, ASKED_MS, err);

	for (size_t i = 0; r >= 0 && i < n; i++)
		if (is_running(&all[i]) && all[i].r >= 0)
			all[i].r = ask(&all[i].run, all[i].fd, SIGKILL, &all[i].why);
	if (r > 0)
		r = wait_for(e, all, n, KILLED_MS, err);
	for (size_t i = 0; i < n; i++)
		if (!all[i].was_over && !is_running(&all[i]) &&
		    amend(e, &all[i].run, &all[i].why) < 0)
			all[i].r = all[i].why.code;
	return r;
}

void engine_run_cancel_all(struct engine *e, const char *const *ids, size_t n)
{
	struct ending *all = calloc(n + 1, sizeof(*all));
	struct err ignored = { 0 };
	size_t found = 0;

	for (size_t i = 0; all && i < n; i++) {
		all[found] = (struct ending){ .fd = -1 };
		if (begin(e, ids[i], &all[found], &ignored) < 0)
			ending_done(&all[found]);
		else
			found++;
	}
	if (all)
		IGNORE_RESULT(finish(e, all, found, &ignored), "engine_run_cancel() says it");
	VEC_FREE(one, all, found, ending_done(one));
}

int engine_run_cancel(struct engine *e, const char *id, struct engine_run *ret, struct err *err)
{
	CLEANUP(ending_done) struct ending d = { .fd = -1 };
	int r = begin(e, id, &d, err);

	if (r == 0 && !d.was_over)
		r = finish(e, &d, 1, err);
	if (r < 0)
		return r;
	if (is_running(&d))
		return err_set(err, d.r < 0 ? d.r : -EBUSY, "%s",
			       d.r < 0 ? d.why.msg : "the process that runs it does not end");
	if (d.r < 0 && d.why.code == d.r && d.r != -ESRCH)
		return err_set(err, d.r, "%s", d.why.msg);
	*ret = TAKE_STRUCT(d.run);
	return d.was_over;
}
