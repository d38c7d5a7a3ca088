/*
 * stream.h - a depot on another machine, as messages over two pipes.
 *
 * The client asks, the server answers; there is one question at a time. A message is
 *
 *   u32  length of what follows the length, 1 to STREAM_MAX
 *   u8   type (enum stream_type)
 *   ...  the content, integers little-endian, texts as a u32 length and bytes without a NUL
 *
 * The server speaks first: the eight bytes of STREAM_MAGIC. So the client notices a shell that
 * prints a greeting, or another program, before it sends anything. docs/design/remote.md has each
 * message.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/buf.h"
#include "base/err.h"
#include "remote/pack/digest.h"

#define STREAM_MAGIC      "SNAPDEP1"
#define STREAM_MAGIC_SIZE 8
#define STREAM_MAX        ((size_t)8 << 20)
#define STREAM_PIECE      ((size_t)128 << 10) /* of a blob, in one message */

enum stream_type {
	STREAM_OPEN = 1,
	STREAM_HAS,
	STREAM_PUT,
	STREAM_GET,
	STREAM_PUT_MANIFEST,
	STREAM_GET_MANIFEST,
	STREAM_TAGS,
	STREAM_DELETE,
	STREAM_COLLECT,
	STREAM_PROBE,
	STREAM_TICKET,    /* ticket-line.h */
	STREAM_STOP,      /* cancel the ticket that is being answered */
	STREAM_DATA = 32, /* a piece of a blob */
	STREAM_ITEM,      /* one of a list */
	STREAM_OUTPUT,    /* of a ticket's command */
	STREAM_OK = 64,   /* it is done; the answer, and the end of pieces and lists */
	STREAM_FAIL,      /* u32 number of a code, text: the sentence */
};

struct stream {
	int in, out;
	struct buf sends; /* the message that is being made */
	struct buf got;   /* the one that came last */
	size_t at;        /* of it: what is read next */
	bool bad;         /* it has less, or more, than was read of it */
	bool guarded;     /* while a message comes: */
	int stop_fd;      /* when it can be read, -EINTR; -1: none */
	int wait_ms;      /* without a byte, and then -ETIMEDOUT; -1: any time */
};

void stream_done(struct stream *s); /* closes nothing */

/* --- sending: begin, add, send; stream_send() reports what lacked memory ----------- */

void stream_begin(struct stream *s, enum stream_type type);
void stream_add_u32(struct stream *s, uint32_t v);
void stream_add_u64(struct stream *s, uint64_t v);
void stream_add_digest(struct stream *s, const struct digest *d);
void stream_add_bytes(struct stream *s, const void *data, size_t len); /* with their length */
void stream_add_text(struct stream *s, const char *text);              /* NULL is "" */
void stream_add_raw(struct stream *s, const void *data, size_t len);
NODISCARD int stream_send(struct stream *s);

/* A failure as the other side can read it; a code that is not in the table is -EIO there. */
NODISCARD int stream_send_fail(struct stream *s, int code, const char *message);

/* --- receiving ---------------------------------------------------------------------------- */

/* The type of the next message; 0 at the end of input between messages; -EPROTO, or what read(2) says. */
NODISCARD int stream_receive(struct stream *s);

uint32_t stream_u32(struct stream *s);
uint64_t stream_u64(struct stream *s);
void stream_digest(struct stream *s, struct digest *ret);
/* Borrowed until the next message. */
const void *stream_bytes(struct stream *s, size_t *ret_len);
const void *stream_rest(struct stream *s, size_t *ret_len);
/* Owned; "" if it is bad. NULL when out of memory. */
NODISCARD char *stream_text(struct stream *s);

/* Was all of the message read, and nothing beyond it? */
bool stream_is_whole(const struct stream *s);

/* What a STREAM_FAIL carries: the code, with the sentence in `err`; never 0. */
NODISCARD int stream_take_fail(struct stream *s, struct err *err);
