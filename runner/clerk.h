/*
 * clerk.h - requests to the clerk of a run, and what its parts share (clerk-linux.c).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/attr.h"

struct seccomp_data;

#define CLERK_PROC  4 /* its descriptor of the host's /proc */
#define CLERK_BLIND 1 /* an answer: it may not look at the call */

#define CLERK_FUSE_MAGIC \
	0x65735546 /* FUSE_SUPER_MAGIC of <linux/magic.h>, from Linux 5.18 on there */

enum clerk_what {
	CLERK_OWNER,
	CLERK_DEVICE,
};

/* A system call of a thread of the run, as it stands in its registers. */
struct clerk_call {
	enum clerk_what what;
	pid_t thread;
	int dir;           /* AT_FDCWD, or a descriptor of the run's */
	uint64_t path;     /* in its memory; 0: the descriptor itself */
	int flags;         /* AT_ */
	uint32_t uid, gid; /* CLERK_OWNER: UINT32_MAX leaves it as it is */
	uint32_t mode;     /* CLERK_DEVICE */
	uint32_t dev;      /* the same, as the kernel has it: one of device_is_harmless() */
};

/* --- by the caller ------------------------------------------------------------------------ */

/* false: it is another call. */
NODISCARD bool owner_read(const struct seccomp_data *data, struct clerk_call *ret);
NODISCARD bool device_read(const struct seccomp_data *data, struct clerk_call *ret);

/* May a run have such a node?  One that cannot be opened, as every device in its root. */
NODISCARD bool device_is_harmless(uint32_t mode, uint32_t dev);

/* --- by the clerk: what the call is answered with ----------------------------------------- */

/* `root`: the file system of the run's root; no other keeps owners. */
NODISCARD int owner_record(const struct clerk_call *c, const char *path, dev_t root);
NODISCARD int device_make(const struct clerk_call *c, const char *path);

/* Make the root of a thread the clerk's own. */
NODISCARD int clerk_enter_root(pid_t thread);

/* A directory that a thread names, as with O_PATH. */
NODISCARD int clerk_open_dir(pid_t thread, int dir);
