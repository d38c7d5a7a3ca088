/*
 * Times are measured while no other task of the store runs: one experiment at a time has the turn,
 * which is a lock that ends with its holder, however that dies. Runs of the store and other tasks
 * of the machine cannot be kept away; they are counted before and after each round, and the arm
 * gets a warning.
 *
 * Tasks are counted when no run of ours is in progress, because a measured command may have many of
 * its own.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/path.h"
#include "base/sys.h"
#include "engine/experiment/alone-i.h"

/* In the store's directory: locked by the experiment that measures, whose name is in it. */
#define TURN_FILE "measuring"
#define LOOKS     5  /* a task that runs at all of them is no passing one */
#define LOOK_MS   10 /* between two of them */

/* --- the turn ------------------------------------------------------------------------------ */

int alone_pause(int stop_fd, int ms, struct err *err)
{
	struct pollfd stop = { .fd = stop_fd, .events = POLLIN };

	if (poll(&stop, 1, ms) < 0 && errno != EINTR)
		return err_sys(err, "waiting");
	return stop.revents != 0 ? err_set(err, -EINTR, "interrupted") : 0;
}

static void read_holder(int fd, char name[ENGINE_ARM_PATH_SIZE])
{
	const ssize_t n = pread(fd, name, ENGINE_ARM_PATH_SIZE - 1, 0);

	name[n > 0 ? n : 0] = '\0';
	if (clone_check_name(name, NULL) < 0)
		name[0] = '\0'; /* it has not written it yet */
}

int turn_open(struct engine *e, int *ret, struct err *err)
{
	AUTO_FREE char *path = path_join(e->store_path, TURN_FILE);

	if (!path)
		return err_nomem(err);
	*ret = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	return *ret < 0 ? err_sys(err, "opening '%s'", path) : 0;
}

int turn_take(int fd, const char *name, char holder[ENGINE_ARM_PATH_SIZE], struct err *err)
{
	const int r = docket_try_lock(fd);

	if (r == -EAGAIN || r == -EACCES) {
		read_holder(fd, holder);
		return 0;
	}
	if (r < 0)
		return err_set(err, r, "locking '" TURN_FILE "' of the store: %s", strerror(-r));
	if (ftruncate(fd, 0) < 0 || pwrite(fd, name, strlen(name), 0) < 0)
		return err_sys(err, "writing '" TURN_FILE "' of the store");
	return 1;
}

/* --- company ------------------------------------------------------------------------------- */

void company_done(struct company *c)
{
	strlist_done(&c->runs);
}

/* Tasks other than this one that run for a while, not only in passing. */
static int count_tasks(int stop_fd, uint64_t *ret, struct err *err)
{
	AUTO_CLOSE int fd = sys_load_open();
	unsigned least = sys_runnable(fd);
	int r = 0;

	for (int i = 1; i < LOOKS && least > 1 && r >= 0; i++) {
		unsigned now;

		r = alone_pause(stop_fd, LOOK_MS, err);
		now = sys_runnable(fd);
		least = now < least ? now : least;
	}
	*ret = least > 1 ? least - 1 : 0;
	return r;
}

int company_look(const struct work *w, const char *own, struct company *c, struct err *err)
{
	const struct engine_runs_options options = { .all = true, .running = true };
	CLEANUP(engine_runs_done) struct engine_runs runs = { 0 };
	uint64_t tasks;
	int r = engine_runs(w->engine, &options, &runs, err);

	if (r < 0)
		return r;
	for (size_t i = 0; i < runs.n; i++) {
		const char *id = runs.list[i].id;

		if (strcmp(id, own) != 0 && !strlist_has(&c->runs, id) &&
		    strlist_add(&c->runs, id) < 0)
			return err_nomem(err);
	}
	r = count_tasks(w->stop_fd, &tasks, err);
	c->tasks = tasks > c->tasks ? tasks : c->tasks;
	return r;
}

/* --- the warning --------------------------------------------------------------------------- */

static const char *plural(uint64_t n)
{
	return n == 1 ? "" : "s";
}

int company_warn(struct engine_arm *arm, struct err *err)
{
	uint64_t runs = 0, tasks = 0;
	size_t rounds = 0;
	char text[160], often[60] = "";

	arm_forget_warning(arm, COMPANY_KIND);
	for (size_t i = 0; i < arm->n_rounds; i++) {
		const struct engine_round *one = &arm->rounds[i];

		runs = one->runs > runs ? one->runs : runs;
		tasks = one->tasks > tasks ? one->tasks : tasks;
		rounds += one->runs + one->tasks > 0;
	}
	if (rounds == 0)
		return 0;
	if (arm->n_rounds > 1)
		snprintf(often, sizeof(often), ", in %zu of %zu rounds", rounds, arm->n_rounds);
	if (runs > 0)
		snprintf(text, sizeof(text), "%llu other run%s %s at work while it was measured%s",
			 (unsigned long long)runs, plural(runs), runs == 1 ? "was" : "were", often);
	else
		snprintf(text, sizeof(text),
			 "the machine had %llu other task%s to run while it was measured%s",
			 (unsigned long long)tasks, plural(tasks), often);
	return arm_warn(arm, COMPANY_KIND, NULL, text, err);
}
