/*
 * meta.h - the labels of a snapshot: keys with values.
 *
 * As one text: a line `key=value` for each key, in the order of keys, without a newline at the end.
 * NULL means that there are none. A key has letters, digits, `.`, `_` and `-`; a value is printable
 * UTF-8 and may be empty.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/attr.h"
#include "base/err.h"

#define META_MAX       16
#define META_KEY_MAX   64
#define META_VALUE_MAX 512

struct meta_pair {
	const char *key, *value; /* borrowed from the text, and not ended by NUL */
	size_t key_len, value_len;
};

/* From `KEY=VALUE` each.  *ret is owned, NULL if n is 0.  -EINVAL with a sentence. */
NODISCARD int meta_encode(const char *const *pairs, size_t n, char **ret, struct err *err);

/* Is it such a text?  -EINVAL with a sentence. */
NODISCARD int meta_check(const char *text, struct err *err);

/* The pair that begins at `text`, and where the next one begins; NULL: behind the last. */
const char *meta_next(const char *text, struct meta_pair *ret);

/* The value of a key, not ended by NUL; NULL if the text is NULL or has no such key. */
const char *meta_find(const char *text, const char *key, size_t *ret_len);

/* Does it have what `want` says, `KEY` or `KEY=VALUE`? */
bool meta_matches(const char *text, const char *want);

/* Do both have the same value of the key, or neither any? */
bool meta_agree(const char *a, const char *b, const char *key);
