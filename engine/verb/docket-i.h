/*
 * docket-i.h - long tasks of commands, each with a state in the store that outlives the process.
 *
 * Each has a directory of its own below the kind's, with its state in one file, replaced as a
 * whole. A lock says that a process works on it; it goes with the process, however that ends.
 */
#pragma once

#include "base/fields.h"
#include "engine/find/engine-i.h"

struct docket_kind {
	const char *dir;  /* in the store's directory */
	const char *noun; /* as people call one */
	uint64_t version; /* of its state */
	const struct fields *fields;
	void (*upgrade)(
	    struct json j); /* add what states of the version before lack; NULL: nothing */
	bool audited;       /* its states go into the log of records (engine/api/audit.h) */
};

extern const struct fields docket_checked; /* struct engine_checked, in the states of several */

#define DOCKET_STATE "state.json" /* in the directory of each */

/* One that this process works on: its directory, locked. */
struct docket_lock {
	int dir, fd;
	const char *store; /* borrowed from the engine */
};

#define DOCKET_LOCK_INIT ((struct docket_lock){ .dir = -1, .fd = -1 })

void docket_lock_done(struct docket_lock *l);

/* Lock an open file until it is closed: -EAGAIN or -EACCES if it is.  Looking takes no lock. */
NODISCARD int docket_try_lock(int fd);
bool docket_is_locked(int fd);

/* Where one is, or (NULL) all of them; owned. */
char *docket_path(struct engine *e, const struct docket_kind *kind, const char *name);

/* Its directory, which the process that works on it holds open, too.  -ENOENT. */
NODISCARD int docket_open(struct engine *e, const struct docket_kind *kind, const char *name,
			  int *ret, struct err *err);

/* Wait until no other process makes one of this kind; docket_lock_done() lets others go on. */
NODISCARD int docket_take_kind(struct engine *e, const struct docket_kind *kind,
			       struct docket_lock *ret, struct err *err);

/* Make the directory for a new one.  -EEXIST if there is one of that name. */
NODISCARD int docket_create(struct engine *e, const struct docket_kind *kind, const char *name,
			    struct docket_lock *ret, struct err *err);

/* Take one that is there.  -ENOENT, or -EBUSY if another process works on it. */
NODISCARD int docket_take(struct engine *e, const struct docket_kind *kind, const char *name,
			  struct docket_lock *ret, struct err *err);

/* Write the state; it survives power loss once this returns 0. */
NODISCARD int docket_save(const struct docket_lock *l, const struct docket_kind *kind,
			  const char *name, const void *state, struct err *err);

/* Read the state of one that was taken, or (l NULL) of any; *ret_alive, unless NULL: a process works on it. */
NODISCARD int docket_read(struct engine *e, const struct docket_kind *kind, const char *name,
			  const struct docket_lock *l, void *ret, bool *ret_alive, struct err *err);

/* Remove the state with its directory. */
NODISCARD int docket_forget(struct engine *e, const struct docket_kind *kind, const char *name,
			    struct docket_lock *l, struct err *err);

/* The name of each, in no order.  A non-zero answer of `fn` ends the walk and is returned. */
NODISCARD int docket_each(struct engine *e, const struct docket_kind *kind,
			  int (*fn)(const char *name, void *ctx, struct err *err), void *ctx,
			  struct err *err);
