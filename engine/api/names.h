/*
 * names.h - names that complete a command line here.
 *
 * They come from the stored state, so that completion is quick: no daemon is asked or started.
 */
#pragma once

#include "engine/api/engine.h"

enum engine_names {
	ENGINE_NAMES_CLONES,     /* of the project, or of the whole store where there is none */
	ENGINE_NAMES_STATES,     /* the same, and tags and snapshots of the project, newest first */
	ENGINE_NAMES_PROMOTIONS, /* what can be undone in the project, newest first */
};

/* `about` is for a person to tell them apart; both are borrowed for the call. */
typedef void (*engine_name_fn)(const char *name, const char *about, void *ctx);

/* The states of clone `of` come first; NULL, or no clone of the project: no clone's do. */
NODISCARD int engine_names(struct engine *e, enum engine_names what, const char *of,
			   engine_name_fn fn, void *ctx, struct err *err);
