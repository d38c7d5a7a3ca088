/*
 * replaced-i.h - private to the core: the names that a rollback replaces, to notify programs that
 * watch them.
 *
 * No function here fails: a name is left out if there is no memory for it.
 */
#pragma once

#include "cowfs/core/layer-i.h"

/* The path of a directory from the top, "" for that itself; NULL if it has none.  Owned. */
char *replaced_dir(const struct layer *l, const struct node *dir);

/* A name in such a directory; `before` is what it led to, or NULL. */
struct replaced_name {
	const struct node *dir;
	const char *dir_path; /* NULL: it has none, and the name is left out */
	const char *name;
	const struct node *before;
	uint32_t was, is;
};
void replaced_add(struct layer_changes *c, const struct replaced_name *n);

/* Directories that are emptied, last in first out, each with the path that it had. */
struct replaced_dirs {
	struct {
		const struct node *dir;
		char *path; /* owned */
	} * list;
	size_t n, cap;
};
void replaced_push(struct replaced_dirs *d, const struct node *dir, const char *in,
		   const char *name);
char *replaced_pop(struct replaced_dirs *d, const struct node *dir); /* owned; NULL: not known */
void replaced_dirs_done(struct replaced_dirs *d);
