/*
 * patch-i.h - shared by the files behind patch.h.
 */
#pragma once

#include "base/buf.h"
#include "base/sha1.h"
#include "snapshot/patch/patch.h"

/* Where the text of a patch goes. */
struct patch_out {
	struct store *store;
	patch_fn fn; /* NULL: nowhere */
	void *ctx;
};

NODISCARD static inline int patch_say(const struct patch_out *to, enum patch_part part,
				      const char *text, size_t len, struct err *err)
{
	return to->fn ? to->fn(part, text, len, to->ctx, err) : 0;
}

/*
 * Git's id for one side's content; zeros if it is absent.  `loaded` is the whole content or empty.
 */
NODISCARD int patch_blob_id(struct store *s, const struct delta_side *side,
			    const struct buf *loaded, char hex[SHA1_HEX_SIZE], struct err *err);

/* Both sides of a file as `GIT binary patch`. */
NODISCARD int patch_binary(const struct patch_out *to, const struct delta_side *before,
			   const struct delta_side *after, struct err *err);
