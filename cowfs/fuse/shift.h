/*
 * shift.h - private to fuse/: translate ids on a mount whose users have other ids than its layer.
 *
 * It does what an idmapped mount does, for kernels that cannot idmap FUSE: a file whose owner the
 * map does not cover belongs to nobody.
 */
#pragma once

#include "cowfs/fuse/mount.h"

/* From the layer to the mount.  Any id is something there. */
uint32_t shift_out(const struct mount_shift *s, uint32_t id);
void shift_acl_out(const struct mount_shift *s, void *acl, size_t len);

/* From the mount to the layer; false, and nothing changed, for one that is not of the map. */
bool shift_in(const struct mount_shift *s, uint32_t *id);
NODISCARD int shift_acl_in(const struct mount_shift *s, void *acl, size_t len); /* 0 or an errno */
