/*
 * cowfsd from beginning to end.
 *
 * Its threads: the main one takes connections and decides when to end; one waits for
 * signals; one keeps house; one for each connection; and those of the live clones.
 */
#include "engine/api/daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/fdio.h"
#include "base/log.h"
#include "base/path.h"
#include "base/size.h"
#include "base/sys.h"
#include "base/text.h"
#include "engine/act/growth-i.h"
#include "engine/cowfsd/recovery-i.h"
#include "engine/cowfsd/serve-i.h"
#include "engine/find/config-i.h"
#include "engine/host/promises-i.h"
#include "engine/wire/control-i.h"

#define IDLE_S       300
#define TICK_MS      5000             /* between two looks around */
#define DRAIN_MS     5000             /* that running commands get when the daemon must end */
#define LOG_SIZE_MAX ((off_t)1 << 20) /* then a new file is begun */
#define WHO_MAX      64

struct daemon {
	const char *store_arg;
	bool create, again, listens; /* from the arguments */
	bool ready;                  /* success or failure has been reported */

	char *dir;             /* owned; of the store, without symlinks */
	char *log;             /* owned; path of the log */
	int run_fd;            /* of CONTROL_DIR */
	int alive_fd;          /* of CONTROL_ALIVE, locked */
	int wake[2];           /* a byte wakes the main thread */
	struct stat lock_stat; /* of the lock of the store that we opened */
	struct host *host;
	struct server server;
	uint64_t idle_ms;

	char *config; /* owned; path of config.yaml, or NULL; then the keeper's own: */
	struct timespec
	    config_at; /* when the file was changed that was read last; 0: there was none */

	pthread_t keeper;
	pthread_mutex_t lock; /* guards `ending` */
	pthread_cond_t end;
	bool ending;
};

/* --- the word --------------------------------------------------------------------------- */

/* Reports once: ready, perhaps with a message, or the failure. */
static void report_ready(struct daemon *d, const struct err *word)
{
	if (d->ready)
		return;
	d->ready = true;
	IGNORE_RESULT(fdio_write(DAEMON_READY_FD, word, sizeof(*word)), "nobody waits for it");
	close(DAEMON_READY_FD);
	close(DAEMON_START_FD);
}

/* --- signals and limits ----------------------------------------------------------------- */

static const struct {
	int number;
	const char *line;
} fatal[] = {
	{ SIGSEGV, "cowfsd: killed by SIGSEGV\n" }, { SIGBUS, "cowfsd: killed by SIGBUS\n" },
	{ SIGILL, "cowfsd: killed by SIGILL\n" },   { SIGFPE, "cowfsd: killed by SIGFPE\n" },
	{ SIGABRT, "cowfsd: killed by SIGABRT\n" },
};

/* Async-signal-safe calls only.  The log already has the message of an assertion. */
static void on_fatal(int sig)
{
	for (size_t i = 0; i < ARRAY_LEN(fatal); i++)
		if (fatal[i].number == sig)
			IGNORE_RESULT(write(STDERR_FILENO, fatal[i].line, strlen(fatal[i].line)),
				      "nothing else can be done");
	signal(sig, SIG_DFL);
	raise(sig);
}

static void catch_fatal(void)
{
	const struct sigaction ours = { .sa_handler = on_fatal };
	struct sigaction now;

	/* A sanitizer reports more than we could. */
	for (size_t i = 0; i < ARRAY_LEN(fatal); i++)
		if (sigaction(fatal[i].number, NULL, &now) == 0 && now.sa_handler == SIG_DFL)
			sigaction(fatal[i].number, &ours, NULL);
}

static void ending_signals(sigset_t *ret)
{
	sigemptyset(ret);
	sigaddset(ret, SIGTERM);
	sigaddset(ret, SIGINT);
}

static void *wait_for_signal(void *arg)
{
	struct daemon *d = arg;
	sigset_t set;
	int sig;

	ending_signals(&set);
	for (;;)
		if (sigwait(&set, &sig) == 0)
			IGNORE_RESULT(write(d->wake[1], "s", 1), "a pipe that is full wakes too");
	return NULL;
}

/*
 * Once there are threads, the kernel waits for all processors each time that the table of descriptors
 * grows, which it does by doubling: before a lazy capture has 20,000 files open it would wait eight
 * times for some 20 ms.  Have it grow now, in one step.
 */
static void reserve_descriptors(void)
{
	struct rlimit limit;
	uint64_t n = promises_descriptors() / 2;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return;
	n = limit.rlim_cur < n ? limit.rlim_cur : n;
	cleanup_close(&(int){ fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, (int)n - 1) });
}

/* Undo what we inherited from the command that started us, as far as we may. */
static void settle(void)
{
	static const int limits[] = { RLIMIT_NOFILE, RLIMIT_FSIZE, RLIMIT_CORE };
	struct rlimit limit;

	umask(077);
	sys_name_process(DAEMON_NAME);
	signal(SIGHUP, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGIO, SIG_IGN); /* leases_try() */
	signal(SIGXFSZ, SIG_IGN);
	catch_fatal();
	for (size_t i = 0; i < ARRAY_LEN(limits); i++)
		if (getrlimit(limits[i], &limit) == 0 && limit.rlim_cur != limit.rlim_max) {
			limit.rlim_cur = limits[i] == RLIMIT_CORE ? limit.rlim_cur : limit.rlim_max;
			IGNORE_RESULT(setrlimit(limits[i], &limit), "then the old one holds");
		}
	/* Lazy captures hold files open: raise the limit for them if we may. */
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_max < promises_descriptors()) {
		limit.rlim_cur = limit.rlim_max = promises_descriptors();
		IGNORE_RESULT(setrlimit(RLIMIT_NOFILE, &limit), "then the old one holds");
	}
	reserve_descriptors();
}

static int spawn_thread(pthread_t *ret, void *(*fn)(void *), void *arg, struct err *err)
{
	int rc = pthread_create(ret, NULL, fn, arg);

	return rc == 0 ? 0 : err_set(err, -rc, "cannot make a thread");
}

/* --- the log ---------------------------------------------------------------------------- */

/* One old log is kept; lines written meanwhile go to either file. */
static void turn_log(const struct daemon *d)
{
	AUTO_FREE char *old = NULL;
	struct stat st;
	int fd;

	if (fstat(STDERR_FILENO, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size < LOG_SIZE_MAX)
		return;
	old = text_format("%s.1", d->log);
	if (!old)
		return;
	if (rename(d->log, old) < 0)
		return;
	fd = open(d->log, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return;
	dup2(fd, STDOUT_FILENO);
	dup2(fd, STDERR_FILENO);
	close(fd);
}

/* --- beginning -------------------------------------------------------------------------- */

/* Wait until a predecessor is gone. */
static int be_the_one(struct daemon *d, struct dead *ret, struct err *err)
{
	AUTO_FREE char *run = path_join(d->store_arg, CONTROL_DIR);

	if (!run)
		return err_nomem(err);
	d->run_fd = open(run, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (d->run_fd < 0)
		return err_sys(err, "opening '%s'", run);
	d->alive_fd =
	    openat(d->run_fd, CONTROL_ALIVE, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (d->alive_fd < 0)
		return err_sys(err, "opening '%s/" CONTROL_ALIVE "'", run);
	while (flock(d->alive_fd, LOCK_EX) < 0)
		if (errno != EINTR)
			return err_sys(err, "locking '%s/" CONTROL_ALIVE "'", run);
	dead_read(d->alive_fd, ret);
	return 0;
}

static int write_who(const struct daemon *d, const char *phase, struct err *err)
{
	char who[WHO_MAX];
	int n = snprintf(who, sizeof(who), "%d %.20s %s\n", getpid(), engine_version(), phase);

	if (ftruncate(d->alive_fd, 0) < 0 || fdio_pwrite(d->alive_fd, who, (size_t)n, 0) < 0)
		return err_sys(err, "writing '" CONTROL_DIR "/" CONTROL_ALIVE "'");
	return 0;
}

static int stat_lock(const struct daemon *d, struct stat *ret)
{
	AUTO_FREE char *path = path_join(d->store_arg, "lock");

	return path && stat(path, ret) == 0 ? 0 : -ENOENT;
}

static int open_store(struct daemon *d, struct err *err)
{
	CLEANUP(store_close_p) struct store *s = NULL;
	int r = store_open(d->store_arg, d->create ? STORE_CREATE : STORE_WRITE, &s, err);

	if (r < 0)
		return r;
	d->dir = realpath(d->store_arg, NULL);
	d->log = d->dir ? path_join(d->dir, CONTROL_LOG) : NULL;
	if (!d->dir || stat_lock(d, &d->lock_stat) < 0)
		return err_set(err, -ENOENT, "store '%s' is gone", d->store_arg);
	if (!d->log)
		return err_nomem(err);
	r = host_new(d->dir, s, &d->host, err);
	if (r < 0)
		return r;
	s = NULL;
	return r;
}

static struct timespec config_changed_at(const struct daemon *d)
{
	struct stat st;

	return d->config && stat(d->config, &st) == 0 ? SYS_ST_MTIM(&st) : (struct timespec){ 0 };
}

static int obey_config(struct daemon *d, struct err *err)
{
	CLEANUP(config_done) struct config config = { 0 };
	char limit[SIZE_TEXT_MAX];
	int r;

	d->config_at = config_changed_at(d);
	config.eager = CONFIG_EAGER;
	r = d->config ? config_read(d->config, &config, err) : 0;
	if (r < 0)
		return r;
	if (config.store_limit != store_limit(d->host->store))
		log_info("the store may take %s", config.store_limit > 0
						      ? size_format(config.store_limit, limit)
						      : "what the disk has");
	store_set_limit(d->host->store, config.store_limit);
	d->host->eager = config.eager;
	/* Clones that met the old limit may try again. */
	live_removed(d->host, 0);
	return 0;
}

/* If the file cannot be parsed, the old settings stay. */
static void obey_new_config(struct daemon *d)
{
	const struct timespec at = config_changed_at(d);
	struct err err = { 0 };

	if (at.tv_sec == d->config_at.tv_sec && at.tv_nsec == d->config_at.tv_nsec)
		return;
	if (obey_config(d, &err) < 0)
		log_warn("%s, continuing with the old settings", err.msg);
}

static uint64_t idle_from_env(void)
{
	const char *text = getenv("SNAPCOW_IDLE_S");
	uint64_t s;

	if (!text || size_parse_u64(text, &s) < 0 || s == 0 || s > 1000000)
		s = IDLE_S;
	return s * 1000;
}

static int begin(struct daemon *d, struct err *word, struct err *err)
{
	struct dead dead;
	pthread_t unused;
	sigset_t set;
	int r, n;

	r = be_the_one(d, &dead, err);
	/* From here on we must end in order, so one thread waits for the signals. */
	ending_signals(&set);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	if (r < 0)
		return r;
	r = open_store(d, err);
	if (r < 0)
		return r;
	r = obey_config(d, err);
	if (r < 0)
		return r;
	if (chdir("/") < 0)
		return err_sys(err, "going to '/'");
	turn_log(d);
	r = sys_pipe(d->wake);
	if (r < 0)
		return r;
	if (fcntl(d->wake[1], F_SETFL, O_NONBLOCK) < 0)
		return err_sys(err, "a pipe");
	r = write_who(d, "starting", err);
	if (r < 0)
		return r;
	r = server_init(&d->server, d->host, d->run_fd, d->wake[1],
			d->listens ? DAEMON_LISTEN_FD : -1, err);
	if (r < 0)
		return r;
	r = spawn_thread(&unused, wait_for_signal, d, err);
	if (r < 0)
		return r;
	n = recovery_mount(d->host, &dead, err);
	if (n < 0)
		return n;
	/* The mounts were no fault; if we die from here on, they come back. */
	r = write_who(d, "serving", err);
	if (r >= 0)
		recovery_end(d->host, &dead, n, d->log, word);
	return r;
}

/* --- keeping house ---------------------------------------------------------------------- */

static int64_t next_look(struct daemon *d)
{
	const int64_t now = engine_now(), tick = now + (int64_t)TICK_MS * 1000000;
	int64_t due;

	LOCKED(&d->host->lock);
	due = d->host->next_expiry;
	return due < tick ? (due > now ? due : now) : tick;
}

static void *keep_house(void *arg)
{
	struct daemon *d = arg;
	struct timespec until;
	int64_t at;

	pthread_mutex_lock(&d->lock);
	while (!d->ending) {
		pthread_mutex_unlock(&d->lock);
		turn_log(d);
		obey_new_config(d);
		live_sweep(d->host);
		clone_reap(d->host);
		moments_expire(&d->host->moments);
		if (!server_is_busy(&d->server))
			store_tidy(d->host->store);
		growth_look(d->host);
		at = next_look(d);
		until = (struct timespec){ .tv_sec = at / 1000000000, .tv_nsec = at % 1000000000 };
		pthread_mutex_lock(&d->lock);
		if (!d->ending)
			pthread_cond_timedwait(&d->end, &d->lock, &until);
	}
	pthread_mutex_unlock(&d->lock);
	return NULL;
}

static void end_keeper(struct daemon *d)
{
	pthread_mutex_lock(&d->lock);
	d->ending = true;
	pthread_cond_signal(&d->end);
	pthread_mutex_unlock(&d->lock);
	pthread_join(d->keeper, NULL);
}

/* --- the main thread -------------------------------------------------------------------- */

/* Does the path still lead to the store that we serve? */
static bool store_is_there(const struct daemon *d)
{
	struct stat st;

	return stat_lock(d, &st) == 0 && st.st_dev == d->lock_stat.st_dev &&
	       st.st_ino == d->lock_stat.st_ino;
}

static void end_by_force(struct daemon *d, const char *why)
{
	struct err err = { 0 };

	log_info("ending: %s", why);
	if (server_end(&d->server, true, &err) < 0)
		log_error("%s", err.msg);
}

static void read_wake(struct daemon *d)
{
	char bytes[64];
	ssize_t n = read(d->wake[0], bytes, sizeof(bytes));

	if (n > 0 && memchr(bytes, 's', (size_t)n) && !server_has_ended(&d->server))
		end_by_force(d, "asked by a signal");
}

static void look_around(struct daemon *d)
{
	if (!store_is_there(d))
		end_by_force(d, "the store is gone");
	else if (server_idle_ms(&d->server) >= d->idle_ms && server_end_idle(&d->server))
		log_info("ending: nothing to do");
}

static void serve(struct daemon *d)
{
	struct pollfd fds[] = {
		{ .fd = d->server.fd, .events = POLLIN },
		{ .fd = d->wake[0], .events = POLLIN },
	};
	const int tick = d->idle_ms < TICK_MS ? (int)d->idle_ms : TICK_MS;

	while (!server_has_ended(&d->server)) {
		if (poll(fds, ARRAY_LEN(fds), tick) < 0)
			continue;
		if (fds[1].revents != 0)
			read_wake(d);
		/* A client that finds our store gone must start a daemon for the new one. */
		if (fds[0].revents != 0 && store_is_there(d))
			server_accept(&d->server);
		look_around(d);
	}
}

/* What a running command has not committed has never happened. */
static void end(struct daemon *d)
{
	struct err err = { 0 };
	bool drained;

	warm_clone_end(d->host->warm_clone);
	promises_end(d->host->promises);
	drained = server_drain(&d->server, DRAIN_MS);
	if (drained)
		end_keeper(d);
	/* A running command may have mounted more meanwhile. */
	if (live_end_all(d->host, true, &err) < 0)
		log_error("%s", err.msg);
	if (drained) {
		growth_note(d->host);
		server_done(&d->server);
		host_free(d->host);
	} else {
		log_warn("a command is still running, ending without it");
	}
	log_info("ended");
	IGNORE_RESULT(ftruncate(d->alive_fd, 0), "then it looks like a crash, which is said once");
	/* Not exit(): a running command still uses what that would free. */
	if (!drained)
		_exit(0);
	free(d->config);
	free(d->dir);
	free(d->log);
}

int daemon_main(int argc, char **argv)
{
	struct daemon d = {
		.store_arg = argc > 1 ? argv[1] : NULL,
		.run_fd = -1,
		.alive_fd = -1,
		.lock = PTHREAD_MUTEX_INITIALIZER,
		.end = PTHREAD_COND_INITIALIZER,
	};
	struct err err = { 0 }, word = { 0 };
	int r;

	for (int i = 2; i < argc; i++) {
		d.create |= strcmp(argv[i], "--create") == 0;
		d.again |= strcmp(argv[i], DAEMON_AGAIN) == 0;
		d.listens |= strcmp(argv[i], DAEMON_LISTEN) == 0;
	}
	if (argc < 2 || fcntl(DAEMON_READY_FD, F_GETFD) < 0 ||
	    fcntl(DAEMON_START_FD, F_GETFD) < 0) {
		log_error("cowfsd is started by the commands that need it");
		return 2;
	}
	/* A program that libfuse executes must not inherit them. */
	if (fcntl(DAEMON_READY_FD, F_SETFD, FD_CLOEXEC) < 0 ||
	    fcntl(DAEMON_START_FD, F_SETFD, FD_CLOEXEC) < 0 ||
	    (d.listens && fcntl(DAEMON_LISTEN_FD, F_SETFD, FD_CLOEXEC) < 0))
		return 2;
	settle();
	sys_gather_memory();
	log_set_stamps(true);
	d.idle_ms = idle_from_env();
	d.config = config_file(getenv("HOME"), CONFIG_FILE);
	r = begin(&d, &word, &err);
	r = r < 0 ? r : spawn_thread(&d.keeper, keep_house, &d, &err);
	if (r < 0) {
		if (err.code != r)
			err_wrap(&err, r, "starting cowfsd");
		log_error("%s", err.msg);
		report_ready(&d, &err);
		/* The end of the process frees what was half built. */
		if (d.alive_fd >= 0 && d.host)
			IGNORE_RESULT(ftruncate(d.alive_fd, 0), "see end()");
		_exit(1);
	}
	/* No command waits for us, so the next one gets the message. */
	if (d.again)
		server_set_notice(&d.server, word.msg);
	report_ready(&d, &word);
	serve(&d);
	end(&d);
	return 0;
}
