/*
 * http-i.h - private to http*.c: the client, and one transfer of it.
 */
#pragma once

#include "remote/curl.h"
#include "remote/http.h"

struct http {
	const struct curl *curl; /* borrowed; never unloaded */
	struct http_options o;
	CURL *easy; /* owned, with the connection that it had last */
};

/* One try of one request at one URL. */
struct transfer {
	struct http *h;
	const struct http_request *q;
	const char *url;
	bool trusted; /* the URL is of the request's own server, which may have the authorization */
	struct http_answer *a;
	uint64_t *taken; /* bytes that the sink has, of all tries */
	uint64_t sent;   /* bytes of the source, in this try */
	uint64_t skip;   /* bytes of this answer that the sink does not want, or has already */
	bool begun;      /* the body has been looked at */
	uint64_t moved, moved_ms; /* bytes moved, and when that changed last */
	int wrong;                /* why a callback gave up; 0: none did */
	struct err why;
};

/* 0 with an answer, whole; else a negative errno with a sentence in `err`. */
NODISCARD int transfer_run(struct transfer *t, struct err *err);

/* Keep what a line of the head says. */
NODISCARD int http_answer_add(struct http_answer *a, const char *line, size_t len);
