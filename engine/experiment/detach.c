/*
 * An experiment that outlives the command that asked for it.
 *
 * A detached process (engine/ask/detach-i.h) works on it. It inherits the lock, so there is no
 * moment at which nobody has it. When the first arm runs, it reports to the asker and gives up
 * everything else that it inherited. If the asker is gone by then, nobody knows the name of the
 * experiment: it ends and leaves nothing.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "base/attr.h"
#include "base/fdio.h"
#include "base/sys.h"
#include "engine/ask/detach-i.h"
#include "engine/experiment/experiment-i.h"

/* What a process that works alone keeps open, in this order. */
enum { LINE_FD = 3, LOCK_FD, DIR_FD, KEPT_END };
#define NAME "snap-experiment"

/* --- who works ----------------------------------------------------------------------------- */

/* True if the asker has read it. */
static bool tell(const struct err *word)
{
	const struct sigaction ignored = { .sa_handler = SIG_IGN };
	char heard;

	sigaction(SIGPIPE, &ignored, NULL);
	return fdio_write(LINE_FD, word, sizeof(*word)) >= 0 && fdio_read(LINE_FD, &heard, 1) == 1;
}

static void take_null(int fd)
{
	const int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (null < 0 || dup2(null, fd) < 0)
		_exit(1);
	close(null);
}

/* The first arm runs. */
static int began(struct work *w, struct err *err)
{
	const struct err word = { 0 };

	if (!tell(&word))
		return err_set(err, -EPIPE, "the command that started it has ended");
	close(LINE_FD);
	take_null(STDOUT_FILENO);
	take_null(STDERR_FILENO);
	return chdir("/") < 0 ? err_sys(err, "leaving the directory") : 0;
}

/* Keep only these, under numbers of our own. */
static void keep_only(int line, struct docket_lock *lock)
{
	int fds[] = { line, lock->fd, lock->dir };

	/* First out of the way: none may be where another must go. */
	for (int i = 0; i < (int)ARRAY_LEN(fds); i++)
		if ((fds[i] = fcntl(fds[i], F_DUPFD, KEPT_END)) < 0)
			_exit(1);
	for (int i = 0; i < (int)ARRAY_LEN(fds); i++)
		if (dup2(fds[i], LINE_FD + i) < 0 || fcntl(LINE_FD + i, F_SETFD, FD_CLOEXEC) < 0)
			_exit(1);
	sys_close_from(KEPT_END);
	*lock = (struct docket_lock){ .fd = LOCK_FD, .dir = DIR_FD };
}

struct alone {
	struct work *work;
	work_fn rest;
	int line;
};

NORETURN static void work_alone(void *ctx)
{
	const struct engine_experiment_options silent = { .watch = { 0 } };
	const struct alone *a = ctx;
	struct work *w = a->work;
	struct err err = { 0 };
	int r;

	keep_only(a->line, &w->lock);
	take_null(STDIN_FILENO);
	sys_name_process(NAME);
	w->options = &silent;
	w->began = began;
	r = a->rest(w, &err);
	/* Nobody has heard of it yet. */
	if (r < 0 && w->began)
		IGNORE_RESULT(tell(&err), "then nobody is there to hear it");
	_exit(r < 0);
}

/* --- the caller ---------------------------------------------------------------------------- */

int work_detach(struct work *w, work_fn rest, struct err *err)
{
	AUTO_CLOSE int ours = -1, theirs = -1;
	struct alone alone = { .work = w, .rest = rest };
	struct err word;
	int line[2], r = detach_line(line, err);

	if (r < 0)
		return r;
	ours = line[0];
	alone.line = theirs = line[1];
	r = detach_process(w->engine, "the experiment", work_alone, &alone, err);
	if (r < 0)
		return r;
	close(TAKE_FD(theirs));
	/* From here on the other has the lock. */
	docket_lock_done(&w->lock);
	if (fdio_read(ours, &word, sizeof(word)) != sizeof(word))
		return err_set(err, -EIO, "the process that was to work on it has died");
	word.msg[sizeof(word.msg) - 1] = '\0';
	if (word.code < 0)
		return err_set(err, word.code, "%s", word.msg);
	if (sys_send_with(ours, "", 1, 0, -1) < 0)
		return err_set(err, -EIO, "the process that works on it has died");
	return 0;
}
