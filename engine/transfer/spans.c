#include "engine/api/spans.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/fdio.h"
#include "base/hex.h"
#include "base/path.h"
#include "base/text.h"
#include "base/vec.h"
#include "engine/find/config-i.h"
#include "engine/find/engine-i.h"
#include "engine/transfer/transfer-i.h"
#include "remote/http.h"
#include "remote/url.h"

#define TRACES     "/v1/traces"
#define TRIES      3
#define STALL_MS   10000
#define CURSOR_MAX 128

/* How far an endpoint is: the last run that it has, by when that ended, then by its id. */
struct cursor {
	char *path; /* owned */
	int lock;   /* held; -1: not yet */
	bool left;  /* to another process, which waits for that lock */
	int64_t ended;
	char id[ENGINE_RUN_ID_SIZE];
};

static void cursor_done(struct cursor *c)
{
	free(c->path);
	cleanup_close(&c->lock);
}

/* --- the endpoint ------------------------------------------------------------------------- */

static int complete_url(const char *endpoint, char **ret, struct err *err)
{
	AUTO_FREE char *origin = url_origin(endpoint);
	const char *host = strstr(endpoint, "://");
	const char *path = host ? strchr(host + 3, '/') : NULL;
	char *url;

	if (!origin)
		return err_set(err, -EINVAL,
			       "'%s' is no URL of a collector, as http://127.0.0.1:4318 is",
			       endpoint);
	if (!url_is_https(endpoint) && !url_is_loopback(endpoint))
		return err_set(
		    err, -EINVAL,
		    "'%s': spans hold command lines; to another machine they go over https "
		    "only",
		    endpoint);
	if (path && path[1] != '\0')
		url = strdup(endpoint);
	else
		url = text_format("%.*s%s",
				  (int)(path ? path - endpoint : (ptrdiff_t)strlen(endpoint)),
				  endpoint, TRACES);
	*ret = url;
	return url ? 0 : err_nomem(err);
}

/* --- how far it is ------------------------------------------------------------------------ */

/* The lock file with that ending, open; the caller closes it. */
static int open_lock(const struct cursor *c, const char *ending, struct err *err)
{
	int fd;
	AUTO_FREE char *path = text_format("%s.%s", c->path, ending);

	if (!path)
		return err_nomem(err);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	return fd < 0 ? err_sys(err, "opening '%s'", path) : fd;
}

/*
 * One process sends, and at most one waits for it.  That one looks at the runs after it stopped to
 * wait, so whoever finds it waiting has nothing left to do.
 */
static int wait_turn(struct cursor *c, struct err *err)
{
	AUTO_CLOSE int next = open_lock(c, "next", err);

	if (next < 0)
		return next;
	c->left = flock(next, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK;
	if (c->left)
		return 0;
	while (flock(c->lock, LOCK_EX) < 0)
		if (errno != EINTR)
			return err_sys(err, "waiting for the turn to send spans");
	return 0;
}

static int cursor_lock(struct cursor *c, const char *shown, bool wait, struct err *err)
{
	c->lock = open_lock(c, "lock", err);
	if (c->lock < 0)
		return c->lock;
	if (wait)
		return wait_turn(c, err);
	if (flock(c->lock, LOCK_EX | LOCK_NB) == 0)
		return 0;
	return errno == EWOULDBLOCK
		   ? err_set(err, -EBUSY, "another command is sending spans to '%s'", shown)
		   : err_sys(err, "locking the way to '%s'", shown);
}

/* A file that cannot be understood sends everything again, which a collector can live with. */
static int cursor_open(struct cursor *c, struct engine *e, const char *url, bool wait,
		       struct err *err)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	AUTO_FREE char *dir = NULL;
	char hex[SHA256_HEX_SIZE];
	const struct digest d = digest_of(url, strlen(url));
	int r = transfer_dir(e, "remote/spans", &dir, err);

	if (r < 0)
		return r;
	c->path = path_join(dir, hex_encode(d.b, sizeof(d.b), hex));
	if (!c->path)
		return err_nomem(err);
	r = cursor_lock(c, url, wait, err);
	if (r < 0 || c->left)
		return r;
	_Static_assert(ENGINE_RUN_ID_SIZE == 13, "as the format below has it");
	if (fdio_read_file(AT_FDCWD, c->path, CURSOR_MAX, &text, NULL) < 0 || !buf_str(&text) ||
	    sscanf(buf_str(&text), "%" SCNd64 " %12s", &c->ended, c->id) != 2)
		c->ended = 0;
	return 0;
}

static int cursor_move(struct cursor *c, const struct engine_run *last, struct err *err)
{
	char text[CURSOR_MAX];
	const int n = snprintf(text, sizeof(text), "%" PRId64 " %s\n", last->ended, last->id);

	c->ended = last->ended;
	snprintf(c->id, sizeof(c->id), "%s", last->id);
	return fdio_replace_file(AT_FDCWD, c->path, text, (size_t)n, 0600, err);
}

static bool is_behind(const struct cursor *c, const struct engine_run *run)
{
	if (run->ended <= 0)
		return false; /* it still runs */
	return run->ended > c->ended || (run->ended == c->ended && strcmp(run->id, c->id) > 0);
}

static int compare_ends(const void *a, const void *b)
{
	const struct engine_run *x = a, *y = b;

	if (x->ended != y->ended)
		return x->ended < y->ended ? -1 : 1;
	return strcmp(x->id, y->id);
}

/* --- sending ------------------------------------------------------------------------------ */

/* 1: it has them; 0: it cannot understand them, and never will. */
static int judge(const struct http_answer *a, const char *url, struct err *err)
{
	if (a->status >= 200 && a->status < 300)
		return 1;
	if (http_is_busy(a))
		return err_set(err, -EAGAIN,
			       "the collector at '%s' answers %d; what it has not taken is kept",
			       url, a->status);
	/* A request that is wrong in itself must not hold up what comes after it. */
	if (a->status == 400 || a->status == 413 || a->status == 422)
		return 0;
	return err_set(err, a->status == 401 || a->status == 403 ? -EACCES : -EPROTO,
		       "'%s' answers %d to spans; is it the address of a collector?", url,
		       a->status);
}

/* Where batches go. */
struct line {
	struct http *http; /* owned */
	char *url;         /* owned; complete */
	struct strlist headers;
};

static void line_done(struct line *l)
{
	http_close(l->http);
	free(l->url);
	strlist_done(&l->headers);
}

static int line_open(struct line *l, const struct engine_collector *to, struct err *err)
{
	const struct http_options how = { .tries = TRIES, .stall_ms = STALL_MS };

	if (strlist_add(&l->headers, "Content-Type: application/json") < 0)
		return err_nomem(err);
	for (size_t i = 0; i < to->headers.n; i++)
		if (strlist_add(&l->headers, to->headers.list[i]) < 0)
			return err_nomem(err);
	return http_open(&how, &l->http, err);
}

static int post(struct line *l, const struct buf *body, struct err *err)
{
	const struct http_source source = http_source_bytes(body->data, body->len);
	const struct http_request q = {
		.method = "POST",
		.url = l->url,
		.headers = &l->headers,
		.source = &source,
		.quick = true,
	};
	CLEANUP(http_answer_done) struct http_answer a = { 0 };
	int r = http_send(l->http, &q, &a, err);

	return r < 0 ? r : judge(&a, l->url, err);
}

static int send_batch(struct line *l, const struct engine_run *list, size_t n,
		      engine_spans_fn *encode, struct engine_spans *ret, struct err *err)
{
	CLEANUP(buf_done) struct buf body = BUF_INIT;
	int r = encode(list, n, &body, err);

	if (r >= 0)
		r = post(l, &body, err);
	if (r < 0)
		return r;
	*(r > 0 ? &ret->sent : &ret->refused) += n;
	return 0;
}

void engine_collector_done(struct engine_collector *c)
{
	free(c->url);
	strlist_done(&c->headers);
}

int engine_collector(const struct engine *e, struct engine_collector *ret, struct err *err)
{
	AUTO_FREE char *path = config_file(e->home, CONFIG_FILE);
	CLEANUP(config_done) struct config config = { 0 };
	int r = path ? config_read(path, &config, err) : 0;

	if (r < 0)
		return r;
	*ret = (struct engine_collector){ TAKE_PTR(config.otlp), config.otlp_headers };
	config.otlp_headers = (struct strlist){ 0 };
	return 0;
}

int engine_spans_send(struct engine *e, const struct engine_collector *to, bool wait,
		      engine_spans_fn *encode, struct engine_spans *ret, struct err *err)
{
	const struct engine_runs_options all = { .all = true };
	CLEANUP(engine_runs_done) struct engine_runs runs = { 0 };
	CLEANUP(line_done) struct line line = { 0 };
	CLEANUP(cursor_done) struct cursor c = { .lock = -1 };
	size_t at = 0, n;
	int r = complete_url(to->url, &line.url, err);

	if (r < 0)
		return r;
	r = cursor_open(&c, e, line.url, wait, err);
	if (r < 0 || c.left)
		return r;
	r = engine_runs(e, &all, &runs, err);
	if (r < 0)
		return r;
	r = line_open(&line, to, err);
	if (r < 0)
		return r;
	VEC_SORT(runs.list, runs.n, compare_ends);
	/* Those that still run have not ended, and stand first. */
	while (at < runs.n && !is_behind(&c, &runs.list[at]))
		at++;
	for (; at < runs.n; at += n) {
		n = runs.n - at < ENGINE_SPANS_BATCH ? runs.n - at : ENGINE_SPANS_BATCH;
		r = send_batch(&line, runs.list + at, n, encode, ret, err);
		if (r >= 0)
			r = cursor_move(&c, &runs.list[at + n - 1], err);
		if (r < 0)
			return r;
	}
	return 0;
}
