/*
 * service.h - cowfsd, for users who control it by hand.
 *
 * Nobody has to: a verb that needs it starts it, and it ends by itself.
 */
#pragma once

#include "engine/api/engine.h"

struct engine_service {
	char version[32];
	int64_t pid;
	int64_t began;       /* nanoseconds since 1970: no other of the store has the same */
	bool busy;           /* something is under way */
	uint64_t mounted;    /* clones */
	char warm_clone[16]; /* for the next `clone`: "none", "warming", "ready", "warm" */
	uint64_t warm_ready; /* of how many the names are known */
	uint64_t warm_taken;
};

/* Which one runs; -ESRCH if none does. */
NODISCARD int engine_service(struct engine *e, struct engine_service *ret, struct err *err);

/* *ret_started: it was not running before.  A store is made if there is none. */
NODISCARD int engine_start(struct engine *e, struct engine_service *ret, bool *ret_started,
			   struct err *err);

/*
 * Bring back the mounts of a daemon that died, if there are any and nothing else has.  For commands
 * that do without a daemon; what goes wrong is a warning.
 */
void engine_revive(struct engine *e);

/* Be the daemon, in this process.  Returns only if that cannot be: -EBUSY if one runs. */
NODISCARD int engine_serve(struct engine *e, struct err *err);

/*
 * Unmount every clone, persist all, and be gone when this returns; the next start mounts
 * them again.  -EBUSY, and nothing changed, if a clone is in use or something is under way and
 * `force` is not set.  -ESRCH if none runs.
 */
NODISCARD int engine_stop(struct engine *e, bool force, struct engine_service *ret,
			  struct err *err);
