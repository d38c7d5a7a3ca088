/*
 * kind.h - what a file is to people, judged by its path: a document, a test, a lock file, a secret.
 *
 * The patterns are data, in the syntax of .gitignore.  Anything that no pattern names is code.
 */
#pragma once

#include "base/cleanup.h"
#include "base/err.h"

enum kind { KIND_SECRET, KIND_LOCK, KIND_TEST, KIND_DOCS, KIND_CODE, KINDS };

/* "secret", "lock", "test", "docs", "code". */
const char *kind_name(enum kind kind);

struct kinds;

NODISCARD int kinds_new(struct kinds **ret, struct err *err);
void kinds_free(struct kinds *k); /* NULL is fine */
DEFINE_CLEANUP(struct kinds *, kinds_free)

/* The kind of a file at `path`, seen from the top of a project. */
enum kind kinds_of(const struct kinds *k, const char *path);
