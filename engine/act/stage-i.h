/*
 * stage-i.h - a clone made ready for a run, and what the run did to it.
 *
 * What is staged hangs on the connection of who asked: whichever way that ends, by kill -9 too, the
 * run's limit of growth ends with it, and a clone that was made for the run is removed.
 */
#pragma once

#include "engine/api/clone.h"
#include "engine/wire/control-i.h"

struct host;

#define STAGE_NAME     "run-" /* the name of a clone that is made for a run begins so, ... */
#define STAGE_RUN_SIZE 13     /* ... and ends with the run's id: 12 hex digits and a NUL */

struct stage_options {
	const char *run;   /* its id */
	const char *clone; /* NULL: make one, */
	const char *from;  /* of this snapshot; NULL: of the project now */
	bool keep;         /* the one that is made stays, under a name that people can say */
	bool wait;         /* the same, but only until stage_settle(), or the connection's end */
	bool remove;       /* the one that is named goes */
	bool no_snapshot;  /* of the one that is named */
	uint64_t disk;     /* bytes that it may grow by during the run; 0: no limit */
	uint64_t ttl_ms;   /* of the one that is made, should nobody be left to remove it */
	struct engine_watch watch;
};

struct stage {
	char *clone;                 /* owned, as are the others */
	char *path;                  /* where it is mounted */
	char *project;               /* its path */
	char before[ENGINE_ID_SIZE]; /* a snapshot of the clone as it is now; "": none */
};

void stage_done(struct stage *s);

/* What became of it. */
struct stage_end {
	bool compared; /* what follows is known */
	uint64_t added, modified, deleted;
	struct engine_paths changed;
	bool full;    /* it had no room for some of it */
	bool removed; /* there is no such clone any more */
};

void stage_end_done(struct stage_end *s);

/* --- the command's side (wire-stage.c): two questions over one connection ----------------- */

/* The first one, on its way. */
struct stage_asking {
	struct ask ask;
	bool sent;
};

void stage_asking_done(struct stage_asking *a);

/* Begin to ask: what can fail of it does so in stage_ask(). */
void stage_ask_ahead(struct engine *e, const struct stage_options *options, struct control *c,
		     struct stage_asking *a);

/* The answer; the options are those of stage_ask_ahead(). */
NODISCARD int stage_ask(struct engine *e, const struct stage_options *options,
			struct stage_asking *a, struct control *c, struct stage *ret,
			struct err *err);
NODISCARD int stage_ask_end(struct engine *e, struct control *c, struct stage_end *ret,
			    struct err *err);

/* What waits is kept, or removed; over the same connection. */
NODISCARD int stage_ask_settle(struct engine *e, struct control *c, bool keep, struct err *err);

/* The same of one whose cowfsd died: another one is asked that it stays. */
NODISCARD int stage_ask_stay(struct engine *e, const char *clone, struct err *err);

/* --- in cowfsd (stage.c) ------------------------------------------------------------------ */

NODISCARD int stage_begin(struct engine *e, const struct stage_options *options, struct stage *ret,
			  struct err *err);

/* Of what this connection staged last; -ENOENT if that is nothing. */
NODISCARD int stage_end(struct engine *e, struct stage_end *ret, struct err *err);

/* Of one that waits: it stays for good, or goes now.  -ENOENT if none does. */
NODISCARD int stage_settle(struct engine *e, bool keep, struct err *err);

/* A clone that had a time to live has none any more. */
NODISCARD int stage_stay(struct engine *e, const char *clone, struct err *err);

/* Remove the clones of runs of which nothing is left: their cowfsd died with them. */
void stage_sweep(struct host *h);
