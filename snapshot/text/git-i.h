/*
 * git-i.h - libgit2, loaded when it is first needed.
 *
 * It is not linked: it brings libraries for TLS, SSH and Kerberos, which would cost every command 2
 * ms to load and cowfsd the mapping of them, and its initialisation reads the system's certificates
 * (docs/design/diff.md has the figures). A command that only lists changes needs none of it.
 */
#pragma once

#include <git2.h>
#include <git2/sys/hashsig.h>

#include "base/err.h"

struct git {
#define GIT_SYMBOL(name) __typeof__(&git_##name) name;
#include "snapshot/text/git-symbols-i.h"
#undef GIT_SYMBOL
};

/* Initialised and never given back.  -ENOTSUP with a sentence if this machine has none. */
NODISCARD int git_load(const struct git **ret, struct err *err);

/* The failure that a function of it returned, with its own sentence; returns a code of ours. */
int git_failed(const struct git *g, int rc, const char *doing, struct err *err);
