/*
 * part-i.h - states that hold only one directory of a project (snapshot.part).
 *
 * Such a state says nothing about the rest of the project, so a comparison with a whole state
 * leaves the rest out.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "cowfs/store/object.h"
#include "cowfs/store/store.h"
#include "engine/find/engine-i.h"
#include "snapshot/diff/changes.h"

/*
 * The path from the top of a project to a directory that was named as seen from the engine's; owned
 * by the caller.  -EINVAL if that is the top itself or lies outside.
 */
NODISCARD int part_resolve(const struct engine *e, const char *project, const char *named,
			   char **ret, struct err *err);

/* Was it there, in a project of which so many directories were captured?  -ENOENT; with NULL it was. */
NODISCARD int part_check(const char *part, uint64_t dirs, const char *project, struct err *err);

/* Is it the part, in it or above it?  With NULL everything is. */
bool part_has(const char *part, const char *path);

/* Is it the part or in it?  With NULL everything is. */
bool part_covers(const char *part, const char *path);

/* Are they the same directory, or both NULL? */
bool part_same(const char *a, const char *b);

/* What such a clone or state holds alone, owned by the caller; NULL: all of its project. */
NODISCARD int part_of_clone(struct store *s, const struct clone *c, char **ret, struct err *err);
NODISCARD int part_of_state(struct store *s, const struct state *state, char **ret,
			    struct err *err);

/* 1 if the tree of this root has something at that path. */
NODISCARD int part_is_in(struct store *s, const struct object_id *root, const char *path,
			 struct err *err);

/* changes_count() of what the part has. */
NODISCARD int part_count_changes(struct store *s, const char *part, const struct object_id *from,
				 const struct object_id *to, struct changes *ret, struct err *err);
