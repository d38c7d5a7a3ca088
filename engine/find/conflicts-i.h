/*
 * conflicts-i.h - how promotion, undo and rebase report conflicts.
 */
#pragma once

#include "engine/api/promote.h"
#include "engine/find/resolve-set-i.h"

/* How the three states are named, so that STATE:PATH can be shown. */
struct conflict_names {
	const char *base, *ours, *theirs;
};

/*
 * All of a merge, with what was decided for them; 1 if one of them is not settled.  To be freed
 * whether it succeeds or not.
 */
NODISCARD int conflicts_tell(const struct merge *m, const struct resolve_set *set,
			     const struct conflict_names *names, struct engine_conflict **ret,
			     size_t *ret_n, struct err *err);

/* Their texts, as far as there is room for them in an answer. */
NODISCARD int conflicts_show(struct store *s, const struct merge *m,
			     const struct merge_options *options, struct engine_conflict *list,
			     struct err *err);

/* Is it git's own, or in it?  Then `ret_len` bytes of the path are git's folder. */
bool conflicts_is_git(const char *path, size_t *ret_len);
