/*
 * guard.h - changes that a person must name before they reach a real directory.
 *
 * What is in such files is run by somebody else later: by git, a shell, an editor, a package manager, a build
 * server.  The rules are data; each is a name, patterns in the syntax of .gitignore, and why.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"

struct guard_rule {
	const char *name;
	const char *patterns; /* a line each; NULL: told by its mode */
	const char *why;
};

/* The rule for files with capabilities: an attribute tells them, so the caller must look (GUARD_CAPABLE_XATTR). */
#define GUARD_CAPABLE       "capabilities"
#define GUARD_CAPABLE_XATTR "security.capability"

/* The rule for what was left out, and changes all the same: the caller knows what that is. */
#define GUARD_LEFT_OUT "left-out"

/* Those that are always there. */
const struct guard_rule *guard_rules(size_t *ret_n);

struct guard;

/* Them, and more.  -EINVAL with a sentence for a pattern that is none. */
NODISCARD int guard_new(const struct guard_rule *more, size_t n, struct guard **ret,
			struct err *err);
void guard_free(struct guard *g); /* NULL is fine */
DEFINE_CLEANUP(struct guard *, guard_free)

/* The first rule that holds a path which comes or changes, and then has this st_mode; or goes ('D'). */
const struct guard_rule *guard_match(struct guard *g, const char *path, uint32_t mode, char status);

/* Is `path` one of these, or in a directory that is? */
bool guard_allowed(const char *path, const char *const *allowed, size_t n);
