/*
 * One connection. Callbacks of libnats run on its threads and only put a pointer into a pipe; all
 * else happens on the caller's thread.
 */
#include "remote/queue.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/sys.h"
#include "base/text.h"
#include "remote/queue-i.h"

#define CONNECT_MS   5000
#define FLUSH_MS     3000
#define RECONNECT_MS 250
#define PING_MS      5000
#define CLOSE_MS     5000

/* --- the address -------------------------------------------------------------------------- */

/* Its parts, within the text. */
struct address {
	size_t server;    /* how long all of it is up to the name */
	const char *name; /* NULL: none */
	const char *host; /* behind a password */
	size_t host_len;
	bool has_password, tls;
};

static int read_address(const char *url, struct address *a, struct err *err)
{
	const char *rest = strncmp(url, "nats://", 7) == 0  ? url + 7
			   : strncmp(url, "tls://", 6) == 0 ? url + 6
							    : NULL;
	const char *at, *slash;

	if (!rest || strlen(url) > 1024 || *rest == '\0')
		return err_set(err, -EINVAL,
			       "'%.80s' is no queue: nats://HOST[:PORT][/NAME], or tls://", url);
	slash = strchr(rest, '/');
	a->tls = url[0] == 't';
	a->server = slash ? (size_t)(slash - url) : strlen(url);
	a->name = slash && slash[1] != '\0' ? slash + 1 : NULL;
	at = memchr(rest, '@', a->server - (size_t)(rest - url));
	a->has_password = at != NULL;
	a->host = at ? at + 1 : rest;
	a->host_len = a->server - (size_t)(a->host - url);
	for (size_t i = a->host_len; i > 0 && a->host[i - 1] != ']'; i--)
		if (a->host[i - 1] == ':')
			a->host_len = i - 1;
	if (a->name && !queue_word_valid(a->name))
		return err_set(err, -EINVAL,
			       "'%.80s' cannot be the name of a queue: small letters, digits and "
			       "'-', at most %d",
			       a->name, QUEUE_NAME_MAX);
	return 0;
}

static bool is_loopback(const struct address *a)
{
	static const char *const here[] = { "localhost", "[::1]" };

	for (size_t i = 0; i < ARRAY_LEN(here); i++)
		if (strlen(here[i]) == a->host_len && memcmp(here[i], a->host, a->host_len) == 0)
			return true;
	/* "127.evil.org" is a name: only digits and dots are an address. */
	return a->host_len > 4 && memcmp(a->host, "127.", 4) == 0 &&
	       strspn(a->host, "0123456789.") >= a->host_len;
}

/* Whoever can post tickets runs commands here, and so can whoever sits on the way to the server. */
static int check_trust(const struct queue_config *c, const struct address *a, struct err *err)
{
	if (c->insecure || is_loopback(a))
		return 0;
	if ((c->creds || a->has_password) && !a->tls)
		return err_set(
		    err, -EACCES,
		    "queue '%.*s' is not on this machine, and without TLS anybody on the "
		    "way could run commands: say tls://, or --insecure",
		    (int)(a->host_len > 120 ? 120 : a->host_len), a->host);
	if (c->creds || a->has_password)
		return 0;
	return err_set(err, -EACCES,
		       "queue '%.*s' is not on this machine, and anybody who reaches it could run "
		       "commands: name credentials of NATS with --creds, or say --insecure",
		       (int)(a->host_len > 120 ? 120 : a->host_len), a->host);
}

/* --- what arrives ------------------------------------------------------------------------- */

/* Without one libnats writes to stderr. */
static void on_error(natsConnection *conn, natsSubscription *sub, natsStatus s, void *ctx)
{
}

int queue_fd(const struct queue *q)
{
	return q->pipe[0];
}

const char *queue_name(const struct queue *q)
{
	return q->name;
}

void queue_msg_done(struct queue_msg *m)
{
	free(m->reply);
	*m = (struct queue_msg){ 0 };
}

/* A need that we do not know of yet is looked for at once. */
static void see_posted(struct queue *q, const char *set)
{
	struct queue_need need;
	const size_t len = queue_set_read(set, &need);

	if (set[len] != '\0' && !strlist_has(&q->found, set))
		q->found_ms = 0;
}

/* "snapcow.QUEUE.KIND.TAIL" -> kind and id; false: it is none that we know. */
static bool read_subject(struct queue *q, const char *subject, struct queue_msg *m)
{
	static const struct {
		const char *word;
		enum queue_kind kind;
		bool has_id;
	} kinds[] = {
		{ "ticket.", QUEUE_POSTED, false },     { "cancel.", QUEUE_CANCEL, true },
		{ "question.", QUEUE_QUESTION, false }, { "log.", QUEUE_NEWS, true },
		{ "result.", QUEUE_NEWS, true },
	};
	const size_t n = sizeof("snapcow.") - 1 + strlen(q->name) + 1;

	if (strlen(subject) <= n)
		return false;
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		const size_t len = strlen(kinds[i].word);

		if (strncmp(subject + n, kinds[i].word, len) != 0)
			continue;
		m->kind = kinds[i].kind;
		if (m->kind == QUEUE_POSTED)
			see_posted(q, subject + n + len);
		if (kinds[i].has_id)
			snprintf(m->id, sizeof(m->id), "%s", subject + n + len);
		return true;
	}
	return false;
}

int queue_next(struct queue *q, struct queue_msg *ret, struct err *err)
{
	natsMsg *msg;

	while (read(q->pipe[0], &msg, sizeof(msg)) == sizeof(msg)) {
		const char *reply = q->n->natsMsg_GetReply(msg);
		struct queue_msg m = { 0 };
		const bool known = read_subject(q, q->n->natsMsg_GetSubject(msg), &m);
		bool full = false;

		if (known && reply) {
			m.reply = strdup(reply);
			full = !m.reply;
		}
		q->n->natsMsg_Destroy(msg);
		if (full)
			return err_nomem(err);
		if (!known)
			continue;
		*ret = m;
		return 1;
	}
	return 0;
}

/* --- opening ------------------------------------------------------------------------------ */

/* By itself libnats goes on in the clear if the server does not ask for TLS, and takes any name. */
static natsStatus set_tls(const struct nats *n, const struct address *a, natsOptions *o)
{
	const bool brackets = a->host_len > 1 && a->host[0] == '[';
	char host[256];
	natsStatus s = n->natsOptions_SetSecure(o, true);

	if (a->host_len >= sizeof(host))
		return NATS_INVALID_ARG;
	snprintf(host, sizeof(host), "%.*s", (int)(a->host_len - (brackets ? 2 : 0)),
		 a->host + brackets);
	return s == NATS_OK ? n->natsOptions_SetExpectedHostname(o, host) : s;
}

static natsStatus set_options(const struct queue *q, const struct queue_config *c,
			      const struct address *a, const char *server, natsOptions *o)
{
	const struct nats *n = q->n;
	natsStatus s = n->natsOptions_SetURL(o, server);

	if (s == NATS_OK && c->client)
		s = n->natsOptions_SetName(o, c->client);
	if (s == NATS_OK)
		s = n->natsOptions_SetTimeout(o, CONNECT_MS);
	if (s == NATS_OK)
		s = n->natsOptions_SetSendAsap(o, true);
	if (s == NATS_OK)
		s = n->natsOptions_SetPingInterval(o, PING_MS);
	if (s == NATS_OK)
		s = n->natsOptions_SetMaxPingsOut(o, 2);
	if (s == NATS_OK)
		s = n->natsOptions_SetMaxReconnect(o, -1);
	if (s == NATS_OK)
		s = n->natsOptions_SetReconnectWait(o, RECONNECT_MS);
	if (s == NATS_OK)
		s = n->natsOptions_SetErrorHandler(o, on_error, NULL);
	if (s == NATS_OK && a->tls)
		s = set_tls(n, a, o);
	if (s == NATS_OK && c->creds)
		s = n->natsOptions_SetUserCredentialsFromFiles(o, c->creds, NULL);
	return s;
}

static int connect_to(struct queue *q, const struct queue_config *c, const struct address *a,
		      const char *server, struct err *err)
{
	natsOptions *o = NULL;
	natsStatus s = q->n->natsOptions_Create(&o);

	if (s == NATS_OK)
		s = set_options(q, c, a, server, o);
	if (s == NATS_OK)
		s = q->n->natsConnection_Connect(&q->conn, o);
	q->n->natsOptions_Destroy(o);
	return s == NATS_OK ? 0 : queue_err(q, s, "connecting", err);
}

static int open_pipe(struct queue *q, struct err *err)
{
	int r = sys_pipe(q->pipe);

	if (r < 0)
		return err_set(err, r, "making a pipe");
	for (int i = 0; i < 2; i++)
		if (fcntl(q->pipe[i], F_SETFL, O_NONBLOCK) < 0)
			return err_sys(err, "a pipe");
	return 0;
}

int queue_check(const struct queue_config *config, struct err *err)
{
	struct address a = { 0 };
	int r = read_address(config->url, &a, err);

	return r < 0 ? r : check_trust(config, &a, err);
}

int queue_open(const struct queue_config *config, struct queue **ret, struct err *err)
{
	CLEANUP(queue_close_p) struct queue *q = calloc(1, sizeof(*q));
	AUTO_FREE char *server = NULL;
	struct address a = { 0 };
	int r;

	if (!q)
		return err_nomem(err);
	q->pipe[0] = q->pipe[1] = -1;
	r = read_address(config->url, &a, err);
	if (r == 0)
		r = check_trust(config, &a, err);
	if (r == 0)
		r = nats_load(&q->n, err);
	if (r < 0)
		return r;
	snprintf(q->name, sizeof(q->name), "%s", a.name ? a.name : "default");
	r = text_set(&server, err, "%.*s", (int)a.server, config->url);
	if (r == 0)
		r = text_set(&q->url, err, "%s://%.*s/%s", a.tls ? "tls" : "nats",
			     (int)(a.server - (size_t)(a.host - config->url)), a.host, q->name);
	if (r == 0)
		r = open_pipe(q, err);
	if (r == 0)
		r = connect_to(q, config, &a, server, err);
	if (r == 0)
		r = queue_make_streams(q, err);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(q);
	return 0;
}

void queue_close(struct queue *q)
{
	natsMsg *msg;

	if (!q)
		return;
	for (size_t i = 0; i < q->n_subs; i++)
		q->n->natsSubscription_Destroy(q->subs[i]);
	queue_close_inbox(q);
	if (q->conn) {
		q->n->natsConnection_FlushTimeout(q->conn, FLUSH_MS);
		q->n->natsConnection_Destroy(q->conn);
	}
	/* What was not read goes back to the library while it is there. */
	while (q->pipe[0] >= 0 && read(q->pipe[0], &msg, sizeof(msg)) == sizeof(msg))
		q->n->natsMsg_Destroy(msg);
	/* Its threads are gone then, and the process may fork again. */
	if (q->n)
		q->n->nats_CloseAndWait(CLOSE_MS);
	for (int i = 0; i < 2; i++)
		cleanup_close(&q->pipe[i]);
	strlist_done(&q->sets);
	strlist_done(&q->found);
	free(q->url);
	free(q);
}
