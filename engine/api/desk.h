/*
 * desk.h - where users other than the store's owner approve and reject changes.
 *
 * Only its owner can open a store. While the owner's process keeps a desk, a socket outside of the
 * store takes decisions from every user on the machine. The kernel reports the user and groups of a
 * caller; a caller in its own user namespace, as in every sandbox, is refused. A caller can do four
 * things: list the changes that wait for them, look at one of those, approve it, or reject it at
 * the stage that they saw. They learn nothing about other changes.
 */
#pragma once

#include <poll.h>

#include "engine/api/pipeline.h"

struct engine_desk;

/*
 * Keep the desk of the store.  `dir` is the directory for the socket, made if it is not there; NULL: one
 * in /tmp.  -EBUSY if another process keeps it; -EACCES if the directory is not only ours to write.
 */
NODISCARD int engine_desk_open(struct engine *e, const char *dir, struct engine_desk **ret,
			       struct err *err);
const char *engine_desk_address(const struct engine_desk *d);

/* Removes the socket. */
void engine_desk_close(struct engine_desk *d);
void engine_desk_close_p(struct engine_desk **d);

/* What to wait for: at most ENGINE_DESK_FDS, how many there are. */
#define ENGINE_DESK_FDS 17
size_t engine_desk_fds(const struct engine_desk *d, struct pollfd fds[ENGINE_DESK_FDS]);

/* Do what can be done now, without waiting.  How many decisions were made. */
int engine_desk_serve(struct engine_desk *d);

/* When engine_desk_serve() must be called again, whatever comes: in milliseconds; -1: never. */
int engine_desk_timeout(const struct engine_desk *d);

/* The address of the desk that is kept for this store now, owned; NULL: none is. */
char *engine_desk_find(struct engine *e);

/* --- the other end: needs no store --------------------------------------------------------- */

/* Those that wait for this user, 100 at most. */
NODISCARD int engine_desk_list(const char *address, struct engine_changes *ret, struct err *err);

/* One of them; its patch is appended to `patch`, unless that is NULL: 1 if it was cut short. */
NODISCARD int engine_desk_look(const char *address, const char *id, struct engine_change *ret,
			       struct buf *patch, struct err *err);

/* -ECANCELED as engine_approve(), and if the patch is longer than is shown and `d` has no digest. */
NODISCARD int engine_desk_decide(const char *address, const char *id,
				 const struct engine_decision *d, struct engine_change *ret,
				 struct err *err);
