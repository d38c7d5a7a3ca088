#include "cowfs/fuse/shift.h"

#include <errno.h>

#include "cowfs/core/acl.h"

#define NOBODY 65534 /* an id outside of every map, so it is shown as the kernel's own nobody */

uint32_t shift_out(const struct mount_shift *s, uint32_t id)
{
	if (id < s->n)
		return s->first + id;
	/* Else a stored id could pass for one of the mount's users. */
	return id - s->first < s->n ? NOBODY : id;
}

bool shift_in(const struct mount_shift *s, uint32_t *id)
{
	if (*id - s->first >= s->n)
		return s->n == 0;
	*id -= s->first;
	return true;
}

static bool map_out(const void *ctx, uint32_t *id)
{
	*id = shift_out(ctx, *id);
	return true;
}

static bool map_in(const void *ctx, uint32_t *id)
{
	return shift_in(ctx, id);
}

void shift_acl_out(const struct mount_shift *s, void *acl, size_t len)
{
	if (s->n > 0 && acl_check(acl, len) == 0)
		acl_map_ids(acl, len, map_out, s);
}

int shift_acl_in(const struct mount_shift *s, void *acl, size_t len)
{
	if (s->n == 0 || acl_is_empty(acl, len))
		return 0;
	if (acl_check(acl, len) < 0)
		return EINVAL;
	return acl_map_ids(acl, len, map_in, s) ? 0 : EOVERFLOW;
}
