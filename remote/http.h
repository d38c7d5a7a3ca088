/*
 * http.h - requests over HTTP, with limits, that survive a network which fails now and then.
 *
 * A struct http keeps a connection and the settings for every request: certificates, rate, times.
 * It belongs to one thread at a time; parallel connections need several.
 *
 *   - A lost connection, 429 and 5xx are tried again, each time after a longer pause or after the
 *     one that the server asks for. A download continues where it broke off.
 *   - A redirect is followed to the same scheme or to https, HTTP_REDIRECTS_MAX times at most, and
 *     only for requests without a body.
 *   - The authorization and a signature go to the host of the request's URL and to no other.
 *   - Error messages hold no secrets: neither authorization nor the part of a URL after '?'.
 *   - The size of an answer is bounded.
 *
 * Proxies are those of the environment, as libcurl reads it. Certificates come from SSL_CERT_FILE,
 * or from the system.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/strlist.h"

#define HTTP_REDIRECTS_MAX 5
#define HTTP_TRIES         6
#define HTTP_CONNECT_MS    20000
#define HTTP_STALL_MS      60000
#define HTTP_WAIT_MAX_MS   120000            /* the longest pause that a server may ask for */
#define HTTP_BODY_MAX      ((size_t)4 << 20) /* of an answer that nobody takes in pieces */

struct http;

struct http_options {
	const char *ca_file; /* NULL: SSL_CERT_FILE, or the system's; borrowed until http_close() */
	uint64_t rate;       /* bytes per second, each way; 0: no limit */
	uint64_t stall_ms;   /* without a byte moving; 0: HTTP_STALL_MS */
	unsigned tries;      /* of a request without progress; 0: HTTP_TRIES */
};

NODISCARD int http_open(const struct http_options *o, struct http **ret, struct err *err);
void http_close(struct http *h); /* NULL is fine */
DEFINE_CLEANUP(struct http *, http_close)

/* What a request carries; read again from any place when it is tried again. */
struct http_source {
	int (*read)(uint64_t at, void *to, size_t len,
		    void *ctx); /* all of it, or a negative errno */
	void *ctx;
	uint64_t len;
};

/* Takes what a good answer (200, 206) carries; a negative errno ends the transfer for good. */
typedef int (*http_sink_fn)(const void *data, size_t len, void *ctx);

/* Called after some bytes moved and about once a second anyhow; a negative errno ends the transfer. */
typedef int (*http_moved_fn)(uint64_t bytes, void *ctx);

/* What AWS' signature version 4 is made with, anew for each try; all borrowed. */
struct http_keys {
	const char *access, *secret;
	const char *scope; /* "aws:amz:eu-west-1:s3" */
};

struct http_request {
	const char *method;               /* "GET" */
	const char *url;                  /* http:// or https:// */
	const struct strlist *headers;    /* "Name: value"; NULL: none */
	const char *authorization;        /* "Basic ..."; NULL: none */
	const struct http_keys *keys;     /* sign with these; NULL: do not */
	const struct http_source *source; /* NULL: no body */
	http_sink_fn sink;                /* NULL: the body is kept in the answer */
	void *sink_ctx;
	uint64_t from, to;   /* of the range that the sink wants, its end not included; 0, 0: all */
	http_moved_fn moved; /* NULL: nobody wants to know */
	void *moved_ctx;
	bool once;  /* one try: it may have been carried out */
	bool quick; /* do not try again where nobody listens */
	bool stay;  /* follow no redirect: it is the answer */
};

struct http_answer {
	int status; /* 200 */
	char *content_type, *location, *link, *digest, *range, *retry_after,
	    *date; /* owned, or NULL */
	char *content_range, *chunk_min, *etag;
	char *meta_digest;         /* what a name in S3 was stored with */
	char *region;              /* what S3 says of where a bucket is */
	struct strlist challenges; /* each WWW-Authenticate */
	uint64_t length;           /* what Content-Length says; UINT64_MAX: nothing */
	struct buf body;           /* unless it went to the sink */
};

void http_answer_done(struct http_answer *a);

/*
 * 0 for an answer of any status, also 4xx, and 429 or 5xx if no try brought another; else with a sentence
 * -ETIMEDOUT, -ECONNREFUSED, -ECONNRESET, -EHOSTUNREACH, -EPROTO (TLS, or what is no HTTP), -EFBIG, -EXDEV
 * (a redirect that is not followed); or what a function of the request returned, without one.
 */
NODISCARD int http_send(struct http *h, const struct http_request *q, struct http_answer *ret,
			struct err *err);

/* An http_source over memory. */
struct http_source http_source_bytes(const void *data, size_t len);

/* The connection failed or broke: another try may do. */
bool http_is_lost(int r);

/* 429 and 5xx: the server may do it later. */
bool http_is_busy(const struct http_answer *a);

/*
 * Wait before try number `n` + 2, as long as the answer (NULL: none) asks for.  -EAGAIN at once if that is
 * more than HTTP_WAIT_MAX_MS, or what the request's `moved` returned.
 */
NODISCARD int http_pause(const struct http_request *q, const struct http_answer *a, unsigned n);
