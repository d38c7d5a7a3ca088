/*
 * mount.h - show a layer at a mount point until it is unmounted.
 *
 * All mounts of a process share a pool of workers and a watchdog; each has a connection to the
 * kernel and a thread that reads it. That thread answers from memory; requests that must wait go to
 * the pool. The process may run threads and must not fork, and must never touch a file below one of
 * its own mounts.
 *
 * A process that dies leaves an aborted connection: programs on the mount get ENOTCONN, not a hang.
 * mount_clear() removes such a mount.
 */
#pragma once

#include "base/cleanup.h"
#include "base/err.h"
#include "cowfs/core/layer.h"

struct mounts;
struct mount;

NODISCARD int mounts_new(struct mounts **ret, struct err *err);
void mounts_free(struct mounts *ms); /* every mount must be closed; NULL is fine */
DEFINE_CLEANUP(struct mounts *, mounts_free)

/*
 * The ids 0 to `n` - 1 of the layer are `first` to `first` + `n` - 1 on the mount, as a user
 * namespace with that map sees them; every other id is one that the namespace does not have.
 */
struct mount_shift {
	uint32_t first, n; /* n is 0: ids are shown as they are */
};

#define MOUNT_OWNER_NAME "security.snapcow.owner" /* "33:-1": -1 leaves one of the two as it is */

/*
 * Of a directory on a mount that was adopted, set by the administrator of its user namespace: "259:null".  The
 * next whiteout that is made there with this name is the character device of this number instead.
 */
#define MOUNT_NODE_NAME "security.snapcow.node"

struct mount_options {
	const char *path;   /* an empty directory of ours; NULL: nowhere for now */
	const char *source; /* what mount(8) shows as the device */
	bool
	    others; /* let other users in, as their permissions allow (root may; users need user_allow_other) */
	bool
	    unchecked; /* the kernel checks no permissions: only for mounts nobody else can enter */
	bool no_xattrs; /* none can be seen or set, no ACL either: only with `unchecked` */
	struct mount_shift shift;
	/*
	 * Every file is shown as that of one user and group, without an ACL.  Its owner is what the extended
	 * attribute MOUNT_OWNER_NAME says, which the administrator of the mount's user namespace can set.
	 */
	bool one_id;
	uint32_t one_uid, one_gid;
	/*
	 * Files and directories by st_ino, rising, that cannot be opened on this mount, under whatever name:
	 * a lookup of one is EACCES.  Copied.
	 */
	const uint64_t *hidden;
	size_t n_hidden;
	/*
	 * A mount of the same layer, or NULL.  What changes through one of the two is announced on
	 * the other within milliseconds, and all of it before mount_close() of either returns.
	 * The one that is named must be closed last.
	 */
	struct mount *beside;
};

/*
 * Mounted and answering when it returns 0.  -ENOTSUP with what is missing and how to get
 * it (no /dev/fuse, no fusermount3, ...).
 */
NODISCARD int mount_open(struct mounts *ms, struct layer *l, const struct mount_options *options,
			 struct mount **ret, struct err *err);

/*
 * Answer a connection whose mount somebody else made, in another user namespace perhaps; `fd` is taken,
 * whatever comes of it.  Of the options `one_id`, its two ids, `hidden` and `beside` count.  It ends when the last namespace that
 * has the mount does, or with mount_close().
 */
NODISCARD int mount_adopt(struct mounts *ms, struct layer *l, int fd,
			  const struct mount_options *options, struct mount **ret, struct err *err);

/*
 * A rename through this mount moves no directory: it is EXDEV.  What one moves through a mount, the kernel has to
 * forget on those beside it, and then it unmounts whatever is mounted there below that directory.
 */
void mount_keep_dirs(struct mount *m, bool keep);

/*
 * A detached mount still serves anyone who holds a descriptor to it.  It needs the right to mount
 * without fusermount3, else -ENOTSUP; if this process dies, nothing is left of it.
 */
int mount_fd(const struct mount *m); /* of its top, as with O_PATH; borrowed until it is attached */

/* Of its top, as with O_PATH, wherever it is; owned by the caller.  A negative errno if it is gone. */
NODISCARD int mount_top(const struct mount *m);

/* Where it is; NULL: nowhere.  Borrowed until it is moved or closed. */
const char *mount_place(const struct mount *m);

/* Somebody moved it there; -ENOENT if it is not there, and then it is where it was, or gone. */
NODISCARD int mount_moved(struct mount *m, const char *path, struct err *err);

/*
 * Put it at options->path; all others but `source` are as mount_open() had them.  On failure it is
 * still nowhere.  Before Linux 5.15 it keeps the source that it had.
 */
NODISCARD int mount_attach(struct mount *m, const struct mount_options *options, struct err *err);

/*
 * Unmount; what was given to a program and not yet taken is answered first.  -EBUSY if
 * somebody uses it and `force` is not set; with it, users get ENOTCONN from then on.  One
 * that is nowhere is never busy.
 */
NODISCARD int mount_close(struct mount *m, bool force, struct err *err);

/* Can it be shown once more under other user ids (Linux 6.12, mounts of root's)? */
bool mount_maps_ids(const struct mount *m);

/*
 * The same of a mount that root would make here, found out by making one that is attached nowhere:
 * 1, 0, or -ENOTSUP if it cannot be made.
 */
NODISCARD int mount_probe_ids(struct err *err);

/* Somebody else unmounted it, or the connection was aborted: only mount_close() is left to do. */
bool mount_ended(const struct mount *m);

/*
 * 1 if it is where it was mounted.  If not, waits some seconds for its end: 0, it has ended; -EBUSY,
 * it is still in use, unmounted lazily, or something else is mounted over it.
 */
NODISCARD int mount_is_shown(struct mount *m, struct err *err);

/*
 * Tell the kernel what a rollback changed.  Returns when it knows.  Never from a thread
 * that answers requests, and with no lock held that a request needs.
 */
NODISCARD int mount_announce(struct mount *m, const struct layer_changes *changes, struct err *err);

/*
 * The kernel tells programs that watch files (inotify) only of changes made through it.  So a thread
 * must remove what went and make what came once more, through the mount: an echo.  The echoing thread
 * looks up the secret name `token` in the top directory, and finds it.  From then on that thread can
 * change nothing there: its calls are answered as if they had worked, and everybody else sees what is
 * there.  For each name of the list: unlink(2) or rmdir(2) it if it was there, then make it with
 * O_EXCL, or mkdir(2), if it is there.  Before the changes are announced.  The list is borrowed until the end.
 */
#define MOUNT_ECHO_PREFIX ".snapcow-echo-"
#define MOUNT_ECHO_SIZE   (sizeof(MOUNT_ECHO_PREFIX) + 32)
NODISCARD int mount_echo_begin(struct mount *m, const struct layer_replaced *list, size_t n,
			       char token[static MOUNT_ECHO_SIZE], struct err *err);
void mount_echo_end(struct mount *m, const char *token); /* one that has ended is fine */

struct mount_stats {
	uint64_t requests; /* answered by the thread that read them; counted before that */
	uint64_t deferred; /* handed to the pool */
};
void mount_stats(const struct mount *m, struct mount_stats *ret);

/* Take a mount away that a dead process left at `path`; 0 also if there is none. */
NODISCARD int mount_clear(const char *path, struct err *err);
