/*
 * resolve.h - conflicts of a clone with its project, settled path by path.
 *
 * A resolution is kept with the clone, and `promote` and `rebase` use it. It holds for the three
 * versions that were in conflict: once one of them has changed it is stale, reported as such and
 * not used.
 */
#pragma once

#include "engine/api/promote.h"

struct engine_resolve_options {
	const char *clone;     /* NULL: the one that holds the engine's directory */
	const char *path;      /* as a conflict tells it */
	enum engine_take take; /* ENGINE_TAKE_NONE: what was decided for the path is taken back */
	const char *file;      /* of ENGINE_TAKE_FILE: where its bytes are read */
	const char *versions;  /* as the conflict tells them that was looked at */
};

/*
 * What conflicts now, as a promotion would meet it: a dry run with the options of the one that met
 * conflicts last, if there was one.
 */
NODISCARD int engine_conflicts(struct engine *e, const struct engine_promote_options *options,
			       struct engine_promotion *ret, struct err *err);

/* -ENOENT if there is nothing to take back. */
NODISCARD int engine_resolve(struct engine *e, const struct engine_resolve_options *options,
			     struct err *err);
