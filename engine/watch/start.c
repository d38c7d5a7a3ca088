/*
 * A detached process (engine/ask/detach-i.h) follows the rules.  It reports to the command that
 * started it once it has its rules and watches.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fdio.h"
#include "base/log.h"
#include "base/path.h"
#include "base/sys.h"
#include "engine/ask/detach-i.h"
#include "engine/watch/watch-i.h"

#define NAME "snap-watch"

#define DYING_MS      10000
#define DYING_STEP_US 10000

/*
 * Has the process that wrote the state gone?  Then what holds the lock is a child of it, on its way to die.  One that
 * nobody has waited for is gone as well: it has nothing open any more.
 */
static bool is_dying(struct engine *e)
{
	CLEANUP(watch_state_done) struct watch_state s = { 0 };
	AUTO_FREE char *path = NULL;
	AUTO_CLOSE int fd = -1;
	struct err ignored = { 0 };

	if (watch_state_load(e, NULL, &s, NULL, &ignored) < 0 || s.pid <= 0 ||
	    asprintf(&path, "%s/%s/%s/lock", e->store_path, watch_kind.dir, WATCH_NAME) < 0)
		return false;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd >= 0 && sys_signal_holder((pid_t)s.pid, fd, 0) == -ESRCH;
}

static int take_lock(struct engine *e, struct docket_lock *ret, struct err *err)
{
	const uint64_t until = engine_clock_ms() + DYING_MS;
	AUTO_FREE char *all = path_join(e->store_path, watch_kind.dir);
	AUTO_FREE char *own = all ? path_join(all, WATCH_NAME) : NULL;
	int r = own ? path_make_dirs(own, 0700, err) : err_nomem(err);

	if (r >= 0)
		r = docket_take(e, &watch_kind, WATCH_NAME, ret, err);
	while (r == -EBUSY && engine_clock_ms() < until && is_dying(e)) {
		usleep(DYING_STEP_US);
		r = docket_take(e, &watch_kind, WATCH_NAME, ret, err);
	}
	return r == -EBUSY ? err_set(err, r, "a watch of this store runs already") : r;
}

/* --- the process --------------------------------------------------------------------------- */

/* What it has to say goes to a file beside its state. */
static int open_log(const struct docket_lock *lock)
{
	const int fd =
	    openat(lock->dir, "log", O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
	struct stat st;

	if (fd >= 0 && fstat(fd, &st) == 0 && st.st_size > WATCH_LOG_MAX)
		IGNORE_RESULT(ftruncate(fd, 0), "it grows a little longer then");
	return fd;
}

struct line {
	struct engine *engine;
	int fd, askers; /* its end and the command's */
	struct docket_lock *lock;
};

static int let_go(void *ctx, struct err *err)
{
	struct line *line = ctx;
	const struct err word = { 0 };
	const int null = open("/dev/null", O_RDWR | O_CLOEXEC), log = open_log(line->lock);

	if (fdio_write(line->fd, &word, sizeof(word)) < 0)
		return err_set(err, -EPIPE, "the command that started it has gone");
	close(line->fd);
	line->fd = -1;
	if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0 ||
	    dup2(log >= 0 ? log : null, STDERR_FILENO) < 0 || chdir("/") < 0)
		return err_sys(err, "leaving the terminal");
	return 0;
}

NORETURN static void follow(void *ctx)
{
	struct line *line = ctx;
	struct err err = { 0 };
	int r;

	close(line->askers);
	sys_name_process(NAME);
	r = watch_loop(line->engine, line->lock, false, let_go, line, &err);
	if (r < 0 && line->fd >= 0)
		IGNORE_RESULT(fdio_write(line->fd, &err, sizeof(err)),
			      "nobody is there to hear it");
	else if (r < 0)
		log_warn("the watch ends: %s", err.msg);
	_exit(r < 0);
}

/* --- the command --------------------------------------------------------------------------- */

static int detach(struct engine *e, struct docket_lock *lock, int64_t *ret_pid, struct err *err)
{
	CLEANUP(watch_state_done) struct watch_state s = { 0 };
	struct line line = { .engine = e, .lock = lock };
	AUTO_CLOSE int ours = -1;
	struct err word;
	int fds[2], r = sys_pipe(fds);

	if (r < 0)
		return err_set(err, r, "making the line to the watch");
	line.askers = ours = fds[0];
	line.fd = fds[1];
	r = detach_process(e, "the watch", follow, &line, err);
	close(line.fd);
	if (r < 0)
		return r;
	/* From here on the other has the lock. */
	docket_lock_done(lock);
	if (fdio_read(ours, &word, sizeof(word)) != sizeof(word))
		return err_set(err, -EIO, "the watch died at once");
	word.msg[sizeof(word.msg) - 1] = '\0';
	if (word.code < 0)
		return err_set(err, word.code, "%s", word.msg);
	r = watch_state_load(e, NULL, &s, NULL, err);
	*ret_pid = s.pid;
	return r;
}

int engine_watch_start(struct engine *e, const struct engine_watch_start_options *options,
		       int64_t *ret_pid, struct err *err)
{
	CLEANUP(docket_lock_done) struct docket_lock lock = DOCKET_LOCK_INIT;
	CLEANUP(engine_watch_rules_done) struct engine_rules_of_watch rules = { 0 };
	/* Rules that cannot be understood are said here, not in a log. */
	int r = engine_watch_rules(e, &rules, err);

	for (size_t i = 0; r >= 0 && i < rules.n; i++)
		if (rules.list[i].problem)
			engine_warn(e, "rule '%s' is off: %s", rules.list[i].name,
				    rules.list[i].problem);
	if (r >= 0)
		r = take_lock(e, &lock, err);
	if (r < 0)
		return r;
	*ret_pid = getpid();
	return options->foreground || options->once
		   ? watch_loop(e, &lock, options->once, NULL, NULL, err)
		   : detach(e, &lock, ret_pid, err);
}
