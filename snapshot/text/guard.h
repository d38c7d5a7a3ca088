/*
 * guard.h - changes that a person must name, or at least see, before they reach a real directory.
 *
 * Other programs run such files later: git, a shell, an editor, a package manager, a build server,
 * an assistant. The rules are data. Each has a name, patterns in the syntax of .gitignore, a
 * reason, and a level: the path is held until somebody names it, or passes with a warning, or
 * passes.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"

enum guard_level { GUARD_HOLD, GUARD_WARN, GUARD_PASS };

struct guard_rule {
	const char *name;
	const char *patterns; /* one per line; NULL if the rule looks at the file, not its name */
	const char *why;
	enum guard_level level;
};

/* "hold", "warn", "pass". */
const char *guard_level_name(enum guard_level level);
bool guard_level_parse(const char *name, enum guard_level *ret);

/*
 * The rule for files with capabilities: the caller must look for the attribute
 * (GUARD_CAPABLE_XATTR).
 */
#define GUARD_CAPABLE       "capabilities"
#define GUARD_CAPABLE_XATTR "security.capability"

/* The rule for excluded paths that change anyway: the caller knows which. */
#define GUARD_LEFT_OUT "left-out"

/* Rules that need more than a path and a mode, so the caller must look (snapshot/apply/judge.h). */
#define GUARD_LINK       "link"
#define GUARD_BARE       "bare-repository"
#define GUARD_SPARSE     "sparse"     /* content_is_sparse() */
#define GUARD_GROUP      "group"      /* plan_fit_groups() */
#define GUARD_MOUNT      "clone-path" /* judge_options.mount */
#define GUARD_SCRIPTS    "scripts" /* of package.json: only those that changed are worth a word */
#define GUARD_UNSEARCHED "unsearched" /* a secret in a directory of packages (secret-name.h) */
#define GUARD_RECIPES    "recipes"    /* of a makefile, likewise */

/* Those that are always there. */
const struct guard_rule *guard_rules(size_t *ret_n);

/* More for a whole root file system (guard-system.c). */
const struct guard_rule *guard_system_rules(size_t *ret_n);

/* Two of them look at the file, not its name: the caller must (judge_access()). */
#define GUARD_OWNER  "owner"
#define GUARD_ACCESS "access"
const struct guard_rule *guard_system_rule_named(const char *name); /* it must exist */

/* The one of that name, which must exist. */
const struct guard_rule *guard_rule_named(const char *name);

struct guard;

/*
 * The built-in rules and more, which come first.  -EINVAL with a sentence for an invalid pattern.
 */
NODISCARD int guard_new(const struct guard_rule *more, size_t n, struct guard **ret,
			struct err *err);
void guard_free(struct guard *g); /* NULL is fine */
DEFINE_CLEANUP(struct guard *, guard_free)

/*
 * The rule for a path that is added or changed, with this st_mode, or removed ('D').  A rule about
 * the file itself, such as set-id, overrides any rule about its name; otherwise the first rule that
 * matches the name.  NULL: none.
 */
const struct guard_rule *guard_match(struct guard *g, const char *path, uint32_t mode, char status);

/* Is `path` one of these, or in a directory that is? */
bool guard_allowed(const char *path, const char *const *allowed, size_t n);
