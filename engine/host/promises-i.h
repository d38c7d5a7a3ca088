/*
 * promises-i.h - captures that promised bytes, and how cowfsd keeps the promises.
 *
 * A lazy capture (docs/design/lazy.md) leaves files unread: the snapshot and the clones made of it
 * name promises. Each is kept when somebody needs the bytes, or by a thread in the background. When
 * none is open any more, the snapshot and the clones are settled, as if everything had been read at
 * once. A file that the project changed before it was read is lost, and named.
 *
 * Every act that could meet a promise waits until those of its projects are settled
 * (promises_enter()), except look-ups, reads and writes in clones.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "cowfs/store/catalog.h"
#include "cowfs/store/content.h"
#include "engine/api/clone.h"

struct host;
struct task;
struct lease_trial;
struct promises;
struct signatures;
struct engine_supply_options;
struct engine_supply;

NODISCARD int promises_new(struct host *h, struct promises **ret, struct err *err);
/* -EBUSY, and what would be missing, if files that are not read yet might be lost if cowfsd ended now. */
NODISCARD int promises_may_end(struct promises *p, struct err *err);
void promises_end(struct promises *p);  /* no thread is left; what is needed is still kept */
void promises_free(struct promises *p); /* NULL is fine */

/* How many descriptors the process should have, so that as many files can be held as ever are. */
uint64_t promises_descriptors(void);

/* Go on with what the cowfsd before this one left. */
NODISCARD int promises_recover(struct promises *p, struct err *err);

/* --- a new capture ------------------------------------------------------------------------ */

/* Are few enough captures under way to begin another one? */
bool promises_have_room(struct promises *p);
/* Wait until it is so.  The caller holds no turn. */
NODISCARD int promises_await_room(struct promises *p, const struct task *task,
				  const struct engine_watch *watch, struct err *err);

/* A capture that is at its walk, and what it will be known by; its caller's, until it has begun. */
struct promises_walk {
	struct catalog_id project;  /* zero: not known yet */
	const char *path;           /* the project's directory, or NULL: nobody works there */
	struct promises_walk *next; /* ours */
};

/*
 * May one promise bytes now?  Not while somebody relies on there being no promises.  If so, one of the
 * two that follow must be called.
 */
bool promises_may_begin(struct promises *p, struct promises_walk *w);

/* For tests: wait as long as they hold whoever comes here, by the file that this environment variable names. */
void promises_linger(const char *variable);

/* An empty record in the batch of the capture's snapshot. */
NODISCARD int promises_put(struct batch *b, struct lazy *record, struct err *err);

/* The same for a lazy fetch: what its promises stand for, and where that is (promising-i.h). */
NODISCARD int promises_put_remote(struct batch *b, struct lazy *record, const struct buf *promised,
				  const struct buf *source, struct err *err);

/* capture_options.lease and hold; `ctx` is a struct promises, and the capture may promise bytes. */
NODISCARD int promises_lease(void *ctx, int fd, struct lease_trial *ret);
NODISCARD bool promises_hold(void *ctx, const struct object_id *promise, int fd, uint64_t size,
			     const struct lease_trial *t);

/*
 * The batch was committed.  Takes the signatures, for the next capture; NULL: there are none.  `held`: whatever was
 * promised is.
 */
void promises_begin(struct promises *p, struct promises_walk *w, const struct lazy *record,
		    struct signatures *signatures, bool held);
void promises_give_up(struct promises *p, struct promises_walk *w);

/*
 * Nobody needs the capture of a snapshot any more.  From promises_halt() on nothing of it is stored, so that
 * its record can be removed, and the snapshot.  If they are gone, promises_resume() drops it: nothing more
 * is read, and its files are held no more.  Else it goes on.
 */
void promises_halt(struct promises *p, const struct catalog_id *snapshot);
void promises_resume(struct promises *p, const struct catalog_id *snapshot, bool gone);

/* --- what others need --------------------------------------------------------------------- */

/* layers_source.keep; `ctx` is a struct promises. */
NODISCARD int promises_keep(const struct object_id *promise, struct content *ret, void *ctx,
			    struct err *err);

/* layers_source.peek; the same. */
NODISCARD ssize_t promises_peek(const struct object_id *promise, uint64_t off, void *data,
				size_t len, void *ctx);

/* layers_source.hurry; the same. */
NODISCARD int promises_hurry(const struct object_id *promise, void *ctx);

/* For the process that brings what a lazy fetch promised. */
NODISCARD int promises_supply(struct promises *p, const struct engine_supply_options *o,
			      struct engine_supply *ret, struct err *err);

/* What a lazy fetch should have brought when somebody needed it, by path, and why nothing comes; owned. */
NODISCARD int promises_unread(struct promises *p, const struct catalog_id *snapshot,
			      struct engine_paths *ret, char **ret_why, struct err *err);

#define PROMISES_PROJECTS_MAX 16

/* Whose captures somebody waits for. */
struct promises_scope {
	struct catalog_id projects[PROMISES_PROJECTS_MAX];
	size_t n;
	bool all;   /* of every project */
	bool walks; /* and every walk: what it finds may be what is meant */
	/* And walks of a directory around this one that is no shorter: it may become the project here. */
	const char *here; /* borrowed, or NULL */
	size_t around; /* how long the directory of the project is that is here now; 0: none is */
	bool despite;  /* but for one that cannot go on: for what removes things */
	bool beside;   /* but for one that lends what it has seen (promises_lend()) */
};

/*
 * Wait until nothing is promised there that could be kept, and let no capture promise anything until
 * promises_leave().  The caller holds no turn.  Fails if the caller leaves, or if a capture cannot go on.
 */
NODISCARD int promises_enter(struct promises *p, const struct task *task,
			     const struct promises_scope *scope, const struct engine_watch *watch,
			     struct err *err);
void promises_leave(struct promises *p);

/* One who makes or compares clones of a project; its caller's. */
struct promises_stay {
	struct catalog_id project;
	struct promises_stay *next; /* ours */
};

/*
 * While somebody makes clones of a snapshot that he has read, no capture of its project ends: the clones would
 * name its promises.  The caller reads the snapshot's record after promises_stay(), and does not call
 * promises_enter() before promises_go().  It holds no turn: a capture that ends has whoever comes wait for those who
 * stay, and they may need any.
 */
void promises_stay(struct promises *p, struct promises_stay *s);
void promises_go(struct promises *p, struct promises_stay *s); /* nothing if it does not stay */

/*
 * What the walk of the capture of this project that is under way has seen, with its promises, for another walk; NULL:
 * there is none of which all files were held.  The capture does not end before promises_return(), which takes the
 * snapshot that came of it, or NULL.  False: it is about to end, and lends nothing any more.
 */
NODISCARD bool promises_lend(struct promises *p, const struct catalog_id *project,
			     const struct signatures **ret);
void promises_return(struct promises *p, const struct signatures *lent,
		     const struct catalog_id *heir);
/* Wait until it has.  The caller holds no turn. */
NODISCARD int promises_await_closing(struct promises *p, const struct task *task,
				     const struct catalog_id *project,
				     const struct engine_watch *watch, struct err *err);

/*
 * A capture that is about to end settles clones, and then what they started from.  Whoever compares the two without
 * need lets it end first, for a second at most: meanwhile all their trees differ, and to compare them takes long.
 * NULL: of any project.
 */
void promises_let_end(struct promises *p, const struct catalog_id *project);

uint64_t promises_left(struct promises *p); /* bytes of the projects that are still to be read */

/* Is a capture of this project, or (NULL) of any, under way? */
bool promises_open(struct promises *p, const struct catalog_id *project);

/* How far the capture is that a snapshot comes from; all zero if all of it was kept long ago. */
void promises_news(struct promises *p, const struct catalog_id *snapshot,
		   struct engine_capturing *ret);

/* The same of the capture of a project that is under way; all zero if none is. */
void promises_project_news(struct promises *p, const struct catalog_id *project,
			   struct engine_capturing *ret);

/* What was lost of it, by path. */
NODISCARD int promises_lost(struct promises *p, const struct catalog_id *snapshot,
			    struct engine_paths *ret, struct err *err);
