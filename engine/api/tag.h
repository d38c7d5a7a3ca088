/*
 * tag.h - names that a project gives to its snapshots.
 *
 * A snapshot with a tag stays until the tag is gone.  A tag is a project's own: another
 * project may have the same.
 */
#pragma once

#include <stddef.h>

#include "engine/api/engine.h"

struct engine_tag {
	char *name; /* owned */
	char snapshot[ENGINE_ID_SIZE];
};

struct engine_tags {
	char *project; /* owned; its path */
	struct engine_tag *list;
	size_t n;
};

void engine_tags_done(struct engine_tags *t);

/* All of the project that holds the engine's directory, by name. */
NODISCARD int engine_tags(struct engine *e, struct engine_tags *ret, struct err *err);

/*
 * Give the snapshot that `state` means a name, or take one away; *ret holds that one.  Once it
 * returns 0 that survives power loss.  -EEXIST if the name is taken, -ENOENT if there is no such
 * snapshot or tag.
 */
NODISCARD int engine_tag_add(struct engine *e, const char *name, const char *state,
			     struct engine_tags *ret, struct err *err);
NODISCARD int engine_tag_delete(struct engine *e, const char *name, struct engine_tags *ret,
				struct err *err);
