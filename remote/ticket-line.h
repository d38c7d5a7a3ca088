/*
 * ticket-line.h - a ticket, its output and its result as messages between two machines.
 *
 * One question, any number of pieces of output, and then the result or a failure. A client that
 * comes back with the same ticket says how much it has, and gets the rest; the ticket's text
 * identifies it, so it never runs twice. docs/design/remote.md has each message.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "remote/ssh-line.h"

enum ticket_mode {
	TICKET_RUN,    /* unless it runs or has a result, and follow it */
	TICKET_FIND,   /* its result, if it has one */
	TICKET_CANCEL, /* it gets the result "cancelled", unless it has one */
};

struct ticket_question {
	enum ticket_mode mode;
	char *path; /* owned; of the depot there; "": the ticket's own address, seen from there */
	uint64_t attempt, at[2]; /* stdout and stderr that came of it before */
	struct buf text;
};

void ticket_question_done(struct ticket_question *q);

/* -EPROTO if the message is none. */
NODISCARD int ticket_question_read(struct stream *s, struct ticket_question *ret);

struct ticket_piece {
	uint64_t attempt;
	enum { TICKET_NOTE, TICKET_OUT, TICKET_ERR } stream; /* note: "WORKER\nHOST" */
	uint64_t at;                                         /* where it begins in its stream */
	const void *data;                                    /* borrowed until the next message */
	size_t len;
};

#define TICKET_PIECE_MAX ((size_t)32 << 10)

/* --- the server: negative if the client is gone -------------------------------------------- */

NODISCARD int ticket_send_piece(struct stream *s, const struct ticket_piece *piece);
NODISCARD int ticket_send_result(struct stream *s, const struct buf *text); /* "": none */

/* --- the client --------------------------------------------------------------------------- */

/* Connect, if need be, and ask. */
NODISCARD int ticket_line_ask(struct ssh_line *l, const struct ticket_question *q, struct err *err);
/* Cancel what was asked for; the result comes as ever. */
NODISCARD int ticket_line_stop(struct ssh_line *l, struct err *err);
/* 1: a piece; 0: it is over, and `result` is its text, "" if it has none. */
NODISCARD int ticket_line_next(struct ssh_line *l, struct ticket_piece *ret, struct buf *result,
			       struct err *err);
