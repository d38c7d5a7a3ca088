/*
 * macFUSE speaks the protocol through its own libfuse3, without the kernel's /dev/fuse,
 * mount(2) options, INIT flags and notifications that the other files here are made of.
 * Until somebody has done that work and run it on a Mac, a mount is refused, in full
 * sentences: see mount-none.c.
 */
#include "cowfs/fuse/mount-none-i.h"

#include <errno.h>

int mount_refuse(struct err *err)
{
	return err_set(err, -ENOTSUP, "mounting through macFUSE is not implemented");
}
