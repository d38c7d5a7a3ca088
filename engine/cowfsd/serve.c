#include "engine/cowfsd/serve-i.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "base/sys.h"
#include "base/vec.h"
#include "engine/act/events-i.h"
#include "engine/cowfsd/greet-i.h"
#include "engine/cowfsd/scope-i.h"
#include "engine/cowfsd/verbs-i.h"
#include "engine/host/keep-i.h"
#include "engine/host/promises-i.h"
#include "engine/wire/control-i.h"

#define BACKLOG         128
#define CONNECTIONS_MAX 512
#define PROGRESS_MS     50 /* between two progress reports */

static const struct verb {
	const char *name;
	serve_fn *serve;
	bool beside;  /* does not wait for lazy captures to end (promises-i.h) */
	bool despite; /* waits, but not for one that cannot go on */
	bool aside;   /* nothing is lost if cowfsd ends meanwhile, so it does not count as work */
	struct scope_rule scope; /* whose captures it waits for */
} verbs[] = {
	{ VERB_TAKE, serve_take, true },
	{ VERB_GC, serve_gc, .despite = true },
	{ VERB_CHECK, serve_check, true },
	{ VERB_CLONE, serve_clone, true },
	{ VERB_ANNOUNCE, serve_announce, true },
	{ VERB_LIST, serve_list, true },
	{ VERB_STATUS, serve_status, true },
	{ VERB_SETTLE, serve_settle, .scope = { true, .names = { "state" } } },
	{ VERB_SINCE, serve_since, true },
	{ VERB_REMOVE, serve_remove, true },
	{ VERB_REMOVE_STATE, serve_remove_snapshot, .despite = true },
	{ VERB_MERGE, serve_merge },
	{ VERB_METRICS, serve_metrics, true },
	{ VERB_MOUNT, serve_mount, true },
	{ VERB_ROLLBACK, serve_rollback, .scope = { true, true, { "first", "second" } } },
	{ VERB_UMOUNT, serve_umount, true },
	{ VERB_PROJECT, serve_project, .despite = true },
	{ VERB_PROMOTE, serve_promote, .scope = { true, true, { "clone", "state", "to" } } },
	{ VERB_OVERLAPS, serve_overlaps, .scope = { true, .names = { "clone" } } },
	{ VERB_REBASE, serve_rebase, .scope = { true, .names = { "clone" } } },
	{ VERB_RECEIVE, serve_receive, .scope = { true } },
	{ VERB_RECEIVE_LAZILY, serve_receive_lazily, true }, /* it waits itself */
	{ VERB_SUPPLY, serve_supply, true, .aside = true },
	{ VERB_RESOLVE, serve_resolve, .scope = { true, .names = { "clone" } } },
	{ VERB_QUESTION, serve_question, true },
	{ VERB_QUESTIONS, serve_questions, true },
	{ VERB_ANSWER, serve_answer, true },
	{ VERB_ECHO, serve_echo, true },
	{ VERB_HOLD, serve_hold, .scope = { true, .names = { "states" } } },
	{ VERB_HOLD_NAMES, serve_hold_names, true }, /* names are there before files are */
	{ VERB_TAG, serve_tag, .scope = { true, .names = { "state" } } },
	{ VERB_ALLOW, serve_allow, true },
	{ VERB_ARTIFACT, serve_artifact },
	{ VERB_REMOVE_ARTIFACT, serve_remove_artifact },
	{ VERB_IMPORT, serve_import },
	{ VERB_REMOVE_IMAGE, serve_remove_image },
	{ VERB_STAGE, serve_stage, true }, /* it waits itself */
	{ VERB_STAGE_ROOT, serve_stage_root, true },
	{ VERB_STAGE_HIDE, serve_stage_hide, true },
	{ VERB_STAGE_END, serve_stage_end, true },
	{ VERB_STAGE_SETTLE, serve_stage_settle, true },
	{ VERB_STAGE_STAY, serve_stage_stay, true },
};

struct connection {
	struct server *server;
	struct control control;
	struct connection *prev, *next; /* guarded by server->lock */
	uint64_t reported;              /* when progress was sent last */
	struct kept *kept;              /* released when the connection ends */
	bool beside;                    /* the peer is in another mount namespace */
};

/* --- what is under way ------------------------------------------------------------------ */

static void touch(struct server *s)
{
	s->last_used = engine_clock_ms();
}

/* Waits while it is undecided whether the daemon stays. */
static int act_begin(struct server *s)
{
	int r = 0;

	LOCKED(&s->lock);
	while (s->state == SERVE_CLOSING)
		pthread_cond_wait(&s->changed, &s->lock);
	if (s->state == SERVE_ENDED)
		r = -ESHUTDOWN;
	else
		s->n_acts++;
	return r;
}

static void act_end(struct server *s)
{
	LOCKED(&s->lock);
	s->n_acts--;
	touch(s);
	pthread_cond_broadcast(&s->changed);
}

static void server_wake(struct server *s)
{
	IGNORE_RESULT(write(s->wake_fd, "e", 1), "a pipe that is full wakes too");
}

/*
 * Without the socket, the next client starts another daemon, which waits until this one is gone; or
 * the client waits until the service manager has started one.
 */
static void set_state(struct server *s, enum serve_state state)
{
	if (state == SERVE_ENDED)
		questions_close(&s->host->questions);
	if (state == SERVE_ENDED && !s->given)
		unlinkat(s->run_fd, CONTROL_SOCKET, 0);
	pthread_mutex_lock(&s->lock);
	s->state = state;
	touch(s);
	pthread_cond_broadcast(&s->changed);
	pthread_mutex_unlock(&s->lock);
	if (state == SERVE_ENDED)
		server_wake(s);
}

int server_end(struct server *s, bool force, struct err *err)
{
	size_t acts = 0;
	bool ended;
	int r = force || server_has_ended(s) ? 0 : promises_may_end(s->host->promises, err);

	if (r < 0)
		return r;
	pthread_mutex_lock(&s->lock);
	while (s->state == SERVE_CLOSING)
		pthread_cond_wait(&s->changed, &s->lock);
	ended = s->state == SERVE_ENDED;
	if (!ended && !force)
		acts = s->n_acts;
	if (!ended && acts == 0)
		s->state = SERVE_CLOSING;
	pthread_mutex_unlock(&s->lock);
	if (ended)
		return 0;
	if (acts > 0)
		return err_set(err, -EBUSY, "cowfsd is at work: %zu %s under way", acts,
			       acts == 1 ? "command is" : "commands are");
	r = live_end_all(s->host, force, err);
	set_state(s, r < 0 ? SERVE_OPEN : SERVE_ENDED);
	return r;
}

bool server_end_idle(struct server *s)
{
	const size_t mounted = live_count(s->host) + promises_open(s->host->promises, NULL);
	bool idle;

	pthread_mutex_lock(&s->lock);
	idle = s->state == SERVE_OPEN && s->n_connections == 0 && mounted == 0;
	if (idle)
		s->state = SERVE_CLOSING;
	pthread_mutex_unlock(&s->lock);
	if (idle)
		set_state(s, SERVE_ENDED);
	return idle;
}

bool server_has_ended(struct server *s)
{
	LOCKED(&s->lock);
	return s->state == SERVE_ENDED;
}

uint64_t server_idle_ms(struct server *s)
{
	const size_t mounted = live_count(s->host) + promises_open(s->host->promises, NULL);

	LOCKED(&s->lock);
	if (s->n_connections > 0 || mounted > 0)
		touch(s);
	return engine_clock_ms() - s->last_used;
}

bool server_is_busy(struct server *s)
{
	LOCKED(&s->lock);
	return s->n_acts > 0;
}

bool server_drain(struct server *s, unsigned ms)
{
	const uint64_t until = engine_clock_ms() + ms;
	uint64_t now;

	LOCKED(&s->lock);
	/* Idle connections end; those at work can still answer. */
	for (struct connection *c = s->connections; c; c = c->next)
		shutdown(c->control.fd, SHUT_RD);
	while (s->n_connections > 0 && (now = engine_clock_ms()) < until)
		sys_cond_wait_ms(&s->changed, &s->lock, until - now);
	return s->n_connections == 0;
}

/* --- answering -------------------------------------------------------------------------- */

/* A client that does not read must not stop the work; task_wanted() finds out if it has left. */
static void send_aside(struct connection *c, const struct json_doc *doc)
{
	struct err ignored = { 0 };

	IGNORE_RESULT(control_write(c->control.fd, doc, false, &ignored),
		      "the act goes on without a listener");
}

static void send_progress(const struct engine_progress *p, void *ctx)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	struct connection *c = ctx;
	const uint64_t now = engine_clock_ms();

	if (now - c->reported < PROGRESS_MS)
		return;
	c->reported = now;
	control_set_progress(json_begin(&doc), p);
	send_aside(c, &doc);
}

static void send_warning(const char *text, void *ctx)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };

	json_set_name(json_begin(&doc), "warning", text);
	send_aside(ctx, &doc);
}

static int send_error(struct connection *c, int code, const struct err *why, struct err *err)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };

	control_set_error(json_begin(&doc), code, why);
	return control_write(c->control.fd, &doc, true, err);
}

/* Look for a hang-up, not for the end of input: server_drain() may have shut our end for reading. */
static bool has_left(void *ctx)
{
	const struct connection *c = ctx;
	struct pollfd p = { .fd = c->control.fd };

	return poll(&p, 1, 0) > 0 && (p.revents & (POLLHUP | POLLERR)) != 0;
}

/* In another mount namespace, a path may mean another directory than ours. */
static int may_read(void *ctx, const char *dir, struct err *err)
{
	const struct connection *c = ctx;
	int r = host_may_read(c->server->host, dir, err);

	if (r < 0 || !c->beside || sys_peer_sees(c->control.fd, dir) == 1)
		return r;
	return err_set(err, -EPERM,
		       "'%s' is another directory, or read-only, in the mount namespace of this "
		       "command: cowfsd (process %d) does not touch its own for it",
		       dir, getpid());
}

void server_set_notice(struct server *s, const char *text)
{
	LOCKED(&s->lock);
	snprintf(s->notice, sizeof(s->notice), "%s", text);
}

static void send_notice(struct connection *c)
{
	struct server *s = c->server;
	char text[sizeof(s->notice)];

	pthread_mutex_lock(&s->lock);
	memcpy(text, s->notice, sizeof(text));
	s->notice[0] = '\0';
	pthread_mutex_unlock(&s->lock);
	if (*text != '\0')
		send_warning(text, c);
}

static int serve(const struct verb *verb, struct task *task, const struct engine_watch *watch,
		 struct json options, struct json answer, struct err *err)
{
	int r;

	if (verb->beside)
		return verb->serve(task, watch, options, answer, err);
	r = scope_enter(task, &verb->scope, verb->despite, options, watch, err);
	if (r < 0)
		return r;
	r = verb->serve(task, watch, options, answer, err);
	promises_leave(task->host->promises);
	return r;
}

static int act(struct connection *c, const char *name, struct json question, struct json answer,
	       struct err *err)
{
	const struct verb *verb =
	    VEC_FIND(one, verbs, ARRAY_LEN(verbs), strcmp(one->name, name) == 0);
	AUTO_FREE char *dir = json_get_name(question, "dir");
	AUTO_FREE char *home = json_get_name_or_null(question, "home");
	const struct json options = json_get_object(question, "options");
	const bool watched = json_get_bool(question, "watch");
	const struct engine_watch watch = { .fn = watched ? send_progress : NULL, .ctx = c };
	struct task task = task_of(c->server->host);
	int r;

	task.engine.may_read = may_read;
	task.engine.may_read_ctx = c;
	task.engine.dir = dir;
	task.engine.home = home;
	task.kept = &c->kept;
	task.given = &c->control.given;
	task.engine.warn = send_warning;
	task.engine.warn_ctx = c;
	task.left = has_left;
	task.left_ctx = c;
	if (!verb)
		return err_set(err, -ENOTSUP, "cowfsd does not know how to '%s'", name);
	r = json_end(question.doc, err);
	if (r < 0)
		return r;
	if (dir[0] != '/')
		return err_set(err, -EINVAL, "'dir' is not absolute");
	r = act_begin(c->server);
	if (r < 0)
		return r;
	/* A quick answer needs no progress report. */
	c->reported = engine_clock_ms();
	if (verb->aside) {
		act_end(c->server);
		return serve(verb, &task, &watch, options, answer, err);
	}
	send_notice(c);
	r = serve(verb, &task, &watch, options, answer, err);
	if (r == -EBADMSG)
		event_damage(&task, err->msg);
	act_end(c->server);
	return r;
}

static int stop(struct connection *c, struct json question, struct err *err)
{
	const bool force = json_get_bool(json_get_object(question, "options"), "force");
	int r = json_end(question.doc, err);

	return r < 0 ? r : server_end(c->server, force, err);
}

/* Negative if the connection is of no use any more. */
static int answer_one(struct connection *c, struct json question, bool same, struct err *err)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	const struct json answer = json_set_object(json_begin(&doc), "answer");
	const char *name = json_get_text(question, "ask");
	struct err why = { 0 };
	int r;

	if (!name)
		r = json_end(question.doc, &why);
	else if (strcmp(name, "stop") == 0)
		r = stop(c, question, &why);
	else if (!same)
		r = err_set(
		    &why, -EPROTONOSUPPORT,
		    "this is cowfsd %s: only a program of the same version can ask for '%s'",
		    engine_version(), name);
	else
		r = act(c, name, question, answer, &why);
	return r < 0 ? send_error(c, r, &why, err) : control_write(c->control.fd, &doc, true, err);
}

/* --- connections ------------------------------------------------------------------------ */

static int check_peer(struct connection *c, struct err *err)
{
	struct err why = { 0 };
	int r = greet_check_peer(c->control.fd, c->server->host->dir, &c->beside, &why);

	if (r >= 0)
		return r;
	IGNORE_RESULT(send_error(c, r, &why, NULL), "it is not owed an answer");
	return err_set(err, r, "refused a connection of another %s",
		       r == -EACCES ? "user" : "namespace");
}

static int converse(struct connection *c, struct err *err)
{
	struct json question;
	int same, r;

	r = check_peer(c, err);
	r = r < 0 ? r : greet_send_hello(c->server, c->control.fd, err);
	same = r < 0 ? r : greet_read_client(&c->control, err);
	if (same < 0)
		return same == -ENODATA ? 0 : same;
	for (;;) {
		CLEANUP(json_done) struct json_doc doc = { 0 };

		r = control_read(&c->control, CONTROL_ASK_MAX, &doc, &question, err);
		if (r <= 0)
			return r;
		r = answer_one(c, question, same, err);
		if (r < 0)
			return r;
	}
}

static void connection_free(struct connection *c)
{
	struct server *s = c->server;

	pthread_mutex_lock(&s->lock);
	/* Closed under the lock: else server_drain() might shut a descriptor that got the same number. */
	control_done(&c->control);
	if (c->next)
		c->next->prev = c->prev;
	if (c->prev)
		c->prev->next = c->next;
	else
		s->connections = c->next;
	s->n_connections--;
	touch(s);
	pthread_cond_broadcast(&s->changed);
	pthread_mutex_unlock(&s->lock);
	free(c);
}

static bool is_over(void *server)
{
	return server_has_ended(server);
}

static void *connection_run(void *arg)
{
	struct connection *c = arg;
	struct err err = { 0 };
	int r = converse(c, &err);

	/* A client that has left needs no answer. */
	if (r < 0 && r != -EPIPE && r != -ECONNRESET)
		log_warn("a connection ended: %s", err.code == r ? err.msg : "out of order");
	/* The client has its answer, so this may take its time. */
	keep_release(&c->kept);
	host_sweep(c->server->host, is_over, c->server);
	connection_free(c);
	return NULL;
}

/* Add it to the list and start its thread. */
static int connection_start(struct server *s, struct connection *c)
{
	pthread_attr_t attr;
	pthread_t thread;
	int rc;

	pthread_mutex_lock(&s->lock);
	c->next = s->connections;
	if (c->next)
		c->next->prev = c;
	s->connections = c;
	s->n_connections++;
	rc = s->n_connections > CONNECTIONS_MAX ? EAGAIN : 0;
	pthread_mutex_unlock(&s->lock);
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	if (rc == 0)
		rc = pthread_create(&thread, &attr, connection_run, c);
	pthread_attr_destroy(&attr);
	return -rc;
}

void server_accept(struct server *s)
{
	struct connection *c;
	struct err why = { 0 };
	int fd = sys_accept(s->fd), r;

	if (fd < 0) {
		if (fd != -EINTR && fd != -ECONNABORTED && fd != -EAGAIN)
			log_warn("accepting a connection: %s, continuing", strerror(-fd));
		return;
	}
	c = calloc(1, sizeof(*c));
	if (!c) {
		close(fd);
		return;
	}
	c->server = s;
	c->control = CONTROL_INIT;
	c->control.fd = fd;
	r = connection_start(s, c);
	if (r >= 0)
		return;
	err_set(&why, -EAGAIN, "cowfsd has too much to do");
	IGNORE_RESULT(send_error(c, -EAGAIN, &why, NULL), "it finds out by the end of the line");
	connection_free(c);
}

/* --- beginning and end ------------------------------------------------------------------ */

int server_init(struct server *s, struct host *h, int run_fd, int wake_fd, int listen_fd,
		struct err *err)
{
	*s = (struct server){
		.host = h,
		.run_fd = run_fd,
		.wake_fd = wake_fd,
		.given = listen_fd >= 0,
		.began = engine_now(),
	};
	pthread_mutex_init(&s->lock, NULL);
	sys_cond_init(&s->changed);
	touch(s);
	if (!s->given && unlinkat(run_fd, CONTROL_SOCKET, 0) < 0 && errno != ENOENT)
		return err_sys(err, "removing an old '" CONTROL_SOCKET "'");
	s->fd = s->given ? listen_fd : sys_listen_at(run_fd, CONTROL_SOCKET, BACKLOG);
	if (s->fd < 0)
		return err_set(err, s->fd, "making the control socket: %s", strerror(-s->fd));
	if (fcntl(s->fd, F_SETFL, O_NONBLOCK) < 0)
		return err_sys(err, "the control socket");
	return 0;
}

void server_done(struct server *s)
{
	assert(s->n_connections == 0);
	cleanup_close(&s->fd);
	pthread_cond_destroy(&s->changed);
	pthread_mutex_destroy(&s->lock);
}
