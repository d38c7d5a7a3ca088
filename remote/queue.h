/*
 * queue.h - tickets, results and output that travel through a NATS server with JetStream.
 *
 * A queue is a server and a name ("nats://host:4222/NAME", by default "default"). The server keeps
 * three streams for all queues; subjects and retention are in docs/design/workers.md. Streams hold
 * everything that counts. A message that arrives by itself (queue_next()) only says that something
 * may be there: it may be lost, and the caller looks again after a while.
 *
 * libnats has threads of its own from queue_open() until queue_close(): a process that holds a
 * queue must not fork, and asks cowfsd nothing.
 *
 * Codes: -EAGAIN with a sentence says that the server cannot be reached now, and the same call may
 * succeed later; the library reconnects by itself. -ENOENT: the server has lost the stream
 * (queue_serve() makes it again), or the ticket that is acknowledged. -ENOTSUP: no libnats, or a
 * server without JetStream. -EACCES: it wants other credentials.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/strlist.h"

#define QUEUE_NAME_MAX   32
#define QUEUE_LABELS_MAX 4
#define QUEUE_ID_SIZE    65          /* of a ticket: 64 hex digits and a NUL */
#define QUEUE_TICKET_MAX (64u << 10) /* bytes */
#define QUEUE_RESULT_MAX (256u << 10)
#define QUEUE_LOG_MAX    (32u << 10) /* bytes of output in one message */

/* Small letters, digits and '-', at most QUEUE_NAME_MAX: the name of a queue, or a label. */
bool queue_word_valid(const char *word);

struct queue;

struct queue_config {
	const char *url;
	const char *creds;  /* a file of NATS; NULL: none */
	const char *client; /* what the server calls us */
	bool insecure; /* also a server elsewhere that asks for no credentials, or without TLS */
};

/* Is it an address that may be used so?  -EINVAL or -EACCES with a sentence; reaches for nothing. */
NODISCARD int queue_check(const struct queue_config *config, struct err *err);

/* Connects, and sees to it that the streams are there. */
NODISCARD int queue_open(const struct queue_config *config, struct queue **ret, struct err *err);
void queue_close(struct queue *q); /* NULL is fine; no thread of it is left */
DEFINE_CLEANUP(struct queue *, queue_close)

const char *queue_name(const struct queue *q);

/* --- what arrives by itself --------------------------------------------------------------- */

enum queue_kind {
	QUEUE_POSTED,   /* a ticket was posted that we may take */
	QUEUE_CANCEL,   /* of the ticket `id` */
	QUEUE_QUESTION, /* somebody asks who we are: queue_answer() */
	QUEUE_NEWS,     /* the ticket `id`, which we listen to, has output or a result */
};

struct queue_msg {
	enum queue_kind kind;
	char id[QUEUE_ID_SIZE];
	char *reply; /* owned */
};

void queue_msg_done(struct queue_msg *m);

int queue_fd(const struct queue *q); /* can be read when something has arrived */
/* 1 and the next, or 0: nothing more. */
NODISCARD int queue_next(struct queue *q, struct queue_msg *ret, struct err *err);

/* What a ticket asks for (0: it does not say), or what a worker has for tickets. */
struct queue_need {
	uint64_t mem, cpus_milli; /* bytes; thousandths of a processor */
};

bool queue_need_fits(const struct queue_need *need, const struct queue_need *room);

/* --- for a worker ------------------------------------------------------------------------- */

/*
 * Take tickets with these labels, sorted, and with any subset of them, that ask for no more than
 * `offer`.  A ticket of which its worker says nothing for `lease_ms` goes to another one.
 */
NODISCARD int queue_serve(struct queue *q, const struct strlist *labels,
			  const struct queue_need *offer, uint64_t lease_ms, struct err *err);

struct queue_taken {
	struct buf text;
	char *reply;      /* owned; by which it is acknowledged */
	uint64_t attempt; /* 1: it was never handed out before */
};

void queue_taken_done(struct queue_taken *t);

/* 1 and a ticket that was posted for no more than `room`, or 0: there is none now. */
NODISCARD int queue_take(struct queue *q, const struct queue_need *room, struct queue_taken *ret,
			 struct err *err);

/* It is being worked on: the lease begins anew.  Sent, not waited for. */
void queue_working(struct queue *q, const char *reply);
/* It is done, and gone when this returns 0. */
NODISCARD int queue_ack(struct queue *q, const char *reply, struct err *err);
/* Somebody is to take it again, after a while. */
void queue_nak(struct queue *q, const char *reply, uint64_t delay_ms);

/* Say something to whoever asked; sent, not waited for. */
void queue_answer(struct queue *q, const char *reply, const struct buf *text);

/* Output of a ticket.  Sent, not waited for: `at` shows the reader what is missing. */
struct queue_log {
	uint64_t attempt;
	bool is_note; /* no output: the names of the worker and its host, a line each */
	bool of_stderr;
	uint64_t at; /* where it begins in its stream */
	struct buf data;
};

NODISCARD int queue_log_put(struct queue *q, const char *id, const struct queue_log *log,
			    struct err *err);

/* --- for both ----------------------------------------------------------------------------- */

/* 1: it counts, and is stored; 0: there is a result already, and this one is dropped. */
NODISCARD int queue_result_put(struct queue *q, const char *id, const struct buf *text,
			       struct err *err);
/* Replaces `out`.  1 if there is one, else 0. */
NODISCARD int queue_result_get(struct queue *q, const char *id, struct buf *out, struct err *err);

/* --- for callers of `run --on` ------------------------------------------------------------ */

/* News of this ticket arrive; before queue_post(), lest some are missed. */
NODISCARD int queue_listen(struct queue *q, const char *id, struct err *err);

/* *ret_place is where it stands, for queue_withdraw().  A ticket that is posted twice is there once. */
NODISCARD int queue_post(struct queue *q, const char *id, const struct strlist *labels,
			 const struct queue_need *need, const struct buf *text, uint64_t *ret_place,
			 struct err *err);

/* The next output from place *at on, which moves behind it; it begins as 0.  1, or 0: nothing more now. */
NODISCARD int queue_log_next(struct queue *q, const char *id, uint64_t *at, struct queue_log *ret,
			     struct err *err);

/* Tell whoever works on it to stop; and take it back, should nobody have it. */
void queue_cancel(struct queue *q, const char *id);
void queue_withdraw(struct queue *q, uint64_t place);

/* --- for `worker status` ------------------------------------------------------------------ */

struct queue_numbers {
	uint64_t waiting, taken,
	    redelivered;      /* tickets: all, handed out now, of those not for the first time */
	uint64_t results;     /* kept, of all queues */
	uint64_t last_result; /* where the newest stands */
};

NODISCARD int queue_numbers(struct queue *q, struct queue_numbers *ret, struct err *err);

/* The result of this queue at that place or, of one that is not, the one before; 0: none. */
NODISCARD int queue_result_at(struct queue *q, uint64_t place, struct buf *out, struct err *err);

/* Ask all workers, and hand each answer to `fn` as it comes, for so long. */
NODISCARD int queue_ask(struct queue *q, uint64_t wait_ms,
			int (*fn)(const char *text, size_t len, void *ctx), void *ctx,
			struct err *err);
