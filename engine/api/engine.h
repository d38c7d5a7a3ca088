/*
 * engine.h - a store, the projects in it, and where a command was given.
 *
 * The verbs of the product are in the headers beside this one: history.h takes and lists snapshots,
 * show.h looks into them, clone.h makes and mounts clones, upkeep.h keeps the store in order,
 * service.h controls the daemon. They take and fill plain structs and print nothing; cli and mcp
 * are two interfaces to them.
 *
 * One process owns a store: cowfsd (daemon.h). A verb that writes, or that needs the live clones,
 * asks cowfsd over its socket and starts it if necessary, so call it from a process with one
 * thread. A verb that only reads stored states reads the store itself.
 *
 * Error codes, besides those of docs/dev/style.md: -ENXIO there is no project here, -EDESTADDRREQ
 * no clone is named and none is here, -ECANCELED refused by a rule of ours with nothing changed,
 * -EPROTO a later version made the store, -EPROTONOSUPPORT a cowfsd of another version is at work,
 * -ECONNRESET it died while it worked on the verb.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"

const char *engine_version(void); /* of this program */

#define ENGINE_ID_SIZE 17 /* 16 hex digits and a NUL: a project or a snapshot; "" is none */

struct engine;

struct engine_options {
	const char *dir; /* where the command is given; NULL: where the process is */
	const char
	    *store; /* NULL: $SNAPCOW_STORE, $XDG_DATA_HOME/snapcow or ~/.local/share/snapcow */
};

/* Opens no store yet: each verb takes it for no more than it needs. */
NODISCARD int engine_open(const struct engine_options *options, struct engine **ret,
			  struct err *err);
void engine_close(struct engine *e); /* NULL is fine */
DEFINE_CLEANUP(struct engine *, engine_close)

const char *engine_store_path(const struct engine *e); /* absolute and clean */

/* How far a long act is; what is not known is 0. */
struct engine_progress {
	const char *doing; /* "reading", "checking" */
	uint64_t files, bytes;
	uint64_t done, total; /* in a unit of the act's own */
};

typedef void (*engine_progress_fn)(const struct engine_progress *p, void *ctx);

/* Strings that somebody else owns. */
struct engine_list {
	const char *const *items;
	size_t n;
};

/* Where an act reports to; an empty one is fine. */
struct engine_watch {
	engine_progress_fn fn;
	void *ctx;
};
