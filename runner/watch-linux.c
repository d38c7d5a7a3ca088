/*
 * watch-linux.c - the caller's loop while a run lives: pass on, count, end it in time.
 *
 * One loop over descriptors: the line, the init's pidfd, our signals, a timer, and the streams
 * (pump-linux.c). It ends when the init has: by then the kernel has killed and reaped every process
 * of the run, so nothing can be written any more and the streams are read to their end.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "runner/pump.h"
#include "runner/sample.h"
#include "runner/sandbox-i.h"

#define DEFAULT_GRACE_MS 2000
#define SETUP_MS         300000 /* for the walls to stand, where a run has a limit of time at all */
#define CPU_LOOK_MS      100    /* how often processor time is looked at, if it is limited */
#define REFUSED_PACE_MS  1      /* between two refusals, once there were very many */

enum {
	AT_LINE,
	AT_INIT,
	AT_SIGNALS,
	AT_CLOCK,
	AT_BESIDE,
	AT_REFUSED = AT_BESIDE + SANDBOX_BESIDE_MAX,
	AT_CLERK,
	AT_STREAMS,
	N_PLACES = AT_STREAMS + PUMP_PLACES,
};

struct watch {
	struct run *run;
	struct sandbox_result *ret;
	struct pump pump;
	int signals, clock;             /* owned */
	int beside[SANDBOX_BESIDE_MAX]; /* the caller's, or -1 */
	int listener;                   /* owned, or -1: what the list of calls refuses */
	unsigned int refused;
	uint64_t hear_at; /* not before that; 0: at once */
	sigset_t mask;    /* the caller's, to be restored, with what it did at SIGPIPE */
	struct sigaction pipe;
	bool restore;
	uint64_t begun;    /* ms, as all times here: when the walls stood, or at first the set-up */
	uint64_t deadline; /* 0: none */
	struct sampler sampler;
	bool ending; /* SIGTERM is sent, and SIGKILL is next */
	bool known;  /* how the command ended */
	int status;
	struct cgroup_use use; /* of a scope, */
	bool counted;          /* once it was read */
	struct err failed;     /* why it was never started */
	bool at_exec;
};

/* The process that answers calls that wait needs it too. */
static void set_listener(struct watch *w, int fd)
{
	cleanup_close(&w->listener);
	w->listener = fd;
	if (w->run->spec->calls)
		w->run->spec->calls->listener = fd;
	if (w->run->spec->snapshots)
		w->run->spec->snapshots->listener = fd;
}

static void watch_done(struct watch *w)
{
	cleanup_close(&w->signals);
	cleanup_close(&w->clock);
	set_listener(w, -1);
	if (w->restore) {
		sigaction(SIGPIPE, &w->pipe, NULL);
		sigprocmask(SIG_SETMASK, &w->mask, NULL);
	}
}

static int set_clock(struct watch *w, struct err *err)
{
	uint64_t next = w->deadline, now = clock_ms();
	struct itimerspec t = { 0 };

	if (w->run->spec->limits.cpu_ms > 0 && !w->ending &&
	    (next == 0 || next > now + CPU_LOOK_MS))
		next = now + CPU_LOOK_MS;
	if (w->sampler.next_ms > 0 && (next == 0 || next > w->sampler.next_ms))
		next = w->sampler.next_ms;
	t.it_value.tv_sec = (time_t)(next / 1000);
	t.it_value.tv_nsec = (long)(next % 1000) * 1000000;
	if (timerfd_settime(w->clock, TFD_TIMER_ABSTIME, &t, NULL) < 0)
		return err_sys(err, "setting the clock of the run");
	return 0;
}

static int watch_open(struct watch *w, struct err *err)
{
	const struct sandbox_limits *l = &w->run->spec->limits;
	struct sigaction ignore = { .sa_handler = SIG_IGN };
	sigset_t mine;

	sigemptyset(&mine);
	sigaddset(&mine, SIGINT);
	sigaddset(&mine, SIGTERM);
	sigaddset(&mine, SIGHUP);
	sigaddset(&mine, SIGQUIT);
	sigaddset(&mine, SIGUSR1);
	sigaddset(&mine, SIGUSR2);
	sigaddset(&mine, SANDBOX_CANCEL);
	if (w->run->spec->tty)
		sigaddset(&mine, SIGWINCH);
	sigprocmask(SIG_BLOCK, &mine, &w->mask);
	sigaction(SIGPIPE, &ignore, &w->pipe);
	w->restore = true;

	w->signals = signalfd(-1, &mine, SFD_CLOEXEC | SFD_NONBLOCK);
	if (w->signals < 0)
		return err_sys(err, "waiting for signals to pass on");
	w->clock = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (w->clock < 0)
		return err_sys(err, "making the clock of the run");
	w->begun = clock_ms();
	w->deadline = l->wall_ms > 0 ? w->begun + SETUP_MS : 0;
	pump_init(&w->pump, w->run);
	return set_clock(w, err);
}

/* Of a scope while a process is left in it: it goes with the last one (init-linux.c). */
static void count_use(struct watch *w)
{
	if (cgroup_kind(w->run->cgroup) != CGROUP_SCOPE || w->counted)
		return;
	cgroup_use(w->run->cgroup, &w->use);
	w->counted = true;
}

static void kill_all(struct watch *w)
{
	count_use(w);
	syscall(SYS_pidfd_send_signal, w->run->init_fd, SIGKILL, NULL, 0);
}

/* SIGTERM to all of it now, SIGKILL when the grace is over. */
static void begin_end(struct watch *w, const char *limit)
{
	uint64_t grace = w->run->spec->limits.grace_ms;
	struct line_msg end = { .kind = LINE_END, .value = SIGTERM };

	w->ret->limit = limit;
	w->ending = true;
	w->deadline = clock_ms() + (grace > 0 ? grace : DEFAULT_GRACE_MS);
	if (line_send(w->run->line, &end, NULL, 0) < 0)
		kill_all(w);
}

static int on_clock(struct watch *w, struct err *err)
{
	uint64_t most = w->run->spec->limits.cpu_ms, ticks;
	struct cgroup_use use = { 0 };

	if (read(w->clock, &ticks, sizeof(ticks)) < 0)
		return 0;
	sampler_look(&w->sampler, w->run, w->begun, clock_ms());
	if (w->deadline > 0 && clock_ms() >= w->deadline) {
		if (w->ending) {
			kill_all(w);
			w->deadline = 0;
		} else if (w->ret->walls == 0) {
			kill_all(w);
			w->deadline = 0;
			err_set(&w->failed, -ETIMEDOUT,
				"the walls of the run did not stand after %d s", SETUP_MS / 1000);
		} else {
			w->ret->timed_out = true;
			begin_end(w, "time");
		}
	} else if (most > 0 && !w->ending && w->run->cgroup) {
		cgroup_use(w->run->cgroup, &use);
		if (use.cpu_ms >= most)
			begin_end(w, "cpu");
	}
	return set_clock(w, err);
}

/* Before the walls stand there is nobody to be asked to end. */
static int cancel(struct watch *w, struct err *err)
{
	if (w->ret->cancelled)
		return 0;
	w->ret->cancelled = true;
	if (w->ret->walls == 0) {
		kill_all(w);
		err_set(&w->failed, -ECANCELED, "the run was cancelled before it began");
	} else if (!w->ending) {
		begin_end(w, NULL);
	}
	return set_clock(w, err);
}

static int on_signal(struct watch *w, struct err *err)
{
	struct signalfd_siginfo info;
	struct line_msg pass = { .kind = LINE_SIGNAL };

	if (read(w->signals, &info, sizeof(info)) != sizeof(info))
		return 0;
	if (info.ssi_signo == SANDBOX_CANCEL)
		return cancel(w, err);
	if (info.ssi_signo == SIGWINCH) {
		pump_resize(&w->pump);
		return 0;
	}
	pass.value = (int)info.ssi_signo;
	if (w->ret->interrupted == 0 && pass.value != SIGUSR1 && pass.value != SIGUSR2)
		w->ret->interrupted = pass.value;
	IGNORE_RESULT(line_send(w->run->line, &pass, NULL, 0),
		      "a run that is gone needs no signal");
	return 0;
}

static int on_beside(struct watch *w, const struct pollfd at[SANDBOX_BESIDE_MAX], struct err *err)
{
	int r = 0;

	for (size_t i = 0; r >= 0 && i < SANDBOX_BESIDE_MAX; i++) {
		const struct sandbox_beside *beside = &w->run->spec->beside[i];

		r = at[i].revents ? beside->step(beside->ctx, err) : 0;
		if (r > 0)
			w->beside[i] = -1;
	}
	return r < 0 ? r : 0;
}

/*
 * Without POLLIN no process is left that could ask.  A run that is refused very often is slowed down:
 * it must not keep its caller busy, nor stop the count.
 */
static void on_refused(struct watch *w, short events)
{
	const int r = events & POLLIN ? refused_hear(w->run, w->listener) : -EPIPE;

	if (r >= 0) {
		w->refused += r == 0 && w->refused < SANDBOX_REFUSED_MAX;
		w->hear_at = w->refused < SANDBOX_REFUSED_MAX ? 0 : clock_ms() + REFUSED_PACE_MS;
		return;
	}
	set_listener(w, -1);
}

static void on_clerk(struct watch *w)
{
	if (refused_hear_clerk(w->run, w->listener) < 0)
		set_listener(w, -1);
}

/* The walls stand, and the time of the run begins. */
static void begin_time(struct watch *w, const struct line_msg *msg)
{
	const uint64_t most = w->run->spec->limits.wall_ms;

	w->ret->walls = msg->walls;
	w->ret->landlock = msg->value;
	w->ret->cgroup = cgroup_kind_name(w->run->held ? cgroup_kind(w->run->cgroup) : CGROUP_NONE);
	w->ret->missing = w->run->missing;
	if (!(msg->walls & WALL_BIT(WALL_LANDLOCK)))
		w->ret->missing |= WALL_BIT(WALL_LANDLOCK);
	w->ret->unbounded = w->run->unbounded;
	w->begun = clock_ms();
	sampler_begin(&w->sampler, w->run, w->begun);
	if (!w->ending)
		w->deadline = most > 0 ? w->begun + most : 0;
	if (w->run->spec->began)
		w->run->spec->began(w->run->spec->began_ctx);
}

/* What the init and the child have to say; true at the end of the line. */
static bool on_line(struct watch *w)
{
	const struct line_msg counted = { .kind = LINE_COUNTED };
	struct line_msg msg;
	int fds[LINE_FDS_MAX];
	size_t n_fds;

	if (line_receive(w->run->line, &msg, fds, &n_fds) <= 0)
		return true;
	switch (msg.kind) {
	case LINE_TTY:
		if (n_fds == 1)
			pump_take_terminal(&w->pump, fds[0]);
		break;
	case LINE_WALLS:
		begin_time(w, &msg);
		if (n_fds == 1)
			set_listener(w, fds[0]);
		break;
	case LINE_FAILED:
		/* The first is the one that counts. */
		if (w->failed.code == 0) {
			w->failed = msg.err;
			w->at_exec = msg.value;
		}
		break;
	case LINE_ENDED:
		w->known = true;
		w->status = msg.value;
		count_use(w);
		if (w->counted)
			IGNORE_RESULT(line_send(w->run->line, &counted, NULL, 0),
				      "an init that is gone does not wait");
		break;
	case LINE_IDS:
	case LINE_ROOT:
	case LINE_GO:
	case LINE_SIGNAL:
	case LINE_END:
	case LINE_COUNTED:
		break;
	}
	return false;
}

/* Until the init has ended. */
static int watch_loop(struct watch *w, struct err *err)
{
	struct pollfd at[N_PLACES];
	const struct clerk *clerk = &w->run->clerk;
	bool line_open = true, pause;
	int r;

	for (;;) {
		at[AT_LINE] = (struct pollfd){ line_open ? w->run->line : -1, POLLIN, 0 };
		at[AT_INIT] = (struct pollfd){ w->run->init_fd, POLLIN, 0 };
		at[AT_SIGNALS] = (struct pollfd){ w->signals, POLLIN, 0 };
		at[AT_CLOCK] = (struct pollfd){ w->clock, POLLIN, 0 };
		for (size_t i = 0; i < SANDBOX_BESIDE_MAX; i++)
			at[AT_BESIDE + i] = (struct pollfd){ w->beside[i], POLLIN, 0 };
		pause = w->hear_at > clock_ms() && w->listener >= 0;
		at[AT_REFUSED] =
		    (struct pollfd){ pause || clerk->waits ? -1 : w->listener, POLLIN, 0 };
		at[AT_CLERK] = (struct pollfd){ clerk->waits ? clerk->line : -1, POLLIN, 0 };
		pump_places(&w->pump, &at[AT_STREAMS]);
		if (poll(at, N_PLACES, pause ? REFUSED_PACE_MS : -1) < 0) {
			if (errno == EINTR)
				continue;
			return err_sys(err, "waiting for the run");
		}
		if (at[AT_LINE].revents) {
			line_open = !on_line(w);
			r = set_clock(w, err);
			if (r < 0)
				return r;
		}
		r = at[AT_SIGNALS].revents ? on_signal(w, err) : 0;
		if (at[AT_REFUSED].revents)
			on_refused(w, at[AT_REFUSED].revents);
		if (at[AT_CLERK].revents)
			on_clerk(w);
		if (r == 0 && at[AT_CLOCK].revents)
			r = on_clock(w, err);
		if (r == 0)
			r = on_beside(w, &at[AT_BESIDE], err);
		if (r == 0)
			r = pump_move(&w->pump, &at[AT_STREAMS], err);
		if (r < 0)
			return r;
		if (at[AT_INIT].revents)
			break;
	}
	while (line_open && !on_line(w))
		;
	return 0;
}

static uint64_t timeval_ms(struct timeval t)
{
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_usec / 1000;
}

/* What wait(2) and the groups know when all is over. */
static int settle(struct watch *w, struct err *err)
{
	struct run *run = w->run;
	struct cgroup_use use = w->use;
	struct rusage usage;
	int status;

	while (wait4(run->init, &status, __WALL, &usage) < 0) {
		if (errno != EINTR)
			return err_sys(err, "waiting for the init of the run");
	}
	run->init = 0;
	w->ret->duration_ms = clock_ms() - w->begun;
	w->ret->cpu_ms = timeval_ms(usage.ru_utime) + timeval_ms(usage.ru_stime);
	w->ret->max_rss = (uint64_t)usage.ru_maxrss * 1024;
	if (run->cgroup && !w->counted)
		cgroup_use(run->cgroup, &use);
	w->ret->max_mem = use.mem_peak;
	w->ret->oom_killed = use.oom_kills > 0;
	if (!w->known)
		w->status = WIFSIGNALED(status) ? status : SIGKILL;
	w->ret->signal = WIFSIGNALED(w->status) ? WTERMSIG(w->status) : 0;
	w->ret->exit_code = WIFSIGNALED(w->status) ? 128 + w->ret->signal : WEXITSTATUS(w->status);

	if (use.oom_kills > 0)
		w->ret->limit = "memory";
	else if (!w->ret->limit && w->ret->signal == SIGXCPU)
		w->ret->limit = "cpu";
	else if (!w->ret->limit && w->ret->signal == SIGXFSZ)
		w->ret->limit = "fsize";
	else if (!w->ret->limit && use.forks_refused > 0)
		w->ret->limit = "pids";
	else if (!w->ret->limit && w->ret->truncated)
		w->ret->limit = "output";
	return 0;
}

int watch_run(struct run *run, struct sandbox_result *ret, struct err *err)
{
	CLEANUP(watch_done) struct watch w = {
		.run = run,
		.ret = ret,
		.signals = -1,
		.clock = -1,
		.listener = -1,
	};
	int r;

	for (size_t i = 0; i < SANDBOX_BESIDE_MAX; i++)
		w.beside[i] = i < run->spec->n_beside ? run->spec->beside[i].fd : -1;

	/* All that can fail here has not, when the init hears that it may go on. */
	r = watch_open(&w, err);
	if (r == 0)
		r = line_say_go(run, err);
	/* An init that has given up by now has said why. */
	if (r == 0 || r == -EPIPE || r == -ECONNRESET)
		r = watch_loop(&w, err);
	if (r == 0)
		r = pump_drain(&w.pump, err);
	ret->truncated = w.pump.truncated;
	ret->owners_lost = run->clerk.lost;
	if (r == 0)
		r = settle(&w, err);
	if (r < 0)
		return r;
	if (w.failed.code == 0 && ret->walls == 0)
		return err_set(err, -EIO, "the run ended before it was set up%s",
			       ret->oom_killed ? ": memory ran out" : "");
	if (w.failed.code == 0)
		return 0;
	ret->exec_failed = w.at_exec;
	if (err)
		*err = w.failed;
	return w.failed.code;
}
