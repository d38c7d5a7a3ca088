/*
 * jsonc.h - change one member in the text of a JSON file that people edit too.
 *
 * Such files have comments, commas after the last member and an order that somebody chose.
 * Everything else stays as it is, byte for byte.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"

/* Where something stands in a text. */
struct jsonc_span {
	size_t from, to;
};

/*
 * The value of member `key` of the object that is member `object` of the whole.  0 and the span if it
 * is there, else -ENOENT; -EINVAL with a sentence that names the line if the text is not JSON.  An empty
 * text is an empty object.
 */
NODISCARD int jsonc_find(const char *text, size_t len, const char *object, const char *key,
			 struct jsonc_span *ret, struct err *err);

/* The text with that member set to `value`, which is JSON, appended to `ret`; `object` is made if need be. */
NODISCARD int jsonc_set(const char *text, size_t len, const char *object, const char *key,
			const char *value, struct buf *ret, struct err *err);

/* The text without that member; -ENOENT if it is not there. */
NODISCARD int jsonc_remove(const char *text, size_t len, const char *object, const char *key,
			   struct buf *ret, struct err *err);

/*
 * The same for an element of an array that is such a member: the first whose text holds `mark` is replaced,
 * or one is added at the end; -EINVAL if the member is no array, or if that element is more than a hook
 * whose only command ends with `mark`.
 */
NODISCARD int jsonc_list_set(const char *text, size_t len, const char *object, const char *key,
			     const char *mark, const char *value, struct buf *ret, struct err *err);

/* Without the element, and without the array if that was all; -ENOENT if it is not there. */
NODISCARD int jsonc_list_remove(const char *text, size_t len, const char *object, const char *key,
				const char *mark, struct buf *ret, struct err *err);
