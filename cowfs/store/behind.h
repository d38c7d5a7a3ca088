/*
 * behind.h - the objects that an object names: the next step of a walk over a tree.
 */
#pragma once

#include "cowfs/store/object.h"

typedef int (*behind_fn)(enum object_kind kind, const struct object_id *id, void *ctx,
			 struct err *err);

/*
 * Each object that the bytes of a tree or recipe name, in their order, as often as they do; the
 * other kinds name none.  -EBADMSG if the bytes are not what they should be.  A negative answer of
 * `fn` ends it and is returned.
 */
NODISCARD int behind_each(enum object_kind kind, const void *data, size_t len, behind_fn fn,
			  void *ctx, struct err *err);
