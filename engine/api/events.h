/*
 * events.h - what happened in a store: one numbered line for each event, in order.
 *
 * Numbers begin at 1 and jump only after a damaged log, so a reader that remembers the last one can
 * continue from there. A store keeps the newest events, up to ENGINE_EVENTS_BYTES.
 */
#pragma once

#include "engine/api/engine.h"

#define ENGINE_EVENTS_BYTES ((uint64_t)8 << 20)

struct engine_event {
	uint64_t n;
	int64_t time;     /* nanoseconds since 1970 */
	const char *kind; /* "snapshot", "run-ended", ...: docs/reference/events.md */
	/* What it concerns; NULL: nothing of that kind. */
	const char *project, *clone, *run;
	const char *data; /* a JSON object */
};

struct engine_events_options {
	uint64_t since; /* the last one that the caller has seen; 0: none */
	uint64_t last;  /* begin with no more than so many of those that are there; 0: all */
	bool all;       /* of every project, else of the one here */
	bool calls;     /* not events, but the calls that agents made: of the kind `call` */
	bool follow;    /* and those to come, until `fn` or `stop_fd` ends it */
	int stop_fd;    /* when it can be read, following ends with -EINTR; -1: none */
};

/* The event is borrowed for the call.  A negative answer ends it and is returned. */
typedef int (*engine_event_fn)(const struct engine_event *e, void *ctx, struct err *err);

/*
 * Each event after `since`, in order.  *ret_lost (may be NULL) is set before the first call: how many
 * events after `since` the store no longer keeps.
 */
NODISCARD int engine_events(struct engine *e, const struct engine_events_options *options,
			    uint64_t *ret_lost, engine_event_fn fn, void *ctx, struct err *err);

/* The number of the last one; 0: there is none.  Opens no database, so a process that forks may ask. */
uint64_t engine_events_newest(const struct engine *e);

/* A call of an agent's that has ended. */
struct engine_call {
	const char *project, *clone, *run; /* NULL: none */
	const char *project_id;            /* NULL: not known */
	const char *data;                  /* a JSON object: docs/reference/events.md */
};

/* Write it down, in a log of the same kind and size; what cannot be written is said in the log of the process. */
void engine_record_call(const struct engine *e, const struct engine_call *call);

/*
 * The path of the registered project that holds the engine's directory, owned; NULL: there is none.
 * `id` (or NULL) is then its id.
 */
char *engine_project_here(struct engine *e, char id[ENGINE_ID_SIZE]);
