/*
 * serve-i.h - shared by the two files of the server: requests, and the loop around them.
 *
 * One thread. libmicrohttpd parses the requests; the loop in serve.c waits for it and for the
 * children that answer.
 */
#pragma once

#include "base/strlist.h"
#include "cli/http/child.h"
#include "cli/http/door.h"
#include "cli/http/microhttpd.h"
#include "cli/ui/ui.h"

/* A request, and the child that answers it. */
struct request {
	struct request *next;
	struct server *server;
	struct MHD_Connection *connection;
	int fd; /* of the connection, borrowed */

	bool is_page;    /* asks for the page itself */
	bool is_metrics; /* asks for numbers, as Prometheus does */
	bool is_stream;  /* is answered by what happens, as it happens */
	char question[32];
	struct buf body;
	unsigned status; /* of HTTP; 0: it is not known yet */
	struct err why;  /* of a refusal */

	struct strlist line; /* the command that answers it */
	uint64_t since;      /* of a stream: what was seen */
	struct child child;
	bool has_child;
	bool changes;   /* something: the child ends by itself, whatever becomes of the request */
	bool ended;     /* the child has */
	bool suspended; /* libmicrohttpd leaves the connection alone until it is resumed */
	bool gone;      /* the client has closed the connection */
	size_t sent;    /* of a stream: bytes of child.out */
};

/* A child that changes something, whose client has gone. */
struct orphan {
	struct orphan *next;
	struct child child;
};

struct server {
	const struct ui_options *options;
	struct door door;
	struct microhttpd lib;
	struct MHD_Daemon *daemon;
	struct request *requests;
	struct orphan *orphans;
	size_t n_children;
	pid_t pid; /* of the server: streams end with it, even if it is killed */
	bool stopping;
};

/* What libmicrohttpd calls for each part of a request, and when it is over. */
enum MHD_Result request_serve(void *server, struct MHD_Connection *connection, const char *url,
			      const char *method, const char *version, const char *data,
			      size_t *size, void **request);
void request_over(void *server, struct MHD_Connection *connection, void **request,
		  enum MHD_RequestTerminationCode why);

/* Read what its child has printed, and go on if that is something to send. */
void request_step(struct request *q);

/* Read what orphans print, and forget those that have ended. */
void orphans_step(struct server *s);
