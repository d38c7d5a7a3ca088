/*
 * moved-i.h - projects whose directory is at another path now.
 *
 * A renamed directory keeps its inode number and the time at which it was made, and no two
 * directories of a file system ever share both. A copy has neither. But the copy of a whole file
 * system has both, so the identity of the file system counts too.
 */
#pragma once

#include "engine/find/engine-i.h"

/* Note in `p` what its directory is known by; zero where the file system does not tell. */
void moved_identify(struct project *p);

/*
 * Does a record of a run or an event belong to the project?  It names the project's id, or, if an
 * earlier version wrote it (`id` is NULL or empty), only the path that the project had then: was it at
 * that path at that time (nanoseconds since 1970)?
 */
bool moved_is_of(const struct project *p, const char *id, const char *path, int64_t when);

/* `p` gets another path now: *ret, owned by the caller, is its list of former paths with the present one. */
NODISCARD int moved_add_former(const struct project *p, int64_t now, char **ret, struct err *err);

struct moved {
	struct catalog_id id;
	char *from, *to;
	bool certain; /* else only a part of what it is known by agrees; the old path is gone */
};

void moved_done(struct moved *m);

/*
 * The registered project that has become `dir` or a directory above it, of several the innermost; 1 if
 * there is one.
 * `to_be` (or NULL) is the directory that would be a new project.
 */
NODISCARD int moved_find(struct store *s, const char *dir, const char *to_be, struct moved *ret,
			 struct err *err);
