/*
 * ticket.h - a command that some worker is to run, and its result.
 *
 * Both are one JSON object with all members in one order and nothing else: a reader writes the
 * content again and refuses a text that differs. So one content has one text, and the SHA-256 of
 * that text is the ticket's id. Tickets come from strangers; all lengths and numbers are bounded.
 * Byte for byte: docs/design/workers.md.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/strlist.h"
#include "engine/api/run.h"
#include "remote/queue.h"

#define TICKET_WORDS_MAX 512 /* of a command; as many variables */

struct ticket {
	char *schema;
	char *snapshot; /* digest of a manifest, "sha256:..." */
	char *name;     /* under which it was pushed: what a worker has of that need not travel */
	char *remote;   /* url of the depot */
	char *profile;  /* of the worker's; NULL: the one it takes by itself */
	struct strlist command;
	char *workdir;                   /* from the top of the project; "": there */
	struct strlist env;              /* NAME=VALUE */
	struct strlist pass_env;         /* names; the worker has the values, and must allow it */
	struct engine_run_limits limits; /* 0: the worker's own */
	int64_t deadline;                /* nanoseconds since 1970; 0: none */
	struct strlist labels;           /* sorted */
	char *experiment, *arm;          /* where the result belongs; may be NULL */
	char *nonce;                     /* 32 hex digits */
};

void ticket_done(struct ticket *t);

struct queue_need ticket_need(const struct ticket *t);

/* Of what somebody has only that which `asked` is about. */
struct queue_need need_part(const struct queue_need *of, const struct queue_need *asked);

/* "64 GiB of memory and 8 processors", or the one that is not 0; returns `to`. */
#define NEED_TEXT_MAX 80
char *need_text(const struct queue_need *need, char to[NEED_TEXT_MAX]);

/* Can it stand in a table: short, and without control characters? */
bool ticket_is_shown(const char *text);

/* Replaces `out`; -EINVAL with a sentence if it would not be read. */
NODISCARD int ticket_encode(const struct ticket *t, struct buf *out, struct err *err);
/* -EINVAL with a sentence; nothing of a refused one is handed out. */
NODISCARD int ticket_decode(const struct buf *text, struct ticket *ret, struct err *err);
char *ticket_id(const struct buf *text, char id[QUEUE_ID_SIZE]);

/* How it ended. */
#define RESULT_EXIT      "exit"      /* `code` is the command's own, or 128 + signal */
#define RESULT_TIME      "time"      /* its time was up: 124 */
#define RESULT_REFUSED   "refused"   /* by the worker; nothing ran */
#define RESULT_EXPIRED   "expired"   /* its deadline had passed; nothing ran */
#define RESULT_CANCELLED "cancelled" /* by whoever posted it */
#define RESULT_FAILED    "failed"    /* something of ours failed: `problem` says what */
#define RESULT_LOST      "lost"      /* every worker that took it died */

struct result {
	char *schema, *ticket, *outcome; /* owned */
	char *worker, *host;             /* owned; NULL: no worker had it */
	char *problem;                   /* owned; NULL: none */
	char *experiment, *arm;          /* owned; as the ticket has them */
	char *command;                   /* owned; its first word */
	uint64_t attempt, code, signal;
	char *snapshot;         /* owned; digest of a manifest; NULL: nothing changed */
	char *run, *profile;    /* owned; there; NULL: nothing ran */
	char *limit;            /* owned; that ended or cut it; NULL: none */
	int64_t started, ended; /* nanoseconds since 1970 */
	uint64_t duration_ms, cpu_ms, max_rss;
	uint64_t added, modified, deleted;
	uint64_t fetched, pushed, skipped; /* packed bytes; skipped: that the depot had */
	uint64_t out, err;                 /* bytes of output */
	char *signature; /* owned; of result_statement(), armoured; NULL: nobody signed it */
};

void result_done(struct result *r);
/* Does it say how the command ended?  No other result has an exit code of 0 or changes. */
bool result_is_claim(const struct result *r);
NODISCARD int result_encode(const struct result *r, struct buf *out, struct err *err);
NODISCARD int result_decode(const struct buf *text, struct result *ret, struct err *err);

/*
 * What a worker signs: all of the result but how often it was tried and how much was printed, which the process that
 * ran the command does not know.  Replaces `out`.
 */
NODISCARD int result_statement(const struct result *r, struct buf *out, struct err *err);
