/*
 * packages.h - the installed packages in dpkg's database of a tree, and how two of them differ.
 *
 * Reads var/lib/dpkg/status and the files in var/lib/dpkg/status.d, which images without dpkg have.
 * The text is untrusted: bounded, and malformed paragraphs are skipped.
 */
#pragma once

#include "cowfs/store/root.h"

struct package {
	char *name;     /* owned */
	char *version;  /* owned */
	bool automatic; /* apt installed it for another one */
};

struct packages {
	struct package *list; /* owned; by name */
	size_t n, cap;
	bool found; /* there is a database, and packages in it */
};

void packages_done(struct packages *p);

/* Of a root; one without a database is empty. */
NODISCARD int packages_load(struct store *s, const struct object_id *root, struct packages *ret,
			    struct err *err);

/* Add what one text says, for callers without a tree. */
NODISCARD int packages_parse(struct packages *p, const char *text, size_t len, struct err *err);
void packages_sort(struct packages *p);

/* Of a sorted list; NULL if it has none of that name, any if it has several. */
struct package *packages_find(const struct packages *p, const char *name);

/* In the order of names: one side is NULL where the other alone has it. */
typedef int (*packages_fn)(const struct package *before, const struct package *after, void *ctx,
			   struct err *err);
NODISCARD int packages_compare(const struct packages *before, const struct packages *after,
			       packages_fn fn, void *ctx, struct err *err);
