#include "engine/api/keeper.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/select.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fdio.h"
#include "base/log.h"
#include "base/path.h"
#include "base/sys.h"
#include "engine/api/daemon.h"
#include "engine/ask/ask-i.h"
#include "engine/ask/restarts-i.h"
#include "engine/find/engine-i.h"

#define WHO_MAX       64
#define LOCK_MAX_MS   5000
#define LOCK_PAUSE_MS 10

struct keeper {
	char **argv;       /* as cowfsd has them: name, store, perhaps "--create" */
	const char *store; /* argv[1] */
	char self[PATH_MAX];
	pid_t child;
	uint64_t born; /* ms */
	struct restarts restarts;
	struct leaving *leaving; /* owned; while systemd moves us and the child */
	bool left;               /* systemd has moved us; children start in the scope */
	bool starter_waits; /* DAEMON_READY_FD is open, and the first command waits for its end */
	bool ending;        /* a signal asked us to end */
};

static volatile sig_atomic_t asked; /* a signal that is to be passed on */

/* --- what a dead one left ----------------------------------------------------------------- */

static bool has_marks(const char *store)
{
	AUTO_FREE char *clones = path_join(store, CLONES_DIR);
	DIR *dir = clones ? opendir(clones) : NULL;
	bool any = false;
	struct dirent *e;

	while (dir && !any && (e = readdir(dir)))
		any = strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
	if (dir)
		closedir(dir);
	return any;
}

/* Did it crash while serving?  A crash at the start may be the mounts' fault. */
static bool died_serving(const char *store)
{
	AUTO_FREE char *path = path_join(store, CONTROL_DIR "/" CONTROL_ALIVE);
	AUTO_CLOSE int fd = path ? open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC) : -1;
	char who[WHO_MAX], phase[16] = "";
	ssize_t n;

	if (fd < 0 || flock(fd, LOCK_SH | LOCK_NB) < 0)
		return false;
	n = fdio_pread(fd, who, sizeof(who) - 1, 0);
	who[n > 0 ? n : 0] = '\0';
	return sscanf(who, "%*d %*s %15s", phase) == 1 && strcmp(phase, "serving") == 0;
}

bool launch_is_lost(const char *store)
{
	return died_serving(store) && has_marks(store);
}

/*
 * A program that the dead one was starting has its lock, too, between fork and exec.  Another cowfsd
 * has it for longer; then waiting costs nobody anything.
 */
static void await_lock(const char *store)
{
	const struct timespec pause = { 0, LOCK_PAUSE_MS * 1000000L };
	AUTO_FREE char *path = path_join(store, CONTROL_DIR "/" CONTROL_ALIVE);
	AUTO_CLOSE int fd = path ? open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC) : -1;

	for (int ms = 0; fd >= 0 && ms < LOCK_MAX_MS; ms += LOCK_PAUSE_MS) {
		if (flock(fd, LOCK_SH | LOCK_NB) == 0 || errno != EWOULDBLOCK)
			return;
		nanosleep(&pause, NULL);
	}
}

/* --- the log ------------------------------------------------------------------------------ */

/* Opened for each line, so that the keeper holds nothing on the store's file system. */
static void log_line(const struct keeper *k, const char *text)
{
	AUTO_FREE char *path = path_join(k->store, CONTROL_LOG);
	AUTO_CLOSE int fd = path ? open(path, O_WRONLY | O_APPEND | O_NOFOLLOW | O_CLOEXEC) : -1;

	if (fd < 0)
		return;
	dup2(fd, STDERR_FILENO);
	log_warn("%s", text);
	close(STDERR_FILENO);
}

/* --- starting ----------------------------------------------------------------------------- */

/* The streams are in place: the log, and the two descriptors that cowfsd starts with. */
NORETURN static void become(const struct keeper *k)
{
	const struct sigaction usual = { .sa_handler = SIG_DFL };
	sigset_t none;

	/* A pending signal is for cowfsd; our handler would swallow it. */
	sigaction(SIGTERM, &usual, NULL);
	sigaction(SIGINT, &usual, NULL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	execv(k->self, k->argv);
	_exit(1);
}

static int start_daemon(struct keeper *k)
{
	k->born = clock_ms();
	k->child = fork();
	if (k->child == 0)
		become(k);
	return k->child < 0 ? -errno : 0;
}

/* Close everything, except perhaps the pipe to the first command. */
static void let_go(const struct keeper *k)
{
	const int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (int fd = 0; fd <= DAEMON_START_FD; fd++)
		if (fd != null && !(fd == DAEMON_READY_FD && k->starter_waits))
			close(fd);
	if (null > 0) {
		dup2(null, STDIN_FILENO);
		close(null);
	}
}

/* Move it above the descriptors that cowfsd starts with. */
static int lift(int fd)
{
	const int high = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 16);

	cleanup_close(&fd);
	return high;
}

/* Take the start lock.  -EBUSY if a command was faster: its daemon has a keeper of its own. */
static int lock_start(const struct keeper *k)
{
	AUTO_FREE char *path = path_join(k->store, CONTROL_DIR "/" CONTROL_START);
	AUTO_CLOSE int fd = path ? lift(open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC)) : -1;

	if (fd < 0)
		return -ENOENT;
	while (flock(fd, LOCK_EX) < 0)
		if (errno != EINTR)
			return -errno;
	return launch_is_lost(k->store) ? TAKE_FD(fd) : -EBUSY;
}

static int open_streams(const struct keeper *k, int lock)
{
	const int flags = O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC;
	AUTO_FREE char *path = path_join(k->store, CONTROL_LOG);
	AUTO_CLOSE int null = lift(open("/dev/null", O_RDWR | O_CLOEXEC));
	AUTO_CLOSE int log = path ? lift(open(path, flags, 0600)) : -1;

	if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(null, DAEMON_READY_FD) < 0 ||
	    dup2(log < 0 ? null : log, STDOUT_FILENO) < 0 ||
	    dup2(log < 0 ? null : log, STDERR_FILENO) < 0 || dup2(lock, DAEMON_START_FD) < 0)
		return -errno;
	return 0;
}

/* A child that starts in the scope needs no second one. */
static void begin_leaving(struct keeper *k)
{
	if (!k->left)
		k->leaving = leaving_begin(k->child);
}

static int start_locked(struct keeper *k, int lock)
{
	int r = open_streams(k, lock);

	if (r < 0)
		return r;
	r = start_daemon(k);
	if (r < 0)
		return r;
	begin_leaving(k);
	return r;
}

static int start_again(struct keeper *k)
{
	static char again[] = DAEMON_AGAIN;
	AUTO_CLOSE int lock = lock_start(k);
	int r;

	if (lock < 0)
		return lock;
	k->argv[2] = again;
	r = start_locked(k, lock);
	let_go(k);
	return r;
}

/* --- keeping ------------------------------------------------------------------------------ */

static void on_signal(int sig)
{
	if (sig != SIGCHLD)
		asked = sig;
}

/* Moved or not, the command that started us need not wait any longer. */
static void end_leaving(struct keeper *k)
{
	leaving_free(k->leaving);
	k->leaving = NULL;
	if (k->starter_waits)
		close(DAEMON_READY_FD);
	k->starter_waits = false;
}

static void check_leaving(struct keeper *k)
{
	struct err why = { 0 };
	int r = leaving_check(k->leaving, &why);

	if (r > 0)
		return;
	k->left = r == 0;
	if (r < 0 && log_enabled(LOG_DEBUG))
		log_line(k, why.msg);
	end_leaving(k);
}

/* Wait for a signal or an answer from systemd. */
static void wait_for_event(struct keeper *k)
{
	struct pollfd at = { .fd = -1 };
	struct timespec t = { 0 };
	fd_set in, out;
	sigset_t set;
	int ms = 0;

	sigfillset(&set);
	sigdelset(&set, SIGCHLD);
	sigdelset(&set, SIGTERM);
	sigdelset(&set, SIGINT);
	FD_ZERO(&in);
	FD_ZERO(&out);
	if (k->leaving) {
		at = leaving_awaits(k->leaving, &ms);
		t = (struct timespec){ ms / 1000, (long)(ms % 1000) * 1000000 };
		if (at.events & POLLIN)
			FD_SET(at.fd, &in);
		if (at.events & POLLOUT)
			FD_SET(at.fd, &out);
	}
	pselect(at.fd + 1, &in, &out, NULL, k->leaving ? &t : NULL, &set);
	if (k->leaving)
		check_leaving(k);
}

static bool may_start_again(struct keeper *k)
{
	char text[160];

	switch (restarts_judge(&k->restarts, k->born, clock_ms())) {
	case RESTARTS_AGAIN:
		return true;
	case RESTARTS_TOO_QUICK:
		snprintf(text, sizeof(text),
			 "cowfsd died %d times within %d s of its start: the next command starts "
			 "it again",
			 RESTARTS_QUICK_MAX, RESTARTS_QUICK_MS / 1000);
		break;
	case RESTARTS_TOO_MANY:
		snprintf(text, sizeof(text),
			 "cowfsd died %d times within %d minutes: the next command starts it again",
			 RESTARTS_SPAN_MAX, RESTARTS_SPAN_MS / 60000);
		break;
	}
	log_line(k, text);
	return false;
}

/* Wait until the child is dead.  True if it should be started again. */
static bool outlive(struct keeper *k)
{
	int status;

	while (waitpid(k->child, &status, WNOHANG) != k->child) {
		wait_for_event(k);
		if (asked == 0)
			continue;
		k->ending = true;
		kill(k->child, asked);
		asked = 0;
	}
	k->child = 0;
	end_leaving(k);
	if (!k->ending)
		await_lock(k->store);
	return !k->ending && launch_is_lost(k->store) && may_start_again(k);
}

/* False if a signal asked us to end. */
static bool pause_between(const struct keeper *k)
{
	const uint64_t ms = restarts_pause_ms(&k->restarts);
	const struct timespec t = { (time_t)(ms / 1000), (long)(ms % 1000) * 1000000 };
	sigset_t set;

	sigfillset(&set);
	sigdelset(&set, SIGTERM);
	sigdelset(&set, SIGINT);
	return pselect(0, NULL, NULL, NULL, &t, &set) == 0;
}

static void set_signals(void)
{
	const struct sigaction ours = { .sa_handler = on_signal };
	sigset_t all;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	sigaction(SIGCHLD, &ours, NULL);
	sigaction(SIGTERM, &ours, NULL);
	sigaction(SIGINT, &ours, NULL);
}

int keeper_main(int argc, char **argv)
{
	static char name[] = DAEMON_NAME;
	char *own[] = { name, argc > 1 ? argv[1] : NULL, argc > 2 ? argv[2] : NULL, NULL };
	struct keeper k = { .argv = own, .store = own[1] };
	const char *self = sys_self_path(k.self, sizeof(k.self));

	if (!own[1] || !self || fcntl(DAEMON_READY_FD, F_GETFD) < 0 ||
	    fcntl(DAEMON_START_FD, F_GETFD) < 0) {
		log_error("cowfsd is started by the commands that need it");
		return 2;
	}
	if (self != k.self)
		snprintf(k.self, sizeof(k.self), "%s", self);
	sys_name_process(KEEPER_NAME);
	log_set_stamps(true);
	set_signals();
	if (chdir("/") < 0 || start_daemon(&k) < 0)
		return 1; /* the command sees the pipe close */
	begin_leaving(&k);
	k.starter_waits = k.leaving;
	let_go(&k);
	while (outlive(&k) && pause_between(&k) && start_again(&k) >= 0)
		continue;
	return 0;
}
