/*
 * difference-i.h - private to the core: where two roots differ, directory by directory.
 */
#pragma once

#include "cowfs/store/root.h"
#include "cowfs/store/store.h"

/* A name that came, went, or is another file now. */
struct different_name {
	char *name;       /* owned */
	uint32_t was, is; /* modes; 0: there is no such name */
};

/* A directory that is in both and not the same in both; or the links tree. */
struct different_dir {
	size_t in;  /* the directory it is in; its own number for the first two */
	char *name; /* owned; NULL for the first two */
	struct object_id from;
	struct tree_entry to;         /* what it becomes; strings are not kept */
	struct different_name *names; /* owned */
	size_t n, cap;
};

#define DIFFERENCE_TOP   0
#define DIFFERENCE_LINKS 1

struct difference {
	struct root from, to;
	int64_t grown;              /* bytes of data that `to` has more */
	int64_t meta, inodes;       /* the same of what charge.c counts */
	struct different_dir *dirs; /* each behind the one it is in */
	size_t n, cap;
};

void difference_done(struct difference *d);
NODISCARD int difference_find(struct store *s, const struct object_id *from,
			      const struct object_id *to, struct difference *ret, struct err *err);
