/*
 * conffiles.h - the configuration files that dpkg's database knows, each with the MD5 it was
 * shipped with.
 *
 * The text is untrusted: bounded, and malformed lines are skipped.
 */
#pragma once

#include "image/rootfile.h"

struct conffile {
	char *path;    /* owned; from the top, without a leading slash */
	char *package; /* owned */
	char *sum;     /* owned; of what the package brings, or "newconffile" */
};

struct conffiles {
	struct conffile *list; /* owned; by path */
	size_t n, cap;
};

void conffiles_done(struct conffiles *c);

/* Of a root; one without a database has none. */
NODISCARD int conffiles_load(struct rootfile *l, struct conffiles *ret, struct err *err);

/* Add what one text says; then sort. */
NODISCARD int conffiles_parse(struct conffiles *c, const char *text, size_t len, struct err *err);
void conffiles_sort(struct conffiles *c);

/* NULL: dpkg does not know it as one. */
const struct conffile *conffiles_find(const struct conffiles *c, const char *path);
