/*
 * control-i.h - what the command line and cowfsd say to each other: lines of JSON.
 *
 * docs/daemon.md has the protocol.  Both ends are here, so that a word of it is spelled
 * once; what a verb asks and answers is in the wire-*.c file of its noun.
 */
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "engine/api/engine.h"

#define CONTROL_PROTOCOL 1

#define CONTROL_ASK_MAX    ((size_t)1 << 20)  /* bytes of a question */
#define CONTROL_ANSWER_MAX ((size_t)64 << 20) /* and of an answer */

/* In the store's directory. */
#define CONTROL_DIR    "run"
#define CONTROL_LOG    "cowfsd.log"
#define CONTROL_CLONES "clones" /* where clones are mounted, each in a directory of its name */

/* In CONTROL_DIR. */
#define CONTROL_SOCKET "cowfsd.sock"
#define CONTROL_ALIVE  "cowfsd" /* locked while one lives; tells who, until it ends in order */
#define CONTROL_START  "start"  /* locked by who is about to start one */

/* --- lines ------------------------------------------------------------------------------ */

struct control {
	int fd;         /* owned; -1: none */
	struct buf in;  /* what came and was not read yet */
	size_t at;      /* of that, what was */
	bool ungreeted; /* we asked before cowfsd has greeted us */
};

#define CONTROL_INIT ((struct control){ .fd = -1 })

void control_done(struct control *c);

/*
 * The next line as an object.  1, or 0 at the end.  -EMSGSIZE if it is above `max`,
 * -EPROTO if it is none.
 */
NODISCARD int control_read(struct control *c, size_t max, struct json_doc *doc, struct json *ret,
			   struct err *err);

/* -EAGAIN, and nothing sent, if the other end does not read and `may_wait` is not set. */
NODISCARD int control_write(int fd, const struct json_doc *doc, bool may_wait, struct err *err);

/* --- words ------------------------------------------------------------------------------ */

/* How cowfsd greets. */
struct control_hello {
	uint64_t protocol;
	char version[32];
	int64_t pid;
	bool busy;        /* something is under way */
	uint64_t mounted; /* clones */
	/* From here on, what a daemon of another version may not say. */
	char spare[16];        /* "none", "warming", "ready", "warm" */
	uint64_t spares_taken; /* clones that were the spare one */
};

void control_set_hello(struct json j, const struct control_hello *hello);
int control_get_hello(struct json j, struct control_hello *ret, struct err *err);

void control_set_progress(struct json j, const struct engine_progress *p);

/* `doing` is borrowed from the document. */
struct engine_progress control_get_progress(struct json j);

/* A failure: the code by its name, and the sentence. */
void control_set_error(struct json j, int code, const struct err *err);
int control_get_error(struct json j, struct err *err);

/* --- asking (ask.c) --------------------------------------------------------------------- */

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
/* The same, and the connection stays open: with it goes what cowfsd keeps for us (keep-i.h). */
NODISCARD int ask_keeping(struct ask *a, struct engine *e, enum ask_start start,
			  const struct engine_watch *watch, struct control *c, struct json *ret,
			  struct err *err);
NODISCARD int ask_end(const struct ask *a, struct err *err);

/* The same over a connection that was greeted.  -ESHUTDOWN if it is about to end. */
NODISCARD int ask_over(struct ask *a, struct engine *e, struct control *c,
		       const struct engine_watch *watch, struct json *ret, struct err *err);

/*
 * Ask a daemon that runs, without waiting for its greeting or its answer, for ask_hear() to give
 * that.  False, or -ESHUTDOWN of ask_hear(): nothing was begun, and it has to be asked in one of the
 * other ways, which tell why.
 */
bool ask_ahead(struct ask *a, struct engine *e, const struct engine_watch *watch,
	       struct control *c);
NODISCARD int ask_hear(struct ask *a, struct engine *e, struct control *c,
		       const struct engine_watch *watch, struct json *ret, struct err *err);

/* One more question over a connection that ask_keeping() left open. */
NODISCARD int ask_again(struct ask *a, struct engine *e, struct control *c, struct json *ret,
			struct err *err);

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
 * Start cowfsd and wait until it is ready.  Says what it has to say of the one before it.
 * `lock_fd` holds the lock of CONTROL_START, which cowfsd shares until it is ready: should the
 * caller die meanwhile, nobody else starts one.  The caller has one thread.
 */
NODISCARD int launch_daemon(const char *store, bool create, int lock_fd, struct err *err);

/* Become cowfsd, whose log is then this process's stderr.  Returns only if it cannot. */
NODISCARD int launch_here(const char *store, int lock_fd, struct err *err);
