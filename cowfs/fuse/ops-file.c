#include "cowfs/fuse/ops.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "cowfs/fuse/platform.h"
#include "cowfs/fuse/request.h"
#include "cowfs/fuse/wire.h"

/* Nothing is kept for an open file: ENOSYS, and the kernel never asks again, nor tells of closing. */
void op_open(fuse_req_t req, fuse_ino_t node, struct fuse_file_info *fi)
{
	fuse_reply_err(req, ENOSYS);
}

void op_opendir(fuse_req_t req, fuse_ino_t dir, struct fuse_file_info *fi)
{
	fuse_reply_err(req, ENOSYS);
}

void op_read(fuse_req_t req, fuse_ino_t node, size_t size, off_t off, struct fuse_file_info *fi)
{
	const struct layer_call call = ops_call(req);
	struct layer_bytes bytes = { 0 };
	struct err err = { 0 };
	int r;

	if (size > LAYER_IO_MAX)
		size = LAYER_IO_MAX;
	r = layer_read(ops_layer(req), &call, node, (uint64_t)off, size, &bytes, &err);
	if (r < 0) {
		reply_error(req, r, &err);
		return;
	}
	fuse_reply_iov(req, bytes.iov, bytes.n);
	layer_bytes_done(&bytes);
}

/*
 * Set-id bits went with a write.  The kernel forgets size and times by itself, not the mode.  To
 * drop attributes alone waits for nobody, so this may be done while answering.
 */
static void forget_mode(fuse_ino_t node)
{
	IGNORE_RESULT(wire_invalidate(request_current()->mount, node, true),
		      "without a connection the kernel remembers nothing");
}

void op_write(fuse_req_t req, fuse_ino_t node, const char *data, size_t size, off_t off,
	      struct fuse_file_info *fi)
{
	struct layer_call call = ops_call(req);
	const bool kill_priv = wire_write_kills_priv(request_current());
	struct err err = { 0 };
	int r;

	call.writer = (uint32_t)fuse_req_ctx(req)->pid;
	r = ops_drop_capability(req, node, &err);
	if (r == 0)
		r = layer_write(ops_layer(req), &call, node, (uint64_t)off, data, size, kill_priv,
				&err);
	if (r < 0) {
		reply_error(req, r, &err);
		return;
	}
	if (r > 0)
		forget_mode(node);
	fuse_reply_write(req, size);
}

/*
 * With HANDLE_KILLPRIV_V2 the kernel leaves set-id bits to us, and a request of this sort does not say
 * whether its caller may keep them.  Root may.
 */
static int kill_priv(fuse_req_t req, const struct layer_call *call, fuse_ino_t node,
		     struct err *err)
{
	struct stat st;
	int r = ops_drop_capability(req, node, err);

	if (r == 0)
		r = layer_getattr(ops_layer(req), node, &st, err);
	if (r < 0 || !(st.st_mode & (S_ISUID | S_ISGID)) || ops_from_root(req))
		return r;
	r = layer_setattr(ops_layer(req), call, node, &st, LAYER_KILL_PRIV, &st, err);
	if (r < 0)
		return r;
	forget_mode(node);
	return r;
}

void op_fallocate(fuse_req_t req, fuse_ino_t node, int mode, off_t off, off_t len,
		  struct fuse_file_info *fi)
{
	const struct layer_call call = ops_call(req);
	struct err err = { 0 };
	unsigned flags;
	int r;

	if (!platform_allocate_flags(mode, &flags))
		r = -EOPNOTSUPP;
	else
		r = kill_priv(req, &call, node, &err);
	if (r == 0)
		r = layer_allocate(ops_layer(req), &call, node, flags, (uint64_t)off, (uint64_t)len,
				   &err);
	reply_done(req, r, &err);
}

void op_lseek(fuse_req_t req, fuse_ino_t node, off_t off, int whence, struct fuse_file_info *fi)
{
	const struct layer_call call = ops_call(req);
	struct err err = { 0 };
	uint64_t at;
	int r = -EINVAL;

	if (whence == SEEK_DATA || whence == SEEK_HOLE)
		r = layer_seek(ops_layer(req), &call, node, (uint64_t)off, whence == SEEK_HOLE, &at,
			       &err);
	if (r < 0)
		reply_error(req, r, &err);
	else
		fuse_reply_lseek(req, (off_t)at);
}

void op_copy_file_range(fuse_req_t req, fuse_ino_t from, off_t from_off,
			struct fuse_file_info *from_fi, fuse_ino_t to, off_t to_off,
			struct fuse_file_info *to_fi, size_t len, int flags)
{
	const struct layer_call call = ops_call(req);
	struct err err = { 0 };
	ssize_t n = flags != 0 ? -EINVAL : kill_priv(req, &call, to, &err);

	if (n == 0)
		n = layer_copy(ops_layer(req), &call, from, (uint64_t)from_off, to,
			       (uint64_t)to_off, len, &err);
	if (n < 0)
		reply_error(req, (int)n, &err);
	else
		fuse_reply_write(req, (size_t)n);
}

void op_fsync(fuse_req_t req, fuse_ino_t node, int data_only, struct fuse_file_info *fi)
{
	struct err err = { 0 };

	reply_done(req, layer_sync(ops_layer(req), node, &err), &err);
}

void op_ioctl(fuse_req_t req, fuse_ino_t node, unsigned cmd, void *arg, struct fuse_file_info *fi,
	      unsigned flags, const void *in, size_t in_size, size_t out_size)
{
	fuse_reply_err(req, ENOTTY);
}
