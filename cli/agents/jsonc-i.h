/*
 * jsonc-i.h - private to jsonc: reads a text member by member, with the place of each.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "cli/agents/jsonc.h"

struct jsonc_scan {
	const char *text;
	size_t at, len;
	unsigned depth;
	struct err *err;
};

/* One member of an object, or one element of an array, whose key is then empty. */
struct jsonc_member {
	struct jsonc_span key, value; /* the key with its quotes */
	size_t comma;                 /* behind it; 0: none */
};

/* What was found on the way through an object. */
struct jsonc_object {
	size_t open, close;         /* its braces */
	struct jsonc_member found;  /* the one that was looked for */
	bool has;                   /* there is one */
	struct jsonc_member before; /* the one before it, or the last if there is none such */
	bool any;                   /* `before` is one */
};

/* -EINVAL, and a sentence with the line. */
int jsonc_wrong(const struct jsonc_scan *s, const char *what);

NODISCARD int jsonc_skip_space(struct jsonc_scan *s); /* and comments */

/* The next member with its comma and what is skipped behind that. */
NODISCARD int jsonc_read_member(struct jsonc_scan *s, bool keyed, struct jsonc_member *ret);

/* The whole, as an object in which `key` is looked for; 1 if the text holds nothing. */
NODISCARD int jsonc_read_top(struct jsonc_scan *s, const char *key, struct jsonc_object *ret);

/* The object that is a member of the whole; its value must be one. */
NODISCARD int jsonc_read_inner(const struct jsonc_scan *s, const struct jsonc_object *top,
			       const char *key, struct jsonc_object *ret);
