/*
 * http.h - requests of HTTP/1, parsed so strictly that no server can read them differently.
 *
 * Strict where readers are known to differ: lines end with CR LF, no folded lines, no blank before
 * a colon, one length, one host. Anything else is -EBADMSG, and the connection ends.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"

#define HTTP_HEAD_MAX 16384

/* Bytes that somebody else owns. */
struct http_span {
	const char *at;
	size_t len;
};

enum http_framing { HTTP_NO_BODY, HTTP_LENGTH, HTTP_CHUNKED };

struct http_head {
	struct http_span method, target, version;
	struct http_span host; /* of the Host header; len 0 if it has none */
	enum http_framing framing;
	uint64_t length;   /* of the body, for HTTP_LENGTH */
	bool asks_upgrade; /* for some other protocol on this connection */
	bool upgrade;      /* and that is websocket, and nothing else */
	bool overrides;    /* a header asks for another method or path than the first line has */
	size_t len;        /* of the head, with its empty line */
};

/* 1 and a head, borrowed from `data`; 0 if it is not all there yet; -EBADMSG. */
NODISCARD int http_parse_head(const char *data, size_t len, struct http_head *ret);

/*
 * What kind of thing the first bytes of a client are.  Servers read requests in much that is none
 * (blank lines before them, two spaces, no version): such things are HTTP_NO_REQUEST, never a
 * protocol that could be let pass.
 */
enum http_first {
	HTTP_MAYBE,      /* so far it could become a request */
	HTTP_REQUEST,    /* it is one, with all of its head */
	HTTP_NO_REQUEST, /* it will never be one, but says that it wants to be */
	HTTP_OTHER,      /* nor does it say so */
};

enum http_first http_sniff(const char *data, size_t len);

/*
 * "host", "host:80", "[::1]:80".  The host is whatever stands before the last colon, without
 * brackets, for others to judge.  False if there is none, or a port that is none.
 */
bool http_split_authority(struct http_span authority, uint16_t default_port,
			  struct http_span *ret_host, uint16_t *ret_port);

/* "http://authority/path": the path may be empty.  False for anything else. */
bool http_split_uri(struct http_span uri, struct http_span *ret_authority,
		    struct http_span *ret_path);

/*
 * Append the head as a server gets it that is no proxy: with the path, a Host that says
 * `authority`, and without what was meant for us or would change the protocol.
 */
NODISCARD int http_rewrite(const char *data, const struct http_head *head,
			   struct http_span authority, struct http_span path, struct buf *out);

/*
 * The lines of a head one after the other, from *at = 0: the request (whose name is empty), then
 * headers.  False behind the last one.
 */
bool http_next_header(const char *data, const struct http_head *head, size_t *at,
		      struct http_span *ret_line, struct http_span *ret_name);
NODISCARD int http_append_line(struct buf *out, struct http_span line);

/* Append the head with the wish that the server closes behind its answer. */
NODISCARD int http_append_closing(struct buf *out, const char *data, const struct http_head *head);

/* Where a body ends. */
struct http_body {
	enum http_framing framing;
	uint64_t left;
	int state;       /* of reading chunks */
	unsigned digits; /* of a chunk's length, or bytes of a line */
	bool done;
};

void http_body_init(struct http_body *b, const struct http_head *head);

/* How many of the bytes are the body's, `done` once it has ended; -EBADMSG. */
NODISCARD ssize_t http_body_take(struct http_body *b, const char *data, size_t len);
