/*
 * macFUSE speaks the protocol through its own libfuse3, without the kernel's /dev/fuse, mount(2)
 * options, INIT flags and notifications that the other files here use. Until somebody has written
 * that and run it on a Mac, a mount is refused, in full sentences: see mount-none.c.
 */
#include "cowfs/fuse/mount-none-i.h"

#include <errno.h>
#include <stdio.h>

#include "cowfs/core/layer.h"
#include "cowfs/fuse/platform.h"

int mount_refuse(struct err *err)
{
	return err_set(err, -ENOTSUP, "mounting through macFUSE is not implemented");
}

bool platform_rename_flags(unsigned theirs, unsigned *ret_ours)
{
	*ret_ours = (theirs & RENAME_EXCL ? LAYER_RENAME_NOREPLACE : 0) |
		    (theirs & RENAME_SWAP ? LAYER_RENAME_EXCHANGE : 0);
	return (theirs & ~(RENAME_EXCL | RENAME_SWAP)) == 0;
}

/* F_PREALLOCATE is all there is here, and to a layer that is nothing to do. */
bool platform_allocate_flags(int theirs, unsigned *ret_ours)
{
	*ret_ours = 0;
	return theirs == 0;
}
