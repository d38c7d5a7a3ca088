/*
 * http-i.h - shared by the files of the HTTP transport.
 *
 * One thread. libmicrohttpd parses the requests; the loop in http.c waits for it, for the calls of
 * all clients, and for connections that close before their request is answered.
 */
#pragma once

#include "cli/http/door.h"
#include "cli/http/microhttpd.h"
#include "cli/mcp/mirror.h"
#include "cli/mcp/session.h"

#define CLIENT_ID_SIZE 33

/* A client that began with a handshake, known by its Mcp-Session-Id. */
struct http_client {
	struct http_client *next;
	char id[CLIENT_ID_SIZE];
	struct session session;
	struct buf aside;          /* lines that belong to no request */
	struct exchange *listener; /* that takes them; NULL: none does */
	uint64_t used_ms;          /* when it was last heard of */
};

/* One HTTP request, and the messages that answer it. */
struct exchange {
	struct exchange *next;
	struct http *http;
	struct MHD_Connection *connection;
	int fd; /* of the connection, borrowed */
	struct mirror mirror;
	const char *session_id; /* Mcp-Session-Id, borrowed; NULL: it has none */
	enum { METHOD_POST, METHOD_GET, METHOD_DELETE } method;

	unsigned status;  /* of HTTP; 0: it is not known yet */
	const char *why;  /* of a refusal */
	struct buf body;  /* of the request */
	struct buf lines; /* messages for the client, each one line; of a session's making */

	bool taken;         /* the body is complete, and was taken */
	bool takes_streams; /* the client can read one */
	bool streams;       /* it is answered by a stream, which has begun */
	bool ended;         /* no more lines will come */
	bool gone;          /* the client has closed the connection */
	bool suspended;     /* libmicrohttpd leaves the connection alone until it is resumed */
	bool talks;         /* the client has sent more already, so that its end cannot be seen */
	struct buf wire;    /* of the stream: what has to be sent */
	size_t sent;        /* of `wire` */
	uint64_t since_ms;  /* when it began, or the stream was last written to */

	struct session own;         /* of a request that stands for itself */
	bool has_own;               /* `own` is in use */
	struct http_client *client; /* borrowed; NULL: of no client */
	bool is_new;                /* the client is new and needs its id */
};

struct http {
	const struct mcp_options *options;
	const struct mcp_http *how;
	struct door door;
	struct microhttpd lib;
	struct MHD_Daemon *daemon;
	int stop_fd; /* can be read once the server has to end */
	struct exchange *exchanges;
	struct http_client *clients;
	size_t n_clients;
	size_t body_bytes; /* of all requests that are being read */
	bool stopping;
};

/* Refuse a request: a status of HTTP, and why. */
static inline void exchange_refuse(struct exchange *x, unsigned status, const char *why)
{
	x->status = status;
	x->why = why;
	x->ended = true;
}

/* --- http-client.c --------------------------------------------------------------------------- */

/* A new one; NULL if there are too many, or no memory. */
struct http_client *http_client_new(struct http *h);
struct http_client *http_client_find(struct http *h, const char *id);
void http_client_end(struct http *h, struct http_client *c); /* with its calls and streams */

/* End those that were not heard of for too long; milliseconds until the next may be due. */
int http_client_expire(struct http *h);

/* --- exchange.c ------------------------------------------------------------------------- */

/* What libmicrohttpd calls for each part of a request, and when it is over. */
enum MHD_Result exchange_serve(void *http, struct MHD_Connection *connection, const char *url,
			       const char *method, const char *version, const char *data,
			       size_t *size, void **exchange);
void exchange_over(void *http, struct MHD_Connection *connection, void **exchange,
		   enum MHD_RequestTerminationCode why);

/* Go on with one, if there is anything to send. */
void exchange_step(struct exchange *x);

/* How many milliseconds there are until exchange_step() has something to do anyway. */
int exchange_timeout(const struct exchange *x);

/* Has the client closed the connection?  Only of one that is suspended. */
void exchange_look(struct exchange *x);

/* --- http-request.c -------------------------------------------------------------------------- */

/* The body is complete: take the message in it, or refuse it by setting `status` and `why`. */
void http_request_take(struct exchange *x);

/* The session that the exchange belongs to; NULL: none. */
struct session *http_request_session(struct exchange *x);
