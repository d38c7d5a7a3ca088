/*
 * pin.h - what a gc must leave alone though no ref reaches it: a file without a name that
 * somebody has open.
 *
 * A pin keeps an object and all that it reaches.  It is set while a ref or another pin still
 * reaches the object, or by who has committed it and not yet ended that batch; then it may be
 * set at any time, beside a gc too.  One that is set before the commit lets a gc fail, which finds
 * the object missing.  Pins are in memory only and end with store_close().
 */
#pragma once

#include "cowfs/store/object.h"
#include "cowfs/store/store.h"

/* Pins are counted: each needs its own store_unpin().  -ENOMEM, and nothing is pinned. */
NODISCARD int store_pin(struct store *s, enum object_kind kind, const struct object_id *id,
			struct err *err);
void store_unpin(struct store *s, enum object_kind kind, const struct object_id *id);
