/*
 * ask-i.h - requests from the command line to cowfsd, which starts if necessary.
 */
#pragma once

#include <poll.h>
#include <sys/types.h>

#include "engine/api/engine.h"
#include "engine/wire/control-i.h"
#include "engine/wire/wire-i.h"

enum ask_start {
	ASK_RUNNING, /* -ESRCH without a sentence if none runs */
	ASK_STORE,   /* start one if need be; -ENOENT if there is no store */
	ASK_CREATE,  /* the same, and make the store */
};

/* One question and its answer. */
struct ask {
	struct json_doc question, reply;
	struct json options; /* to be filled */
	const char *verb;
	int give; /* borrowed: a descriptor that goes with the question; -1: none */
};

/* The verb's options may be set in a->options. */
void ask_begin(struct ask *a, struct engine *e, const char *verb);
void ask_done(struct ask *a);

/*
 * Ask, pass progress on to `watch` (or NULL) and warnings to the log, and give the answer:
 * borrowed from `a`, to be read and then judged by ask_end().
 */
NODISCARD int ask_daemon(struct ask *a, struct engine *e, enum ask_start start,
			 const struct engine_watch *watch, struct json *ret, struct err *err);
/* The same, but the connection stays open.  What cowfsd keeps for us ends with it. */
NODISCARD int ask_keeping(struct ask *a, struct engine *e, enum ask_start start,
			  const struct engine_watch *watch, struct control *c, struct json *ret,
			  struct err *err);
/* Does no cowfsd run?  One that does is not asked anything: its answer may take long. */
bool ask_finds_none(struct engine *e);
/* Is there a lazy capture that has not ended, with cowfsd or without? */
bool ask_is_capturing(struct engine *e);

NODISCARD int ask_end(const struct ask *a, struct err *err);

/* Read the answer into the struct of that table, and judge it.  On failure the struct is empty. */
NODISCARD int ask_take(const struct ask *a, struct json answer, const struct fields *f, void *ret,
		       struct err *err);

/* Ask and read the answer into the struct of that table; NULL: it says no more than that it is done. */
NODISCARD int ask_for(struct ask *a, struct engine *e, enum ask_start start,
		      const struct engine_watch *watch, const struct fields *f, void *ret,
		      struct err *err);

/* ask_daemon() over a connection that was greeted.  -ESHUTDOWN if it is about to end. */
NODISCARD int ask_over(struct ask *a, struct engine *e, struct control *c,
		       const struct engine_watch *watch, struct json *ret, struct err *err);

/*
 * Send the question to a running daemon without waiting; ask_hear() gets the answer.  If this returns
 * false, or ask_hear() returns -ESHUTDOWN, nothing was begun: ask in one of the other ways, which
 * report why.
 */
bool ask_ahead(struct ask *a, struct engine *e, const struct engine_watch *watch,
	       struct control *c);
NODISCARD int ask_hear(struct ask *a, struct engine *e, struct control *c,
		       const struct engine_watch *watch, struct json *ret, struct err *err);

/* The same without waiting: -EAGAIN until the answer is there. */
NODISCARD int ask_peek(struct ask *a, struct engine *e, struct control *c, struct json *ret,
		       struct err *err);

/* One more question over a connection that ask_keeping() left open. */
NODISCARD int ask_again(struct ask *a, struct engine *e, struct control *c, struct json *ret,
			struct err *err);

/* The same, and a descriptor with it, which is borrowed. */
NODISCARD int ask_giving(struct ask *a, struct engine *e, struct control *c, int give,
			 struct json *ret, struct err *err);

/* Connect to one of our version, starting it if need be. */
NODISCARD int ask_connect(struct engine *e, enum ask_start start, struct control *c,
			  struct control_hello *ret, bool *ret_started, struct err *err);

/* Connect and be greeted, whatever version answers.  -ESRCH if none runs. */
NODISCARD int ask_greet(struct engine *e, struct control *c, struct control_hello *ret,
			struct err *err);

/* Become the daemon; -EBUSY if one runs.  Returns only if it cannot. */
NODISCARD int ask_become(struct engine *e, struct err *err);

/* Wait until the one that was asked to stop is gone. */
NODISCARD int ask_wait_gone(struct engine *e, struct err *err);

/* --- starting (launch.c) ---------------------------------------------------------------- */

/*
 * Start cowfsd and wait until it is ready.  Logs what it reports about its predecessor.  `lock_fd`
 * holds the lock of CONTROL_START, which cowfsd shares until it is ready, so that nobody else starts
 * one even if the caller dies.  The caller has one thread.
 */
NODISCARD int launch_daemon(const char *store, bool create, int lock_fd, struct err *err);

/* Did cowfsd die with clones mounted that no other cowfsd has mounted again? */
bool launch_is_lost(const char *store);

/*
 * Ask systemd to move this process and `child` into a scope of their own, out of the group of the
 * command that started them, so that they do not end with a CI job or a terminal.  None of these
 * functions waits.  NULL if systemd cannot be asked: then they stay.
 */
struct leaving;
struct leaving *leaving_begin(pid_t child);
struct pollfd leaving_awaits(const struct leaving *l, int *ret_ms);
/* 0 when both have moved, 1 while that is not known, an error if they stay. */
NODISCARD int leaving_check(struct leaving *l, struct err *why);
void leaving_free(struct leaving *l); /* NULL is fine */

/*
 * Become cowfsd, whose log is then this process's stderr.  Returns only if it cannot.  `listen_fd` is
 * its control socket, or -1 if it is to make one.
 */
NODISCARD int launch_here(const char *store, int lock_fd, int listen_fd, struct err *err);
