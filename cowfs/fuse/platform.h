/*
 * platform.h - private to fuse/: open a connection to the kernel, and close it.
 *
 * platform-linux.c implements it; platform-darwin.c refuses.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/err.h"
#include "cowfs/fuse/mount.h"

/* Which mount: another one at the same path has another. */
struct platform_id {
	uint64_t mount, dev;
};

/*
 * Mount at options->path and give the connection, close-on-exec and non-blocking; owned by
 * the caller.  Root, and a user in a user namespace of their own, mount directly; others through
 * fusermount3.
 */
NODISCARD int platform_mount(const struct mount_options *options, int *ret_fd,
			     struct platform_id *ret_id, struct err *err);

/*
 * The same, but attached nowhere: *ret_tree, owned by the caller, is the mount, which goes
 * with its last descriptor.  -ENOTSUP if it cannot be had without help or this kernel
 * knows no such thing.
 */
NODISCARD int platform_mount_nowhere(const struct mount_options *options, int *ret_fd,
				     int *ret_tree, struct platform_id *ret_id, struct err *err);

/* Put what is there at options->path, under options->source where the kernel lets us. */
NODISCARD int platform_attach(int tree, int fd, const struct mount_options *options,
			      struct platform_id *ret_id, struct err *err);

/* A descriptor of what is at `path`, without a request to its server; negative if there can be none. */
int platform_hold(const char *path);

/* Is this mount the one that is seen at `path`, or to which `fd` leads?  Sends its server no request. */
bool platform_is_at(const char *path, const struct platform_id *id);
bool platform_is_of(int fd, const struct platform_id *id);

/*
 * Take it away; 0 also if that mount is not there any more.  -EBUSY if it is in use and not
 * `lazy`; then programs that use it keep it.
 */
NODISCARD int platform_unmount(const char *path, const struct platform_id *id, bool lazy,
			       struct err *err);

/* Take away what is mounted at `path` if it is ours and nobody answers it.  -EBUSY if somebody does. */
NODISCARD int platform_clear(const char *path, struct err *err);

/* The calling thread answers requests: memory it asks for must not wait for a mount of ours. */
void platform_serve_thread(void);

/*
 * What the kernel asks of rename and fallocate, as LAYER_RENAME_ and LAYER_ALLOC_; false if there
 * is something among it that a layer cannot do.
 */
bool platform_rename_flags(unsigned theirs, unsigned *ret_ours);
bool platform_allocate_flags(int theirs, unsigned *ret_ours);
