/*
 * rules-i.h - where rules are read from.
 */
#pragma once

#include "engine/api/rules.h"
#include "engine/find/engine-i.h"

/* The user's, owned; NULL: there is no place for it. */
char *rules_of_user(const struct engine *e);

/* Add the rules of a file; a missing file has none. */
NODISCARD int rules_read(struct engine_rules *r, const char *path, struct err *err);

/* A guard of built-in rules, those of the file `user` (or NULL) and the project's; borrows `rules`. */
NODISCARD int rules_guard(const char *user, const char *project, struct engine_rules *rules,
			  struct guard **ret, struct err *err);

/* The same of a whole root file system, with the rules for those. */
NODISCARD int rules_guard_system(const char *user, const char *project, struct engine_rules *rules,
				 struct guard **ret, struct err *err);
