/*
 * control-i.h - the messages between the command line and cowfsd: lines of JSON.
 *
 * docs/design/daemon.md has the protocol. Both ends are here, so that each word of it is spelled
 * once; requests and answers of a verb are in the wire-*.c file of its noun (wire-i.h).
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
#define CONTROL_DIR "run"
#define CONTROL_LOG "cowfsd.log"

/* In CONTROL_DIR. */
#define CONTROL_SOCKET "cowfsd.sock"
#define CONTROL_ALIVE  "cowfsd" /* locked while one lives; tells who, until it ends in order */
#define CONTROL_START  "start"  /* locked by the command that starts a cowfsd */

/* --- lines ------------------------------------------------------------------------------ */

struct control {
	int fd;         /* owned; -1: none */
	struct buf in;  /* what came and was not read yet */
	size_t at;      /* of that, what was */
	bool ungreeted; /* we asked before cowfsd has greeted us */
	int given;      /* owned: the descriptor that came last and nobody took; -1: none */
	int stop_fd;    /* when it can be read, control_read() ends with -EINTR; 0: none */
};

#define CONTROL_INIT ((struct control){ .fd = -1, .given = -1 })

void control_done(struct control *c);

/*
 * The next line as an object.  1, or 0 at the end.  -EMSGSIZE if it is above `max`,
 * -EPROTO if it is none.
 */
NODISCARD int control_read(struct control *c, size_t max, struct json_doc *doc, struct json *ret,
			   struct err *err);

/* -EAGAIN, and nothing sent, if the other end does not read and `may_wait` is not set. */
NODISCARD int control_write(int fd, const struct json_doc *doc, bool may_wait, struct err *err);

/* The same, and a descriptor with it, which is borrowed. */
NODISCARD int control_give(int fd, const struct json_doc *doc, int give, struct err *err);

/* --- words ------------------------------------------------------------------------------ */

/* How cowfsd greets. */
struct control_hello {
	uint64_t protocol;
	char version[32];
	int64_t pid;
	bool busy;        /* something is under way */
	uint64_t mounted; /* clones */
	/* From here on, what a daemon of another version may not say. */
	int64_t began;       /* nanoseconds since 1970: no other daemon of the store has the same */
	char warm_clone[16]; /* "none", "warming", "ready", "warm" */
	uint64_t warm_ready; /* how many can be taken whose names are known */
	uint64_t warm_taken; /* clones that were the warm one */
};

void control_set_hello(struct json j, const struct control_hello *hello);
int control_get_hello(struct json j, struct control_hello *ret, struct err *err);

void control_set_progress(struct json j, const struct engine_progress *p);

/* `doing` is borrowed from the document. */
struct engine_progress control_get_progress(struct json j);

/* A failure: the code by its name, and the sentence. */
void control_set_error(struct json j, int code, const struct err *err);
int control_get_error(struct json j, struct err *err);
