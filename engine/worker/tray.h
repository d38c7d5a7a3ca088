/*
 * tray.h - tickets that this machine runs without a queue: a directory with files named by the
 * ticket's id.
 *
 *   ID.lock       held (flock) by the process that runs it; names that process and the attempt
 *   ID.out, .err  the command's output in that attempt
 *   ID.result     its result; made once, and never replaced
 *
 * and in a tray that several machines share, besides:
 *
 *   ID.ticket     its text
 *   ID.host       the machine that runs it, or ran it last
 *   ID.log        errors before it could begin
 *
 * Callers that follow a ticket may come and go. Files go 8 days after the result was made (in a
 * queue it is 7), or after the last attempt began if there is none.
 */
#pragma once

#include <sys/types.h>

#include "engine/worker/ticket.h"

struct tray {
	int fd;    /* owned */
	char *dir; /* owned */
};

#define TRAY_INIT         \
	{                 \
		.fd = -1, \
	}

/* Beside a store; made if need be. */
NODISCARD int tray_open(const char *store, struct tray *ret, struct err *err);
/* A directory that several machines see; made if need be.  -EACCES if others can write to it. */
NODISCARD int tray_open_shared(const char *dir, struct tray *ret, struct err *err);
void tray_done(struct tray *t);

enum tray_file { TRAY_LOCK, TRAY_OUT, TRAY_ERR, TRAY_RESULT, TRAY_TICKET, TRAY_HOST, TRAY_LOG };

#define TRAY_NAME_SIZE (QUEUE_ID_SIZE + sizeof(".result"))

/* The name of a file in the directory. */
const char *tray_name(const char *id, enum tray_file file, char name[TRAY_NAME_SIZE]);

/* 1 and its text, or 0. */
NODISCARD int tray_result(const struct tray *t, const char *id, struct buf *ret, struct err *err);
/*
 * 1: it counts, and is stored; 0: there is a result already, and this one is dropped.  On a full disk the output goes
 * to make room for it.
 */
NODISCARD int tray_put_result(const struct tray *t, const char *id, const struct buf *text,
			      struct err *err);

/* A small file of the ticket, written at once; and its bytes in the empty `ret`: 1, or 0 if there is none. */
NODISCARD int tray_put(const struct tray *t, const char *id, enum tray_file file, const void *data,
		       size_t len, struct err *err);
NODISCARD int tray_get(const struct tray *t, const char *id, enum tray_file file, size_t max,
		       struct buf *ret, struct err *err);

/* The process that works on a ticket, or was the last to do so. */
struct tray_holder {
	pid_t pid; /* 0: it has not begun yet; TRAY_OVER: it must not begin again */
	uint64_t attempt;
};

#define TRAY_OVER (-1)

/* 0 attempts if nobody ever did. */
NODISCARD int tray_holder(const struct tray *t, const char *id, struct tray_holder *ret,
			  struct err *err);

/*
 * Become the one that does it: 1 with the next attempt written down, its output empty, and two descriptors
 * that hold it until every copy of them is closed.  0: somebody else has it, or it has a result.  With the pid
 * TRAY_OVER there is no next attempt: all that it lacks is a result.
 */
NODISCARD int tray_claim(const struct tray *t, const char *id, int ret_fds[2],
			 struct tray_holder *ret, struct err *err);
/* The process that has the descriptors now is this one. */
NODISCARD int tray_sign(const int fds[2], uint64_t attempt, struct err *err);
/* Its result cannot be stored, and it must not begin again.  Takes no room on the disk. */
NODISCARD int tray_sign_over(const int fds[2], uint64_t attempt, struct err *err);

/* A signal to whoever does it; -ESRCH: nobody. */
NODISCARD int tray_signal(const struct tray *t, const char *id, int sig);
/* Does somebody do it? */
bool tray_is_held(const struct tray *t, const char *id);

/* Remove what is old. */
void tray_sweep(const struct tray *t);
