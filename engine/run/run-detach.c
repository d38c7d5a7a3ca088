/*
 * A run that outlives the command that asked for it.
 *
 * Its supervisor is a detached process (engine/ask/detach-i.h). It calls engine_run(), so it has
 * all that foreground runs have; a run on another machine is followed instead (run-perform.h).
 * Until the walls stand, a pair of sockets ties it to the asker: if the asker ends first, by ^C or
 * kill -9, the kernel sends SIGIO, which ends the supervisor and the run (R6 of the sandbox). Then
 * it reports the outcome, waits until the asker has read it, and gives up everything it inherited.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/attr.h"
#include "base/fdio.h"
#include "base/sys.h"
#include "engine/ask/detach-i.h"
#include "engine/find/engine-i.h"
#include "engine/find/run-record.h"
#include "engine/run/run-perform.h"

#define LINE_FD 3
#define NAME    "snap-run"

/* The supervisor's one message. */
struct word {
	struct err err;
	enum engine_run_state state;
	char id[ENGINE_RUN_ID_SIZE];
};

/* --- the supervisor ----------------------------------------------------------------------- */

struct supervisor {
	struct engine *engine;
	bool told;
};

/* What the asker does at a signal means nothing here; what is ignored, as after nohup, stays so. */
static void forget_signals(void)
{
	static const int all[] = { SIGINT, SIGTERM, SIGHUP, SIGPIPE };
	const struct sigaction plain = { .sa_handler = SIG_DFL };
	struct sigaction was;

	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		if (sigaction(all[i], NULL, &was) == 0 && was.sa_handler != SIG_IGN)
			sigaction(all[i], &plain, NULL);
}

/* SIGIO ends us when the asker goes. */
static void hang_on(bool on)
{
	const struct sigaction plain = { .sa_handler = SIG_DFL };
	const int flags = fcntl(LINE_FD, F_GETFL);
	struct pollfd line = { .fd = LINE_FD };
	sigset_t one;

	sigaction(SIGIO, &plain, NULL);
	sigemptyset(&one);
	sigaddset(&one, SIGIO);
	sigprocmask(SIG_UNBLOCK, &one, NULL);
	if (flags < 0 || fcntl(LINE_FD, F_SETOWN, getpid()) < 0 ||
	    fcntl(LINE_FD, F_SETFL, on ? flags | O_ASYNC : flags & ~O_ASYNC) < 0)
		_exit(1);
	/* No signal comes for an asker that went before. */
	if (on && poll(&line, 1, 0) > 0 && (line.revents & POLLHUP))
		_exit(1);
}

/* True if the asker has read it. */
static bool tell(const struct word *word)
{
	const struct sigaction ignored = { .sa_handler = SIG_IGN };
	struct sigaction before;
	char heard;
	bool ok;

	hang_on(false);
	sigaction(SIGPIPE, &ignored, &before);
	ok = fdio_write(LINE_FD, word, sizeof(*word)) >= 0 && fdio_read(LINE_FD, &heard, 1) == 1;
	sigaction(SIGPIPE, &before, NULL);
	close(LINE_FD);
	return ok;
}

/* Give up all that we inherited: pipes, terminal, directory. */
static void let_go(void)
{
	const int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (null < 0 || dup2(null, STDOUT_FILENO) < 0 || dup2(null, STDERR_FILENO) < 0 ||
	    chdir("/") < 0)
		_exit(1);
	close(null);
}

static void began(const struct engine_run *run, void *ctx)
{
	struct supervisor *s = ctx;
	struct word word = { .state = run->state };

	memcpy(word.id, run->id, sizeof(word.id));
	s->told = true;
	if (!tell(&word)) {
		run_record_remove(s->engine->store_path, run->id);
		_exit(1);
	}
	let_go();
}

struct asked {
	struct engine *engine;
	const struct engine_run_options *options;
	int line;
};

NORETURN static void supervise(void *ctx)
{
	const struct asked *asked = ctx;
	struct engine *e = asked->engine;
	struct supervisor s = { .engine = e };
	struct engine_run_options options = *asked->options;
	struct engine_run run = { 0 };
	struct word word = { 0 };
	int null;

	/* First: their descriptors are about to be other files. */
	forget_signals();
	if (asked->line != LINE_FD && dup2(asked->line, LINE_FD) < 0)
		_exit(1);
	sys_close_from(LINE_FD + 1);
	fcntl(LINE_FD, F_SETFD, FD_CLOEXEC);
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null < 0 || dup2(null, STDIN_FILENO) < 0)
		_exit(1);
	close(null);
	sys_name_process(NAME);
	hang_on(true);
	options.in_fd = options.out_fd = options.err_fd = -1;
	options.detached = true;
	options.began = began;
	options.began_ctx = &s;
	if ((options.perform ? run_perform(e, &options, &run, &word.err)
			     : engine_run(e, &options, &run, &word.err)) < 0 &&
	    word.err.code == 0)
		word.err.code = -EIO;
	word.state = run.state;
	memcpy(word.id, run.id, sizeof(word.id));
	_exit(s.told || tell(&word) ? 0 : 1);
}

/* --- the caller --------------------------------------------------------------------------- */

/* Load the record of the run.  Without an id nothing was begun. */
static int take(struct engine *e, const struct word *word, struct engine_run *ret, struct err *err)
{
	if (*word->id != '\0' && run_record_read(e->store_path, word->id, ret, err) < 0)
		return err->code;
	if (word->err.code >= 0)
		return 0;
	ret->state = word->state;
	return err_set(err, word->err.code, "%s", word->err.msg);
}

int engine_run_start(struct engine *e, const struct engine_run_options *options,
		     struct engine_run *ret, struct err *err)
{
	AUTO_CLOSE int ours = -1, theirs = -1;
	struct asked asked = { .engine = e, .options = options };
	struct word word;
	int line[2], r = detach_line(line, err);

	if (r < 0)
		return r;
	ours = line[0];
	asked.line = theirs = line[1];
	r = detach_process(e, "the run", supervise, &asked, err);
	if (r < 0)
		return r;
	close(TAKE_FD(theirs));
	if (fdio_read(ours, &word, sizeof(word)) != sizeof(word))
		return err_set(err, -EIO, "the process that was to run it has died");
	word.err.msg[sizeof(word.err.msg) - 1] = '\0';
	word.id[sizeof(word.id) - 1] = '\0';
	/* One that was killed just now must not end us as well, by SIGPIPE. */
	if (sys_send_with(ours, "", 1, 0, -1) < 0)
		return err_set(err, -EIO, "the process that runs it has died");
	return take(e, &word, ret, err);
}
