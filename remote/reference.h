/*
 * reference.h - "HOST[:PORT]/REPOSITORY[:TAG|@sha256:...]", the name of something in a registry.
 */
#pragma once

#include <stdbool.h>

#include "base/attr.h"
#include "base/err.h"

#define REFERENCE_REPOSITORY_MAX 255 /* bytes, with the host: what registries allow */

struct reference {
	char *host;       /* owned: "example.org:5000", as written */
	char *repository; /* owned: "team/snaps" */
	char *name;       /* owned: a tag, or "sha256:..."; NULL: none was given */
	bool plain;       /* http by default: the host is this machine */
};

void reference_done(struct reference *r);

/* -EINVAL with a sentence that says what is wrong. */
NODISCARD int reference_parse(const char *text, struct reference *ret, struct err *err);

/* Does it begin with what can only be a host: a name with a dot or a port, or localhost?  As docker has it. */
bool reference_has_host(const char *text);

/* A name that a repository may have: parts of a-z and 0-9 with single separators, joined by '/'. */
bool reference_repository_valid(const char *name);
