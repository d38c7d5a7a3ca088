/*
 * ops.h - private to fuse/: the handlers, and their ways to answer.
 *
 * A handler unpacks a request, calls the layer and replies once; it decides nothing. If the layer
 * would have to wait and this thread must not, reply_error() has the request handled again
 * (request.h), so -EAGAIN needs no case of its own.
 */
#pragma once

#define FUSE_USE_VERSION 314
#include <fuse_lowlevel.h>

#include "cowfs/core/layer.h"

/* Nothing changes but through this mount, or with an announcement: the kernel may remember for long. */
#define OPS_TIMEOUT_S 1e6

/* What stdio and cp(1) make their buffers by. */
#define OPS_BLOCK_SIZE 65536

extern const struct fuse_lowlevel_ops ops;

struct layer *ops_layer(fuse_req_t req);
struct layer_call ops_call(fuse_req_t req);
void ops_show(struct stat *st);     /* have its owner be the one that users of the mount see */
bool ops_from_root(fuse_req_t req); /* the caller may do what only root may */
bool ops_hides_xattrs(fuse_req_t req);
bool ops_hides_acls(fuse_req_t req); /* they name users that the mount does not have */

/* Of a file whose content or owner changes.  The kernel sees to that where it sees attributes. */
NODISCARD int ops_drop_capability(fuse_req_t req, fuse_ino_t node, struct err *err);

/* --- reply.c ---------------------------------------------------------------------------- */

int reply_errno(int r, const struct err *err); /* r < 0: the errno that a program gets */
void reply_error(fuse_req_t req, int r, const struct err *err); /* likewise */
void reply_done(fuse_req_t req, int r, const struct err *err);  /* r == 0, or a failure */
void reply_attr(fuse_req_t req, int r, const struct stat *st, const struct err *err);

/* A node that the layer gave a reference for, which becomes the kernel's. */
void reply_found(fuse_req_t req, int r, const struct layer_found *found, const struct err *err);
/* The same, and the kernel asks again for the name. */
void reply_found_briefly(fuse_req_t req, int r, const struct layer_found *found,
			 const struct err *err);
struct fuse_entry_param reply_entry_of(const struct layer_found *found);

/* The length that was asked for, or as many bytes of `data`. */
void reply_xattr(fuse_req_t req, ssize_t n, const void *data, size_t room, const struct err *err);

/* --- ops-name.c ------------------------------------------------------------------------- */

void op_lookup(fuse_req_t req, fuse_ino_t dir, const char *name);
void op_forget(fuse_req_t req, fuse_ino_t node, uint64_t n);
void op_forget_multi(fuse_req_t req, size_t count, struct fuse_forget_data *list);
/* The value of MOUNT_NODE_NAME of a directory. */
NODISCARD int ops_announce_node(fuse_req_t req, fuse_ino_t dir, const char *value, size_t size);
void op_mknod(fuse_req_t req, fuse_ino_t dir, const char *name, mode_t mode, dev_t rdev);
void op_mkdir(fuse_req_t req, fuse_ino_t dir, const char *name, mode_t mode);
void op_symlink(fuse_req_t req, const char *target, fuse_ino_t dir, const char *name);
void op_readlink(fuse_req_t req, fuse_ino_t node);
void op_link(fuse_req_t req, fuse_ino_t node, fuse_ino_t dir, const char *name);
void op_unlink(fuse_req_t req, fuse_ino_t dir, const char *name);
void op_rmdir(fuse_req_t req, fuse_ino_t dir, const char *name);
void op_rename(fuse_req_t req, fuse_ino_t dir, const char *name, fuse_ino_t new_dir,
	       const char *new_name, unsigned flags);

/* --- ops-dir.c -------------------------------------------------------------------------- */

void op_readdir(fuse_req_t req, fuse_ino_t dir, size_t size, off_t off, struct fuse_file_info *fi);
void op_readdirplus(fuse_req_t req, fuse_ino_t dir, size_t size, off_t off,
		    struct fuse_file_info *fi);

/* --- ops-attr.c ------------------------------------------------------------------------- */

void op_getattr(fuse_req_t req, fuse_ino_t node, struct fuse_file_info *fi);
void op_setattr(fuse_req_t req, fuse_ino_t node, struct stat *st, int set,
		struct fuse_file_info *fi);
void op_access(fuse_req_t req, fuse_ino_t node, int mask);
void op_statfs(fuse_req_t req, fuse_ino_t node);

/* --- ops-xattr.c ------------------------------------------------------------------------ */

void op_setxattr(fuse_req_t req, fuse_ino_t node, const char *name, const char *value, size_t size,
		 int flags);
void op_getxattr(fuse_req_t req, fuse_ino_t node, const char *name, size_t size);
void op_listxattr(fuse_req_t req, fuse_ino_t node, size_t size);
void op_removexattr(fuse_req_t req, fuse_ino_t node, const char *name);

/* --- ops-file.c ------------------------------------------------------------------------- */

void op_open(fuse_req_t req, fuse_ino_t node, struct fuse_file_info *fi);
void op_opendir(fuse_req_t req, fuse_ino_t dir, struct fuse_file_info *fi);
void op_read(fuse_req_t req, fuse_ino_t node, size_t size, off_t off, struct fuse_file_info *fi);
void op_write(fuse_req_t req, fuse_ino_t node, const char *data, size_t size, off_t off,
	      struct fuse_file_info *fi);
void op_fallocate(fuse_req_t req, fuse_ino_t node, int mode, off_t off, off_t len,
		  struct fuse_file_info *fi);
void op_lseek(fuse_req_t req, fuse_ino_t node, off_t off, int whence, struct fuse_file_info *fi);
void op_copy_file_range(fuse_req_t req, fuse_ino_t from, off_t from_off,
			struct fuse_file_info *from_fi, fuse_ino_t to, off_t to_off,
			struct fuse_file_info *to_fi, size_t len, int flags);
void op_fsync(fuse_req_t req, fuse_ino_t node, int data_only, struct fuse_file_info *fi);
void op_ioctl(fuse_req_t req, fuse_ino_t node, unsigned cmd, void *arg, struct fuse_file_info *fi,
	      unsigned flags, const void *in, size_t in_size, size_t out_size);
