/*
 * Every user of the machine can connect, so a caller costs little: one short question, ten seconds
 * to ask it, four connections for each user, sixteen in all. Long answers go only to users who may
 * decide.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fdio.h"
#include "base/hex.h"
#include "base/log.h"
#include "base/path.h"
#include "base/sha256.h"
#include "base/sys.h"
#include "engine/pipeline/desk-i.h"
#include "engine/pipeline/pipeline-i.h"
#include "engine/verb/docket-i.h"

#define STRANGER                                                                                    \
	"a process in a user namespace of its own, as in a sandbox or a container, cannot approve " \
	"or reject"
#define CALLERS_MAX (ENGINE_DESK_FDS - 1)
#define OF_ONE_USER 4
#define CALLER_MS   10000
#define TOLD_MAX    30     /* refusals a minute that the log has; any user can be refused */
#define DESK_FILE   "desk" /* in CONTROL_DIR: the address; locked while the desk is kept */
#define ADDRESS_MAX 4096

struct caller {
	int fd;
	uid_t uid;
	uint64_t until;
	struct buf in, out; /* the question, and the answer once there is one */
	size_t sent;
};

struct engine_desk {
	struct engine *engine;
	int lock_fd, dir_fd, fd;
	char *address;
	char name[32];
	struct caller callers[CALLERS_MAX];
	size_t n;
	uint64_t minute; /* that `told` counts in, by the clock */
	unsigned told;   /* refusals in the log */
};

static void caller_done(struct caller *c)
{
	close(c->fd);
	buf_done(&c->in);
	buf_done(&c->out);
}

/* --- beginning and end --------------------------------------------------------------------- */

void engine_desk_close(struct engine_desk *d)
{
	if (!d)
		return;
	for (size_t i = 0; i < d->n; i++)
		caller_done(&d->callers[i]);
	if (d->fd >= 0)
		unlinkat(d->dir_fd, d->name, 0);
	cleanup_close(&d->fd);
	cleanup_close(&d->dir_fd);
	cleanup_close(&d->lock_fd);
	free(d->address);
	free(d);
}

void engine_desk_close_p(struct engine_desk **d)
{
	engine_desk_close(*d);
}

static int lock_desk(struct engine_desk *d, struct err *err)
{
	AUTO_FREE char *dir = path_join(d->engine->store_path, CONTROL_DIR);
	AUTO_FREE char *path = dir ? path_join(dir, DESK_FILE) : NULL;
	int r;

	if (!path)
		return err_nomem(err);
	r = path_make_dirs(dir, 0700, err);
	if (r < 0)
		return r;
	d->lock_fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (d->lock_fd < 0)
		return err_sys(err, "opening '%s'", path);
	r = docket_try_lock(d->lock_fd);
	if (r == 0)
		return 0;
	return r == -EAGAIN || r == -EACCES
		   ? err_set(err, -EBUSY, "another process takes approvals for store '%s'",
			     d->engine->store_path)
		   : err_set(err, r, "locking '%s': %s", path, strerror(-r));
}

/* In a directory that somebody else can write, the socket could be another one tomorrow. */
static int open_place(struct engine_desk *d, const char *dir, struct err *err)
{
	const bool is_new = mkdir(dir, 0711) == 0;
	struct stat st;

	if (!is_new && errno != EEXIST)
		return err_sys(err, "making '%s'", dir);
	d->dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (d->dir_fd < 0 || fstat(d->dir_fd, &st) < 0)
		return err_sys(err, "opening '%s'", dir);
	if (st.st_uid != geteuid() || (st.st_mode & 022) != 0)
		return err_set(err, -EACCES,
			       "others can write in '%s', or it belongs to somebody else: name "
			       "another directory with --at",
			       dir);
	/* The umask counts; a directory that was there before is opened by nobody but its owner. */
	if (is_new && fchmod(d->dir_fd, 0711) < 0)
		return err_sys(err, "opening '%s' for others", dir);
	if (!is_new && (st.st_mode & 011) != 011)
		return err_set(err, -EACCES,
			       "others cannot enter '%s': name another directory with --at, or "
			       "'chmod go+x %s'",
			       dir, dir);
	return 0;
}

static int listen_there(struct engine_desk *d, const char *dir, struct err *err)
{
	uint8_t digest[SHA256_SIZE];
	int r;

	sha256_of(d->engine->store_path, strlen(d->engine->store_path), digest);
	hex_encode(digest, 4, d->name);
	strcat(d->name, ".sock");
	d->address = path_join(dir, d->name);
	if (!d->address)
		return err_nomem(err);
	if (unlinkat(d->dir_fd, d->name, 0) < 0 && errno != ENOENT)
		return err_sys(err, "removing an old '%s'", d->address);
	r = sys_listen_at(d->dir_fd, d->name, CALLERS_MAX);
	if (r < 0)
		return err_set(err, r, "listening on '%s': %s", d->address, strerror(-r));
	d->fd = r;
	if (fcntl(d->fd, F_SETFL, O_NONBLOCK) < 0 || fchmodat(d->dir_fd, d->name, 0666, 0) < 0)
		return err_sys(err, "opening '%s' for others", d->address);
	if (ftruncate(d->lock_fd, 0) < 0 ||
	    fdio_pwrite(d->lock_fd, d->address, strlen(d->address), 0) < 0)
		return err_sys(err, "writing '" CONTROL_DIR "/" DESK_FILE "'");
	return 0;
}

int engine_desk_open(struct engine *e, const char *dir, struct engine_desk **ret, struct err *err)
{
	CLEANUP(engine_desk_close_p) struct engine_desk *d = calloc(1, sizeof(*d));
	char usual[64];
	int r;

	if (!d)
		return err_nomem(err);
	d->engine = e;
	d->fd = d->dir_fd = d->lock_fd = -1;
	snprintf(usual, sizeof(usual), DESK_USUAL "%u", (unsigned)geteuid());
	dir = dir ? dir : usual;
	if (*dir != '/')
		return err_set(err, -EINVAL, "'%s' is no absolute path", dir);
	if (!engine_has_store(e))
		return err_set(err, -ENOENT, "there is no store in '%s'", e->store_path);
	r = lock_desk(d, err);
	if (r < 0)
		return r;
	r = open_place(d, dir, err);
	if (r < 0)
		return r;
	r = listen_there(d, dir, err);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(d);
	return 0;
}

const char *engine_desk_address(const struct engine_desk *d)
{
	return d->address;
}

char *engine_desk_find(struct engine *e)
{
	AUTO_FREE char *path = path_join(e->store_path, CONTROL_DIR "/" DESK_FILE);
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	struct err ignored = { 0 };
	AUTO_CLOSE int fd = path ? open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC) : -1;

	/* Looks without taking it: a keeper that begins just now must not find it taken. */
	if (fd < 0 || !docket_is_locked(fd) ||
	    fdio_read_file(AT_FDCWD, path, ADDRESS_MAX, &text, &ignored) < 0 || text.len == 0 ||
	    !buf_str(&text))
		return NULL;
	return strdup(buf_str(&text));
}

/* --- what callers may ask ------------------------------------------------------------------ */

/* A question, read whole; the texts are borrowed. */
struct question {
	const char *ask, *change, *stage, *reason, *digest;
	bool patch;
};

static int read_question(struct json j, struct question *q, struct err *err)
{
	int r;

	q->ask = json_get_text(j, "ask");
	q->change = json_has(j, "change") ? json_get_text(j, "change") : "";
	q->stage = json_get_text_or_null(j, "stage");
	q->reason = json_get_text_or_null(j, "reason");
	q->digest = json_get_text_or_null(j, "digest");
	q->patch = json_has(j, "patch") && json_get_bool(j, "patch");
	r = json_end(j.doc, err);
	if (r < 0)
		return r;
	if (q->reason && strlen(q->reason) > DESK_REASON_MAX)
		return err_set(err, -EINVAL, "a reason has at most %d bytes", DESK_REASON_MAX);
	return 0;
}

struct visit {
	struct engine_desk *desk;
	struct decider who;
	struct decider_names names;
	char *name; /* owned */
};

static bool is_open(const struct engine_change *c)
{
	return c->state == ENGINE_CHANGE_WAITING && !c->approved_by;
}

/* What this caller may know of, and decide about. */
static bool concerns(const struct visit *v, const struct engine_change *c)
{
	struct stat st;

	if (c->n_approvers > 0)
		return approve_is_named(c, &v->who, v->name);
	return stat(v->desk->engine->store_path, &st) == 0 && st.st_uid == v->who.uid;
}

/* Whether there is such a change at all is not told to those it does not concern. */
static int find_for(const struct visit *v, const char *id, struct engine_change *ret,
		    struct err *err)
{
	struct err ignored = { 0 };
	int r = engine_change_find(v->desk->engine, id, ret, &ignored);
	/* By its id alone: a clone's name means another change once its owner ships again. */
	const bool theirs = r >= 0 && strncmp(ret->id, id, strlen(id)) == 0 && concerns(v, ret);

	if (theirs && is_open(ret))
		return 0;
	if (theirs)
		return err_set(
		    err, -ECANCELED, "change %s is %s: there is nothing to decide", ret->id,
		    ret->approved_by ? "approved" : engine_change_state_name(ret->state));
	return err_set(err, r == -ENOMEM ? r : -ECANCELED,
		       "'%s' may not decide about a change '%.32s', or there is none", v->name, id);
}

static int answer_list(const struct visit *v, struct json answer, struct err *err)
{
	CLEANUP(engine_changes_done) struct engine_changes all = { 0 };
	const struct json list = json_set_array(answer, "changes");
	int r = engine_changes(v->desk->engine, true, &all, err);
	size_t n = 0;

	for (size_t i = 0; r >= 0 && i < all.n && n < DESK_LIST_MAX; i++) {
		const struct engine_change *c = &all.list[i];

		if (!is_open(c) || !concerns(v, c))
			continue;
		fields_set(json_add_object(list), &change_fields, c);
		n++;
	}
	return r;
}

static int set_patch(const struct visit *v, const struct engine_change *c, struct json answer,
		     struct err *err)
{
	CLEANUP(buf_done) struct buf patch = BUF_INIT;
	int r = desk_patch(v->desk->engine, c, &patch, err);

	if (r < 0)
		return r;
	if (!buf_str(&patch))
		return err_nomem(err);
	json_set_name(answer, "patch", buf_str(&patch));
	json_set_bool(answer, "cut", r > 0);
	return 0;
}

/* A person who was shown only the beginning has not seen the change, unless they give the digest of all of it. */
static int check_seen(const struct visit *v, const struct engine_change *c, struct err *err)
{
	CLEANUP(buf_done) struct buf patch = BUF_INIT;
	int r = desk_patch(v->desk->engine, c, &patch, err);

	return r <= 0 ? r
		      : err_set(err, -ECANCELED,
				"the patch of change %s is longer than is shown here: look at all "
				"of it where it can be seen, and approve it by its digest",
				c->id);
}

static int answer_look(const struct visit *v, const struct question *q, struct json answer,
		       struct err *err)
{
	CLEANUP(engine_change_done) struct engine_change c = { 0 };
	int r = find_for(v, q->change, &c, err);

	if (r < 0)
		return r;
	fields_set(json_set_object(answer, "change"), &change_fields, &c);
	return q->patch ? set_patch(v, &c, answer, err) : 0;
}

static int answer_decision(const struct visit *v, const struct question *q, struct json answer,
			   struct err *err)
{
	CLEANUP(engine_change_done) struct engine_change found = { 0 }, c = { 0 };
	const struct decision what = { .reject = strcmp(q->ask, "reject") == 0,
				       .reason = q->reason,
				       .stage = q->stage,
				       .digest = q->digest };
	int r = find_for(v, q->change, &found, err);

	if (r < 0)
		return r;
	if (!q->stage || (what.reject && (!q->reason || *q->reason == '\0')))
		return err_set(err, -EINVAL,
			       "a decision names its stage, and a rejection its reason");
	r = what.reject || q->digest ? 0 : check_seen(v, &found, err);
	if (r < 0)
		return r;
	r = approve_decide(v->desk->engine, found.id, &what, &v->who, &c, err);
	if (r < 0)
		return r;
	log_info("'%s' %s change %s at stage '%s'", v->name, what.reject ? "rejected" : "approved",
		 c.id, q->stage);
	fields_set(json_set_object(answer, "change"), &change_fields, &c);
	return 1;
}

/* 1: something was decided. */
static int answer(const struct visit *v, struct json question, struct json ret, struct err *err)
{
	struct question q;
	int r = read_question(question, &q, err);

	if (r < 0)
		return r;
	if (strcmp(q.ask, "list") == 0)
		return answer_list(v, ret, err);
	if (strcmp(q.ask, "look") == 0)
		return answer_look(v, &q, ret, err);
	if (strcmp(q.ask, "approve") == 0 || strcmp(q.ask, "reject") == 0)
		return answer_decision(v, &q, ret, err);
	return err_set(err, -ENOTSUP, "here one can list, look, approve and reject");
}

/* --- callers ------------------------------------------------------------------------------- */

/* It goes out as the caller reads it, and nobody waits for that. */
static void set_answer(struct caller *c, struct json_doc *doc, int r, const struct err *why)
{
	CLEANUP(json_done) struct json_doc failed = { 0 };
	struct err ignored = { 0 };

	if (r < 0)
		control_set_error(json_begin(&failed), r, why);
	if (json_append(r < 0 ? &failed : doc, &c->out, &ignored) < 0)
		c->out.len = 0;
	c->until = engine_clock_ms() + CALLER_MS;
}

/* 0: more is to go; negative: there is no more that could. */
static int flush(struct caller *c)
{
	const ssize_t n =
	    send(c->fd, c->out.data + c->sent, c->out.len - c->sent, MSG_NOSIGNAL | MSG_DONTWAIT);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	c->sent += (size_t)n;
	return c->sent < c->out.len ? 0 : -EPIPE;
}

static void log_refusal(struct engine_desk *d, uid_t uid, const struct err *why)
{
	const uint64_t minute = engine_clock_ms() / 60000;

	if (minute != d->minute && d->told > TOLD_MAX)
		log_info("%u more refusals", d->told - TOLD_MAX);
	if (minute != d->minute)
		d->told = 0;
	d->minute = minute;
	if (++d->told <= TOLD_MAX)
		log_info("user %u: %s", (unsigned)uid, why->msg);
	if (d->told == TOLD_MAX)
		log_info("what else is refused within this minute is only counted");
}

/* The kernel's word on who called; a sandbox may show us any number. */
static int know(const struct caller *c, gid_t *groups, struct visit *v, struct err *err)
{
	int n;

	if (sys_peer_shares_ids(c->fd) != 1)
		return err_set(err, -EPERM, STRANGER);
	n = sys_peer_groups(c->fd, groups, DECIDER_GROUPS_MAX);
	if (n < 0)
		return err_set(err, n, "the groups of user %u cannot be told", (unsigned)c->uid);
	v->who = (struct decider){
		.uid = c->uid, .groups = groups, .n_groups = (size_t)n, .names = &v->names
	};
	v->name = approve_user_name(c->uid);
	return v->name ? 0 : err_nomem(err);
}

static int serve_caller(struct engine_desk *d, struct caller *c, size_t len)
{
	CLEANUP(json_done) struct json_doc asked = { 0 }, doc = { 0 };
	const struct json ret = json_set_object(json_begin(&doc), "answer");
	gid_t groups[DECIDER_GROUPS_MAX];
	struct visit v = { .desk = d };
	struct json question;
	struct err err = { 0 };
	int r = know(c, groups, &v, &err);

	if (r >= 0)
		r = json_parse(&asked, (const char *)c->in.data, len, &question, &err);
	if (r >= 0)
		r = answer(&v, question, ret, &err);
	if (r < 0)
		log_refusal(d, c->uid, &err);
	set_answer(c, &doc, r, &err);
	free(v.name);
	decider_names_done(&v.names);
	return r > 0;
}

static void drop(struct engine_desk *d, size_t i)
{
	caller_done(&d->callers[i]);
	d->callers[i] = d->callers[--d->n];
}

static void refuse(int fd, int code, const char *sentence)
{
	struct caller c = { .fd = fd, .in = BUF_INIT, .out = BUF_INIT };
	struct err why = { 0 };

	IGNORE_RESULT(err_set(&why, code, "%s", sentence), "it is sent");
	set_answer(&c, NULL, code, &why);
	IGNORE_RESULT(flush(&c), "one line goes out at once, or the caller has left");
	caller_done(&c);
}

static bool has_left(int fd)
{
	char byte;

	return recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

static void accept_callers(struct engine_desk *d)
{
	while (d->n < CALLERS_MAX) {
		const int fd = sys_accept(d->fd);
		size_t same = 0;
		uid_t uid;

		if (fd < 0)
			return;
		/* A caller in a user namespace of its own could have any number of uids: it gets no place at all. */
		if (sys_peer_uid(fd, &uid) < 0 || sys_peer_shares_ids(fd) != 1) {
			refuse(fd, -EPERM, STRANGER);
			continue;
		}
		for (size_t i = 0; i < d->n; i++)
			same += d->callers[i].uid == uid && !has_left(d->callers[i].fd);
		if (same >= OF_ONE_USER) {
			refuse(fd, -EAGAIN, "this user has too many connections");
			continue;
		}
		d->callers[d->n++] = (struct caller){
			.fd = fd,
			.uid = uid,
			.until = engine_clock_ms() + CALLER_MS,
			.in = BUF_INIT,
			.out = BUF_INIT,
		};
	}
}

/* 1: its question is whole, and *ret_len long; 0: more is to come; negative: it is of no use. */
static int hear(struct caller *c, size_t *ret_len)
{
	char bytes[4096];
	const ssize_t n = recv(c->fd, bytes, sizeof(bytes), MSG_DONTWAIT);
	const uint8_t *end;

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	if (n == 0 || c->in.len + (size_t)n > DESK_ASK_MAX ||
	    buf_append(&c->in, bytes, (size_t)n) < 0)
		return -EPIPE;
	end = memchr(c->in.data, '\n', c->in.len);
	*ret_len = end ? (size_t)(end - c->in.data) : 0;
	return end != NULL;
}

int engine_desk_serve(struct engine_desk *d)
{
	const uint64_t now = engine_clock_ms();
	int decided = 0;

	accept_callers(d);
	for (size_t i = d->n; i-- > 0;) {
		struct caller *c = &d->callers[i];
		size_t len = 0;
		int r = c->out.len > 0 ? 0 : hear(c, &len);

		if (r > 0)
			decided += serve_caller(d, c, len);
		if (r >= 0 && (r > 0 || c->out.len > 0))
			r = flush(c);
		if (r < 0 || now >= c->until)
			drop(d, i);
	}
	return decided;
}

size_t engine_desk_fds(const struct engine_desk *d, struct pollfd fds[ENGINE_DESK_FDS])
{
	size_t n = 0;

	if (d->n < CALLERS_MAX)
		fds[n++] = (struct pollfd){ .fd = d->fd, .events = POLLIN };
	for (size_t i = 0; i < d->n; i++)
		fds[n++] =
		    (struct pollfd){ .fd = d->callers[i].fd,
				     .events = d->callers[i].out.len > 0 ? POLLOUT : POLLIN };
	return n;
}

int engine_desk_timeout(const struct engine_desk *d)
{
	const uint64_t now = engine_clock_ms();
	uint64_t first = UINT64_MAX;

	for (size_t i = 0; i < d->n; i++)
		if (d->callers[i].until < first)
			first = d->callers[i].until;
	return first == UINT64_MAX ? -1 : first > now ? (int)(first - now) : 0;
}
