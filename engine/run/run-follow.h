/*
 * run-follow.h - what a symlink of a stored tree leads to, as a run would follow it.
 */
#pragma once

#include "base/buf.h"
#include "cowfs/store/root.h"

/* Never a symlink. */
struct run_followed {
	struct tree_entry entry; /* without its name; of a directory only form, number and tree */
};

/* A tree, and where its top is for the program that follows: what is absolute and not below that leads out of it. */
struct run_following {
	struct store *store;
	const struct root *root;
	const char *top;
};

/*
 * `path` counts from the top.  1 with *ret; 0: it leads to nothing, out of the tree, to its top, or in a circle.
 * `end` is then where it ended, from the top, without a symlink.
 */
NODISCARD int run_follow(const struct run_following *in, const char *path, struct buf *end,
			 struct run_followed *ret, struct err *err);
