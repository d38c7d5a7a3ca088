/*
 * The command line's end of the control socket.
 *
 * A command that finds no daemon takes the start lock, looks again, and starts one: so of many
 * commands one starts the daemon and the others find it. A daemon that is about to end answers
 * nobody; its successor waits for the lock that it holds.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/log.h"
#include "base/path.h"
#include "base/sys.h"
#include "engine/ask/ask-i.h"
#include "engine/find/engine-i.h"

#define LISTEN_FD  3   /* SD_LISTEN_FDS_START: where a service manager puts the first socket */
#define TRIES_MAX  8   /* daemons that may be found ending before we give up */
#define LOCK_MAX_S 120 /* that a daemon may take to start or to end */

/* --- the run directory ------------------------------------------------------------------ */

static int open_run_dir(struct engine *e, int *ret, struct err *err)
{
	AUTO_FREE char *path = path_join(e->store_path, CONTROL_DIR);
	AUTO_CLOSE int fd = -1;
	struct stat st;
	int r;

	if (!path)
		return err_nomem(err);
	r = store_check_owner(e->store_path, err);
	if (r < 0)
		return r;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT || errno == ENOTDIR ? -ENOENT
							   : err_sys(err, "opening '%s'", path);
	if (fstat(fd, &st) < 0)
		return err_sys(err, "'%s'", path);
	if (st.st_uid != geteuid())
		return err_set(err, -EACCES, "store '%s' is served for user %u only", e->store_path,
			       st.st_uid);
	*ret = TAKE_FD(fd);
	return 0;
}

static int make_run_dir(struct engine *e, int *ret, struct err *err)
{
	AUTO_FREE char *path = path_join(e->store_path, CONTROL_DIR);
	int r;

	if (!path)
		return err_nomem(err);
	r = path_make_dirs(path, 0700, err);
	r = r < 0 ? r : open_run_dir(e, ret, err);
	if (r == -ENOENT)
		return err_set(err, r, "'%s' is gone", path);
	if (r < 0)
		return r;
	return fchmod(*ret, 0700) < 0 ? err_sys(err, "'%s'", path) : r;
}

static void on_alarm(int sig)
{
	(void)sig; /* it only interrupts flock() */
}

/* flock(2) has no timeout, so an alarm ends it.  This process has one thread and no other alarm. */
static int wait_lock(int fd, int how)
{
	const struct sigaction ours = { .sa_handler = on_alarm };
	struct sigaction before;
	int rc, code;

	sigaction(SIGALRM, &ours, &before);
	alarm(LOCK_MAX_S);
	rc = flock(fd, how);
	code = rc < 0 ? errno : 0;
	alarm(0);
	sigaction(SIGALRM, &before, NULL);
	return -code;
}

/* Wait for a lock in the run directory; closing the descriptor releases it. */
static int lock_file(int run_fd, const char *name, int how, int *ret, struct err *err)
{
	AUTO_CLOSE int fd = openat(run_fd, name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	int r;

	if (fd < 0)
		return err_sys(err, "opening '" CONTROL_DIR "/%s'", name);
	r = wait_lock(fd, how);
	if (r == -EINTR)
		return err_set(err, -ETIMEDOUT, "a cowfsd neither starts nor ends: it holds '%s'",
			       name);
	if (r < 0)
		return err_set(err, r, "locking '" CONTROL_DIR "/%s'", name);
	*ret = TAKE_FD(fd);
	return 0;
}

int ask_wait_gone(struct engine *e, struct err *err)
{
	AUTO_CLOSE int run_fd = -1, fd = -1;
	int r = open_run_dir(e, &run_fd, err);

	if (r == -ENOENT)
		return 0;
	return r < 0 ? r : lock_file(run_fd, CONTROL_ALIVE, LOCK_SH, &fd, err);
}

/* --- connecting ------------------------------------------------------------------------- */

static int connect_at(struct engine *e, int run_fd, int *ret, struct err *err)
{
	AUTO_CLOSE int fd = sys_connect_at(run_fd, CONTROL_SOCKET);
	uid_t uid;
	int r;

	/* No socket, or one that a dead daemon left, or one that is closing. */
	if (fd == -ENOENT || fd == -ECONNREFUSED || fd == -ECONNRESET)
		return -ESRCH;
	if (fd < 0)
		return err_set(err, fd, "cannot reach the cowfsd of store '%s'", e->store_path);
	r = sys_peer_uid(fd, &uid);
	if (r < 0)
		return err_set(err, r, "cannot tell who serves store '%s'", e->store_path);
	if (uid != geteuid())
		return err_set(err, -EACCES, "store '%s' is served by user %u", e->store_path, uid);
	*ret = TAKE_FD(fd);
	return 0;
}

static int open_control(struct engine *e, struct control *c, struct err *err)
{
	AUTO_CLOSE int run_fd = -1;
	int r;

	control_done(c);
	c->stop_fd = e->stop_fd;
	r = open_run_dir(e, &run_fd, err);
	if (r == -ENOENT)
		return -ESRCH;
	return r < 0 ? r : connect_at(e, run_fd, &c->fd, err);
}

bool ask_finds_none(struct engine *e)
{
	CLEANUP(control_done) struct control c = CONTROL_INIT;
	struct err ignored = { 0 };

	return open_control(e, &c, &ignored) == -ESRCH;
}

static int read_hello(struct control *c, struct control_hello *ret, struct err *err)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	struct json line;
	int r = control_read(c, CONTROL_ASK_MAX, &doc, &line, err);

	if (r == 0)
		return -ESRCH; /* it ended before it greeted us */
	if (r < 0)
		return r;
	return json_has(line, "error") ? control_get_error(line, err)
				       : control_get_hello(line, ret, err);
}

int ask_greet(struct engine *e, struct control *c, struct control_hello *ret, struct err *err)
{
	int r = open_control(e, c, err);

	return r < 0 ? r : read_hello(c, ret, err);
}

/* --- starting --------------------------------------------------------------------------- */

/* Leave a directory without a store alone, unless a store is to be created. */
static int prepare_store(struct engine *e, enum ask_start start, struct err *err)
{
	int r = store_check_owner(e->store_path, err);

	if (r < 0)
		return r;
	if (start == ASK_CREATE)
		return path_make_dirs(e->store_path, 0700, err);
	return engine_has_store(e)
		   ? 0
		   : err_set(err, -ENOENT, "there is no store in '%s'", e->store_path);
}

static int start_daemon(struct engine *e, enum ask_start start, struct err *err)
{
	AUTO_CLOSE int run_fd = -1, lock_fd = -1, other = -1;
	int r = prepare_store(e, start, err);

	if (r < 0)
		return r;
	r = make_run_dir(e, &run_fd, err);
	if (r < 0)
		return r;
	r = lock_file(run_fd, CONTROL_START, LOCK_EX, &lock_fd, err);
	if (r < 0)
		return r;
	r = connect_at(e, run_fd, &other, err);
	if (r != -ESRCH)
		return r; /* another process was faster */
	return launch_daemon(e->store_path, start == ASK_CREATE, lock_fd, err);
}

/*
 * The socket that a service manager hands to the process it starts (sd_listen_fds(3)), and that
 * commands find in the run directory; -1 if there is none.  The variables are not for others.
 */
static int take_listener(int run_fd, int *ret, struct err *err)
{
	const char *pid = getenv("LISTEN_PID"), *n = getenv("LISTEN_FDS");
	const bool ours = pid && n && atol(pid) == getpid() && atoi(n) > 0;
	const bool one = ours && atoi(n) == 1;
	struct sockaddr_un name = { 0 };
	socklen_t len = sizeof(name) - 1;
	struct stat is, wanted;

	unsetenv("LISTEN_PID");
	unsetenv("LISTEN_FDS");
	unsetenv("LISTEN_FDNAMES");
	*ret = -1;
	if (!ours)
		return 0;
	if (!one || getsockname(LISTEN_FD, (struct sockaddr *)&name, &len) < 0 ||
	    name.sun_family != AF_UNIX)
		return err_set(err, -EINVAL, "cowfsd takes one socket from a service manager");
	if (stat(name.sun_path, &is) < 0 || fstatat(run_fd, CONTROL_SOCKET, &wanted, 0) < 0 ||
	    is.st_dev != wanted.st_dev || is.st_ino != wanted.st_ino)
		return err_set(
		    err, -EINVAL,
		    "'%s' of the service manager is not the control socket of this store",
		    name.sun_path);
	*ret = LISTEN_FD;
	return 0;
}

static bool is_served(int run_fd)
{
	AUTO_CLOSE int fd = openat(run_fd, CONTROL_ALIVE, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

	return fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) < 0;
}

int ask_become(struct engine *e, struct err *err)
{
	AUTO_CLOSE int run_fd = -1, lock_fd = -1, other = -1;
	int r, listens = -1;

	r = prepare_store(e, ASK_CREATE, err);
	if (r < 0)
		return r;
	r = make_run_dir(e, &run_fd, err);
	if (r < 0)
		return r;
	r = take_listener(run_fd, &listens, err);
	if (r < 0)
		return r;
	r = lock_file(run_fd, CONTROL_START, LOCK_EX, &lock_fd, err);
	if (r < 0)
		return r;
	/* A service manager's socket accepts connections that nobody answers yet. */
	r = listens >= 0 ? -ESRCH : connect_at(e, run_fd, &other, err);
	if (r >= 0 || (listens >= 0 && is_served(run_fd)))
		return err_set(err, -EBUSY, "store '%s' has a cowfsd already", e->store_path);
	return r == -ESRCH ? launch_here(e->store_path, lock_fd, listens, err) : r;
}

/* --- versions --------------------------------------------------------------------------- */

static bool speaks_as_we_do(const struct control_hello *hello)
{
	return hello->protocol == CONTROL_PROTOCOL && strcmp(hello->version, engine_version()) == 0;
}

/* Send our version and the question. */
static int send_question(struct control *c, const struct json_doc *question, int give,
			 struct err *err)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	struct json j = json_begin(&doc), client;
	int r;

	client = json_set_object(j, "client");
	json_set_uint(client, "protocol", CONTROL_PROTOCOL);
	json_set_text(client, "version", engine_version());
	r = control_write(c->fd, &doc, true, err);
	return r < 0 ? r : control_give(c->fd, question, give, err);
}

/* An idle daemon of another version makes room.  All versions understand this question. */
static int replace(struct engine *e, struct control *c, const struct control_hello *hello,
		   struct err *err)
{
	CLEANUP(json_done) struct json_doc question = { 0 }, doc = { 0 };
	struct err why = { 0 };
	struct json j, line;
	int r = 0;

	if (!hello->busy && hello->mounted == 0) {
		j = json_begin(&question);
		json_set_text(j, "ask", "stop");
		json_set_bool(json_set_object(j, "options"), "force", false);
		IGNORE_RESULT(send_question(c, &question, -1, err),
			      "one that just left is as good");
		r = control_read(c, CONTROL_ANSWER_MAX, &doc, &line, err);
		if (r == 0 || (r > 0 && !json_has(line, "error")))
			return ask_wait_gone(e, err);
		if (r > 0 && control_get_error(line, &why) < 0)
			return err_set(err, -EPROTONOSUPPORT,
				       "this is version %s, and cowfsd %s (process %" PRId64
				       ") does not end: %s",
				       engine_version(), hello->version, hello->pid, why.msg);
	}
	return err_set(err, -EPROTONOSUPPORT,
		       "this is version %s, and cowfsd %s (process %" PRId64
		       ") is at work on store '%s'",
		       engine_version(), hello->version, hello->pid, e->store_path);
}

int ask_connect(struct engine *e, enum ask_start start, struct control *c,
		struct control_hello *ret, bool *ret_started, struct err *err)
{
	int r;

	*ret_started = false;
	for (int i = 0; i < TRIES_MAX; i++) {
		r = ask_greet(e, c, ret, err);
		if (r >= 0 && speaks_as_we_do(ret))
			return 0;
		if (r >= 0) {
			r = replace(e, c, ret, err);
		} else if (r == -ESRCH && start != ASK_RUNNING) {
			r = start_daemon(e, start, err);
			*ret_started = true;
		}
		if (r < 0)
			return r;
	}
	return err_set(err, -EAGAIN,
		       "cowfsd ends as soon as it is started: see '%s/" CONTROL_LOG "'",
		       e->store_path);
}

/* --- asking ----------------------------------------------------------------------------- */

void ask_begin(struct ask *a, struct engine *e, const char *verb)
{
	struct json j;

	*a = (struct ask){ .verb = verb, .give = -1 };
	j = json_begin(&a->question);
	json_set_text(j, "ask", verb);
	json_set_name(j, "dir", e->dir);
	json_set_name(j, "home", e->home);
	a->options = json_set_object(j, "options");
}

void ask_done(struct ask *a)
{
	json_done(&a->question);
	json_done(&a->reply);
}

/* A daemon of another version, or one that does not greet, does not act. */
static int hear_hello(struct control *c)
{
	struct control_hello hello;
	struct err ignored = { 0 };

	if (!c->ungreeted)
		return 0;
	c->ungreeted = false;
	return read_hello(c, &hello, &ignored) >= 0 && speaks_as_we_do(&hello) ? 0 : -ESHUTDOWN;
}

/* One line of cowfsd's: 1 if it is neither the answer nor an error. */
static int hear_line(struct ask *a, struct engine *e, struct control *c,
		     const struct engine_watch *watch, struct json *ret, struct err *err)
{
	struct json line;
	int r;

	json_done(&a->reply);
	r = control_read(c, CONTROL_ANSWER_MAX, &a->reply, &line, err);
	if (r < 0)
		return r;
	if (r == 0)
		return err_set(err, -ECONNRESET,
			       "cowfsd ended unexpectedly during '%s': see '%s/" CONTROL_LOG "'",
			       a->verb, e->store_path);
	if (json_has(line, "progress")) {
		struct engine_progress p = control_get_progress(line);

		if (watch && watch->fn)
			watch->fn(&p, watch->ctx);
		return 1;
	}
	if (json_has(line, "warning")) {
		AUTO_FREE char *text = json_get_name(line, "warning");

		log_warn("%s", text ? text : "");
		return 1;
	}
	if (json_has(line, "error"))
		return control_get_error(line, err);
	*ret = json_get_object(line, "answer");
	return ask_end(a, err);
}

int ask_hear(struct ask *a, struct engine *e, struct control *c, const struct engine_watch *watch,
	     struct json *ret, struct err *err)
{
	int r = hear_hello(c);

	if (r < 0)
		return r;
	do
		r = hear_line(a, e, c, watch, ret, err);
	while (r > 0);
	return r;
}

/* Lines come whole: cowfsd writes each at once. */
static bool has_line(const struct control *c)
{
	struct pollfd p = { .fd = c->fd, .events = POLLIN };

	return c->in.len > c->at || poll(&p, 1, 0) > 0;
}

int ask_peek(struct ask *a, struct engine *e, struct control *c, struct json *ret, struct err *err)
{
	int r = 1;

	while (r > 0) {
		if (!has_line(c))
			return -EAGAIN;
		if (c->ungreeted) {
			r = hear_hello(c);
			r = r < 0 ? r : 1;
		} else {
			r = hear_line(a, e, c, NULL, ret, err);
		}
	}
	return r;
}

int ask_over(struct ask *a, struct engine *e, struct control *c, const struct engine_watch *watch,
	     struct json *ret, struct err *err)
{
	int r;

	json_set_bool((struct json){ &a->question, a->question.root }, "watch", watch && watch->fn);
	r = send_question(c, &a->question, a->give, err);
	if (r == -EPIPE)
		return -ESHUTDOWN;
	return r < 0 ? r : ask_hear(a, e, c, watch, ret, err);
}

bool ask_ahead(struct ask *a, struct engine *e, const struct engine_watch *watch, struct control *c)
{
	struct err ignored = { 0 };

	if (open_control(e, c, &ignored) < 0)
		return false;
	c->ungreeted = true;
	json_set_bool((struct json){ &a->question, a->question.root }, "watch", watch->fn);
	if (send_question(c, &a->question, a->give, &ignored) < 0)
		return false;
	/* The kernel expects the sender to wait and queues the woken daemon behind us. */
	sched_yield();
	return true;
}

int ask_again(struct ask *a, struct engine *e, struct control *c, struct json *ret, struct err *err)
{
	int r;

	json_set_bool((struct json){ &a->question, a->question.root }, "watch", false);
	r = control_write(c->fd, &a->question, true, err);
	return r < 0 ? r : ask_hear(a, e, c, NULL, ret, err);
}

int ask_giving(struct ask *a, struct engine *e, struct control *c, int give, struct json *ret,
	       struct err *err)
{
	int r;

	json_set_bool((struct json){ &a->question, a->question.root }, "watch", false);
	r = control_give(c->fd, &a->question, give, err);
	return r < 0 ? r : ask_hear(a, e, c, NULL, ret, err);
}

int ask_keeping(struct ask *a, struct engine *e, enum ask_start start,
		const struct engine_watch *watch, struct control *c, struct json *ret,
		struct err *err)
{
	struct control_hello hello;
	bool started;
	int r = 0;

	for (int i = 0; i < TRIES_MAX; i++) {
		r = ask_connect(e, start, c, &hello, &started, err);
		if (r < 0)
			return r;
		r = ask_over(a, e, c, watch, ret, err);
		if (r != -ESHUTDOWN)
			return r;
		/* The daemon was about to end; ask the next one. */
	}
	return err_set(err, r, "cowfsd is stopping");
}

int ask_daemon(struct ask *a, struct engine *e, enum ask_start start,
	       const struct engine_watch *watch, struct json *ret, struct err *err)
{
	CLEANUP(control_done) struct control c = CONTROL_INIT;

	return ask_keeping(a, e, start, watch, &c, ret, err);
}

int ask_end(const struct ask *a, struct err *err)
{
	struct err why = { 0 };

	if (json_end(&a->reply, &why) < 0)
		return err_set(err, -EPROTO, "the answer of cowfsd to '%s': %s", a->verb, why.msg);
	return 0;
}

int ask_take(const struct ask *a, struct json answer, const struct fields *f, void *ret,
	     struct err *err)
{
	int r;

	memset(ret, 0, f->size);
	r = fields_get(answer, f, ret);
	r = r == -ENOMEM ? err_nomem(err) : ask_end(a, err);
	if (r < 0)
		fields_done(f, ret);
	return r;
}

int ask_for(struct ask *a, struct engine *e, enum ask_start start, const struct engine_watch *watch,
	    const struct fields *f, void *ret, struct err *err)
{
	struct json answer;
	int r = ask_daemon(a, e, start, watch, &answer, err);

	if (r < 0)
		return r;
	return f ? ask_take(a, answer, f, ret, err) : ask_end(a, err);
}
