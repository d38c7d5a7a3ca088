/*
 * xattrs.h - the extended attributes of one file, as a set.
 *
 * It includes ACLs and file capabilities, under the names that the kernel gives them. The same
 * attributes in any order give the same object.
 */
#pragma once

#include "cowfs/store/batch.h"
#include "cowfs/store/object.h"
#include "cowfs/store/store.h"

#define XATTR_NAME_LEN_MAX  255
#define XATTR_VALUE_LEN_MAX ((size_t)64 << 10)

struct xattr {
	const char *name; /* 1..255 bytes without NUL */
	size_t name_len;
	const void *value;
	size_t value_len;
};

/*
 * Put a set.  `list` may be in any order and is not changed; a name that occurs
 * twice is -EINVAL, a set over OBJECT_SIZE_MAX is -E2BIG.  The empty set is the zero id.
 */
NODISCARD int xattrs_put(struct batch *b, const struct xattr *list, size_t n,
			 struct object_id *ret_id, struct err *err);

/* Encoding alone, without a batch.  `out` is replaced. */
NODISCARD int xattrs_encode(const struct xattr *list, size_t n, struct buf *out, struct err *err);

/* -EBADMSG with a sentence unless the bytes are exactly what xattrs_encode() writes. */
NODISCARD int xattrs_verify(const void *data, size_t len, struct err *err);

/* Walk a verified set in the order of names: start with *pos = 0; false at the end. */
bool xattrs_next(const struct buf *set, size_t *pos, struct xattr *ret);

/* Find one; false if it is not there. */
bool xattrs_find(const struct buf *set, const char *name, size_t name_len, struct xattr *ret);

/* Replace `out` with the verified set; the zero id gives an empty one. */
NODISCARD int xattrs_get(struct store *s, const struct object_id *id, struct buf *out,
			 struct err *err);
