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
 * All conflicts of a merge with their resolutions; 1 if one is unresolved.  Free the list whether it
 * succeeds or not.
 */
NODISCARD int conflicts_tell(const struct merge *m, const struct resolve_set *set,
			     const struct conflict_names *names, struct engine_conflict **ret,
			     size_t *ret_n, struct err *err);

/* Their texts, as far as there is room for them in an answer. */
NODISCARD int conflicts_show(struct store *s, const struct merge *m,
			     const struct merge_options *options, struct engine_conflict *list,
			     struct err *err);

/* Is the path `.git` or in it?  Then the first `ret_len` bytes of it are that folder. */
bool conflicts_is_git(const char *path, size_t *ret_len);
