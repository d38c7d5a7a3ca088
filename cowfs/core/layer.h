/*
 * layer.h - a writable view over an immutable tree: a clone while it is in use.
 *
 * A layer knows nodes, names, whiteouts and blocks, and nothing of FUSE. Operations return the
 * errors of a Unix file system: -ENOENT, -ENOTEMPTY, ...; the caller checks permissions. Damage in
 * the store is -EBADMSG with a sentence; otherwise err stays empty.
 *
 * A node's number is never used twice in the life of a layer. layer_lookup() and every operation
 * that creates a node give the caller one reference to it; layer_forget() gives back n. A node
 * without names lives until its last reference is gone.
 *
 * Operations work on memory. If call->may_wait is false, one that would have to wait for the disk
 * or for room returns -EAGAIN and changes nothing.
 *
 * Thread-safe. Lock order is in layer-i.h.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <time.h>

#include "base/attr.h"
#include "base/err.h"
#include "cowfs/store/batch.h"
#include "cowfs/store/catalog.h"
#include "cowfs/store/root.h"

#define LAYER_ROOT ((uint64_t)1)

struct layer;

struct layer_call {
	uint32_t uid, gid; /* the caller's, and the owner of what is made */
	uint32_t umask;    /* taken from what is made, unless a default ACL says what it gets */
	bool may_wait;
	bool keeps_dirs; /* a rename moves no directory: -EXDEV, and programs copy */
	/* Of a write: the thread whose write(2) it is, or may be a piece of; 0: it is all of one. */
	uint32_t writer;
};

struct layer_found {
	uint64_t node;
	struct stat st; /* st_ino is stable over mounts and snapshots; st_dev is 0 */
};

/* --- names ------------------------------------------------------------------------------ */

NODISCARD int layer_lookup(struct layer *l, const struct layer_call *call, uint64_t dir,
			   const char *name, struct layer_found *ret, struct err *err);
void layer_forget(struct layer *l, uint64_t node, uint64_t n);

/* One more reference to a node, which need not have a name; -ESTALE if it is gone. */
NODISCARD int layer_refer(struct layer *l, uint64_t node, struct layer_found *ret);

/* Any type but symlinks; `mode` has the type. */
NODISCARD int layer_make(struct layer *l, const struct layer_call *call, uint64_t dir,
			 const char *name, uint32_t mode, uint64_t rdev, struct layer_found *ret,
			 struct err *err);
NODISCARD int layer_symlink(struct layer *l, const struct layer_call *call, uint64_t dir,
			    const char *name, const char *target, struct layer_found *ret,
			    struct err *err);
/* A regular file without a name; layer_link() may give it one. */
NODISCARD int layer_make_nameless(struct layer *l, const struct layer_call *call, uint64_t dir,
				  uint32_t mode, struct layer_found *ret, struct err *err);
NODISCARD int layer_link(struct layer *l, const struct layer_call *call, uint64_t node,
			 uint64_t dir, const char *name, struct layer_found *ret, struct err *err);
NODISCARD int layer_unlink(struct layer *l, const struct layer_call *call, uint64_t dir,
			   const char *name, struct err *err);
NODISCARD int layer_rmdir(struct layer *l, const struct layer_call *call, uint64_t dir,
			  const char *name, struct err *err);

enum layer_rename_flags {
	LAYER_RENAME_NOREPLACE = 1,
	LAYER_RENAME_EXCHANGE = 2,
	LAYER_RENAME_WHITEOUT = 4, /* leave a character device 0:0 behind, as overlayfs wants */
};
NODISCARD int layer_rename(struct layer *l, const struct layer_call *call, uint64_t dir,
			   const char *name, uint64_t new_dir, const char *new_name, unsigned flags,
			   struct err *err);

NODISCARD int layer_readlink(struct layer *l, uint64_t node, char *target, size_t size,
			     struct err *err); /* the length; terminated if it fits */

/*
 * Give each name of a directory from the cursor `off` on, 0 for the first; `next` is the cursor
 * behind it.  Cursors stay good while names come and go, over persists and rollbacks.
 * With `plus` every name but "." and ".." comes with node and attributes and one
 * reference, unless callers know both and they are up to date; else only node.st_ino and the type in
 * st_mode are set, and the node is 0.  `fill` must not call the layer; 1 means that it had no room and
 * did not take the name.
 */
typedef int (*layer_fill_fn)(void *ctx, const char *name, const struct layer_found *found,
			     uint64_t next);
NODISCARD int layer_readdir(struct layer *l, const struct layer_call *call, uint64_t dir,
			    uint64_t off, bool plus, layer_fill_fn fill, void *ctx,
			    struct err *err);

/* --- attributes ------------------------------------------------------------------------- */

NODISCARD int layer_getattr(struct layer *l, uint64_t node, struct stat *ret, struct err *err);

enum layer_set {
	LAYER_SET_MODE = 1,
	LAYER_SET_UID = 2,
	LAYER_SET_GID = 4,
	LAYER_SET_SIZE = 8,
	LAYER_SET_ATIME = 16,
	LAYER_SET_MTIME = 32,
	LAYER_SET_CTIME = 64,  /* else it becomes now */
	LAYER_KILL_PRIV = 128, /* take set-id bits away, as a write by an ordinary user does */
};

/* Of `st` what `set` names. */
NODISCARD int layer_setattr(struct layer *l, const struct layer_call *call, uint64_t node,
			    const struct stat *st, unsigned set, struct stat *ret, struct err *err);

NODISCARD int layer_statfs(struct layer *l, struct statvfs *ret, struct err *err);

/*
 * `flags` as of setxattr(2): XATTR_CREATE, XATTR_REPLACE.  `size` 0 asks how long the answer is.
 * ACLs (acl.h) are attributes too, but what is none is -EINVAL, the mode follows the access
 * list and the list the mode, and a list that says no more than a mode is not kept.
 */
enum layer_setxattr_flags {
	LAYER_ACL_KILL_SGID = 1 << 16, /* with an access list: take the set-gid bit away */
};
NODISCARD int layer_setxattr(struct layer *l, const struct layer_call *call, uint64_t node,
			     const char *name, const void *value, size_t size, int flags,
			     struct err *err);
NODISCARD ssize_t layer_getxattr(struct layer *l, const struct layer_call *call, uint64_t node,
				 const char *name, void *value, size_t size, struct err *err);
NODISCARD ssize_t layer_listxattr(struct layer *l, const struct layer_call *call, uint64_t node,
				  char *list, size_t size, struct err *err);
NODISCARD int layer_removexattr(struct layer *l, const struct layer_call *call, uint64_t node,
				const char *name, struct err *err);

/* --- bytes ------------------------------------------------------------------------------ */

#define LAYER_IO_MAX ((size_t)1 << 20)

/* Bytes that are held for the caller; they do not change. */
struct layer_bytes {
	struct iovec *iov;
	int n;
	size_t len;
	void *held; /* private */
};

/* Up to `len` (at most LAYER_IO_MAX) bytes; fewer only at the end of the file. */
NODISCARD int layer_read(struct layer *l, const struct layer_call *call, uint64_t node,
			 uint64_t off, size_t len, struct layer_bytes *ret, struct err *err);
void layer_bytes_done(struct layer_bytes *b);

/* All of it or an error: -ENOSPC (disk or quota), -EFBIG.  1 if set-id bits went with it. */
NODISCARD int layer_write(struct layer *l, const struct layer_call *call, uint64_t node,
			  uint64_t off, const void *data, size_t len, bool kill_priv,
			  struct err *err);

/*
 * The layer has seen pieces of a write(2) up to `off`.  The caller of the layer may know for certain
 * that the thread has left that write(2): no piece of it continues there or awaits an answer, and the
 * thread sleeps or has sent another request.  Do not set or clear this while a state is taken.
 */
typedef bool (*layer_witness_fn)(void *ctx, uint32_t writer, uint64_t node, uint64_t off);
void layer_set_witness(struct layer *l, layer_witness_fn fn, void *ctx); /* NULL: nobody */

enum layer_allocate {
	LAYER_ALLOC_KEEP_SIZE = 1,
	LAYER_ALLOC_PUNCH = 2,
	LAYER_ALLOC_ZERO = 4,
};
NODISCARD int layer_allocate(struct layer *l, const struct layer_call *call, uint64_t node,
			     unsigned flags, uint64_t off, uint64_t len, struct err *err);

/* As lseek(2) with SEEK_DATA or SEEK_HOLE. */
NODISCARD int layer_seek(struct layer *l, const struct layer_call *call, uint64_t node,
			 uint64_t off, bool hole, uint64_t *ret, struct err *err);

/* As copy_file_range(2): the number of bytes, which may be less than asked. */
NODISCARD ssize_t layer_copy(struct layer *l, const struct layer_call *call, uint64_t from,
			     uint64_t from_off, uint64_t to, uint64_t to_off, size_t len,
			     struct err *err);

/* --- states ----------------------------------------------------------------------------- */

/*
 * Everything that returned before this was called becomes objects and the root of the clone,
 * in O(changed), while others go on.  `also` (or NULL) may add refs to the same batch; it is
 * called without locks, once the new root is put and before the commit.  With it, the state
 * holds no half of a write(2) either, save of one that is longer than some MiB.
 */
struct layer_state {
	struct object_id id;   /* a root (root.h) */
	uint64_t files, bytes; /* what lies in it */
};
typedef int (*layer_also_fn)(struct batch *b, const struct layer_state *state, void *ctx,
			     struct err *err);
NODISCARD int layer_persist(struct layer *l, enum batch_durability durability, layer_also_fn also,
			    void *ctx, struct layer_state *ret, struct err *err);

/*
 * The same state, to be looked at: what the clone has committed stays as it was, and nothing waits
 * for the disk.  Nobody but `also` keeps it: with a pin (pin.h), set there; the batch is
 * committed then.
 */
NODISCARD int layer_look(struct layer *l, layer_also_fn also, void *ctx, struct layer_state *ret,
			 struct err *err);

/*
 * fsync(2) of a node, which makes all that was done in the layer before survive the death of the
 * process, and of a clone whose record says `strict` power loss too.  Not in one that is passing.
 */
NODISCARD int layer_sync(struct layer *l, uint64_t node, struct err *err);

/*
 * From hold to release, or until `ms` have passed, no directory is moved: renames of one wait, and are -EBUSY
 * if that takes long.  So a path that was found still leads to the same file, unless that itself was
 * renamed.  Each hold needs a release, in whatever order; the last to pass is how long all last.
 */
void layer_hold_names(struct layer *l, uint64_t ms);
void layer_release_names(struct layer *l);

/* What a cache of names and directories must drop. */
struct layer_changed_name {
	uint64_t dir;
	char *name; /* owned */
};

/*
 * A name that came, went or leads to something else, in a directory that somebody refers to, with
 * all that somebody refers to below it.  From these, programs that watch files are notified.
 */
struct layer_replaced {
	uint64_t dir, before; /* nodes; what it led to, or 0 if that is not in memory */
	uint32_t was, is;     /* modes; 0: there is no such name */
	char *path;           /* owned; from the top */
};

#define LAYER_REPLACED_MAX ((size_t)100000)

struct layer_changes {
	struct layer_changed_name *names;
	size_t n_names;
	uint64_t *dirs; /* whose listing or attributes changed; each once */
	size_t n_dirs;
	/* In no order; without those beyond LAYER_REPLACED_MAX and those that memory did not allow for. */
	struct layer_replaced *replaced;
	size_t n_replaced, cap_replaced;
	uint64_t n_left_out;
};
void layer_changes_done(struct layer_changes *c);

/*
 * Make the clone show another root, in O(difference), while it is in use.  What was there
 * is persisted first, and `also` may name it in the batch that switches the clone: both happen or
 * neither; it must not call the layer.  Directories keep their node; changed files and symlinks
 * get a new one under their old st_ino; a program with an open file that is gone or changed keeps it
 * as it was.
 *
 * The root is `target`, or what `choose` names once nothing changes any more.  It is given what is
 * there then, persisted, and must name a root that is committed and stays reachable until this
 * returns.  Like `also` it is called without locks and must not call the layer; all writers wait for
 * it, and if it fails nothing is changed.  From then on the clone has the base `to` instead of
 * `from`, and has grown since that.
 */
struct layer_rebase {
	int (*choose)(const struct layer_state *now, struct object_id *ret, void *ctx,
		      struct err *err); /* or NULL */
	layer_also_fn also;             /* or NULL */
	void *ctx;
	const struct object_id *target;
	const struct snapshot *from, *to;
};
NODISCARD int layer_rebase(struct layer *l, const struct layer_rebase *how,
			   struct layer_changes *ret, struct err *err);

/*
 * Promises that stand in the clone are replaced by what was kept of them, while it is in use: it
 * is persisted, and has the root that settle_root() gives.  Nobody sees a difference.  `s` must not
 * have been used for another batch that was not committed.
 */
struct settle;
NODISCARD int layer_settle(struct layer *l, struct settle *s, struct err *err);

struct layer_usage {
	uint64_t quota;   /* 0: none */
	uint64_t used;    /* bytes of data that the clone has grown by since it was made */
	uint64_t charged; /* those, and what its names and attributes take: what limits count */
	uint64_t inodes;  /* made in it and not gone since it was opened */
	uint64_t nodes;   /* in memory */
	uint64_t
	    refused; /* changes that it had no room for, of its own limits, since it was opened */
	uint64_t nodes_refused; /* those that the limit of inodes did not allow */
	uint64_t
	    switches; /* rollbacks, rebases and the end of a lazy capture since it was opened */
	bool changed; /* something is not persisted */
};
void layer_usage(struct layer *l, struct layer_usage *ret);

/* When the clone may be removed, in nanoseconds since 1970; 0: never.  Part of the clone with the next persist. */
void layer_set_expiry(struct layer *l, int64_t expires);

/* Bytes of data, and of all else that a clone is charged for, that one root has more than another. */
struct layer_growth {
	int64_t data, meta;
};
NODISCARD int layer_growth(struct store *s, const struct object_id *from,
			   const struct object_id *to, struct layer_growth *ret, struct err *err);

/* Another snapshot is the base of the clone, whose content stays.  The same. */
struct layer_base {
	struct catalog_id base, start; /* as in struct clone */
	struct layer_growth more; /* than the base it had: the clone has grown by so much less */
};
void layer_set_base(struct layer *l, const struct layer_base *to);

/* The clone ends with no run.  The same. */
void layer_leave_run(struct layer *l);

/*
 * The clone ends with its run, whichever of us dies first.  Nobody will ever look for what was synced in it, so
 * layer_sync() persists nothing until layer_leave_run().
 */
void layer_set_passing(struct layer *l, bool passing);

/* A limit like the clone's quota, which ends with the layer; the lower one counts.  0: none. */
void layer_set_ceiling(struct layer *l, uint64_t ceiling);

/* A limit of layer_usage.inodes, which ends with the layer too: beyond it -ENOSPC.  0: none. */
void layer_set_nodes_ceiling(struct layer *l, uint64_t ceiling);

const char *layer_name(const struct layer *l); /* of the clone */
/* As the clone is. */
bool layer_is_private(const struct layer *l);
bool layer_hides_xattrs(const struct layer *l);
