/*
 * pin.h - objects that a gc must keep though no ref reaches them: a file without a name that a
 * program has open.
 *
 * A pin keeps an object and all that it reaches. Set it while a ref or another pin still reaches
 * the object, or after the commit that stored it and before the end of that batch; a gc may run
 * meanwhile. A pin set before the commit makes a gc fail, because the object is missing. Pins are
 * in memory only and end with store_close().
 */
#pragma once

#include "cowfs/store/object.h"
#include "cowfs/store/store.h"

/* Pins are counted: each needs its own store_unpin().  -ENOMEM, and nothing is pinned. */
NODISCARD int store_pin(struct store *s, enum object_kind kind, const struct object_id *id,
			struct err *err);
void store_unpin(struct store *s, enum object_kind kind, const struct object_id *id);
