/*
 * accounts.h - the users and groups of a root, from etc/passwd and etc/group, and how two of them
 * differ.
 *
 * The text is untrusted: bounded, and malformed lines are skipped.
 */
#pragma once

#include <stdint.h>

#include "image/rootfile.h"

struct account {
	char *name; /* owned */
	uint32_t id;
	uint32_t group;     /* of a user: its own */
	char *home, *shell; /* owned; of a user */
	char *members;      /* owned; of a group: by comma */
};

struct accounts {
	struct account *list; /* owned; by name */
	size_t n, cap;
};

enum accounts_kind {
	ACCOUNTS_USERS,
	ACCOUNTS_GROUPS,
};

void accounts_done(struct accounts *a);

/* Of a root; one without the file has none. */
NODISCARD int accounts_load(struct rootfile *l, enum accounts_kind kind, struct accounts *ret,
			    struct err *err);

/* Add what one text says. */
NODISCARD int accounts_parse(struct accounts *a, enum accounts_kind kind, const char *text,
			     size_t len, struct err *err);

/* In the order of names: one side is NULL where the other alone has it. */
typedef int (*accounts_fn)(const struct account *before, const struct account *after, void *ctx,
			   struct err *err);
NODISCARD int accounts_compare(const struct accounts *before, const struct accounts *after,
			       accounts_fn fn, void *ctx, struct err *err);
