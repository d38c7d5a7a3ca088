/*
 * merge-place-i.h - files on their way to their places in the merged tree.
 */
#pragma once

#include "snapshot/merge/merge-i.h"

struct place {
	char *path; /* owned */
	struct version v[VERSIONS];
	struct tree_entry e; /* its target is owned */
	struct draft_group *group;
};

struct places {
	struct place *list; /* owned */
	size_t n, cap;
};

void places_done(struct places *p);

/* `v` borrows until places_fill() has returned. */
NODISCARD int places_add(struct places *p, const char *path, const struct version v[VERSIONS],
			 const struct tree_entry *e, struct draft_group *group, struct err *err);

/* Put each file in its place, or record why not: then ours stays where it is. */
NODISCARD int places_fill(struct merging *m, const struct places *p, struct err *err);

/* A directory that a side made, at that path, which may be another than its own. */
NODISCARD int place_dir(struct merging *m, const char *path, const struct altered *made,
			struct err *err);
