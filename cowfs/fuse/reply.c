#include "cowfs/fuse/ops.h"

#include <assert.h>
#include <errno.h>

#include "base/log.h"
#include "cowfs/fuse/mount-i.h"
#include "cowfs/fuse/request.h"

/* The sentence stops travelling here, so it is logged here.  Damage becomes EIO for the program. */
int reply_errno(int r, const struct err *err)
{
	assert(r < 0); /* replying 0 would report success */
	if (err->code == r)
		log_warn("%s", err->msg);
	return r == -EBADMSG ? EIO : -r;
}

void reply_error(fuse_req_t req, int r, const struct err *err)
{
	struct request *rq = request_current();

	if (r == -EAGAIN && !rq->may_wait) {
		rq->later = true;
		fuse_reply_none(req);
		return;
	}
	fuse_reply_err(req, reply_errno(r, err));
}

void reply_done(fuse_req_t req, int r, const struct err *err)
{
	if (r < 0)
		reply_error(req, r, err);
	else
		fuse_reply_err(req, 0);
}

void reply_attr(fuse_req_t req, int r, const struct stat *st, const struct err *err)
{
	struct stat shown;

	if (r < 0) {
		reply_error(req, r, err);
		return;
	}
	shown = *st;
	ops_show(&shown);
	shown.st_blksize = OPS_BLOCK_SIZE;
	fuse_reply_attr(req, &shown, OPS_TIMEOUT_S);
}

struct fuse_entry_param reply_entry_of(const struct layer_found *found)
{
	struct fuse_entry_param e = {
		.ino = found->node,
		.attr = found->st,
		.attr_timeout = OPS_TIMEOUT_S,
		.entry_timeout = OPS_TIMEOUT_S,
	};

	ops_show(&e.attr);
	e.attr.st_blksize = OPS_BLOCK_SIZE;
	return e;
}

static void reply_found_for(fuse_req_t req, int r, const struct layer_found *found, double timeout,
			    const struct err *err)
{
	struct mount *m = fuse_req_userdata(req);
	struct fuse_entry_param e;

	if (r >= 0) {
		r = mount_know(m, found->node);
		if (r < 0)
			layer_forget(m->layer, found->node, 1);
	}
	if (r < 0) {
		reply_error(req, r, err);
		return;
	}
	e = reply_entry_of(found);
	e.entry_timeout = timeout;
	if (fuse_reply_entry(req, &e) < 0) {
		/* The connection is gone, and the kernel never took the reference. */
		mount_forget(m, found->node, 1);
	}
}

void reply_found(fuse_req_t req, int r, const struct layer_found *found, const struct err *err)
{
	reply_found_for(req, r, found, OPS_TIMEOUT_S, err);
}

void reply_found_briefly(fuse_req_t req, int r, const struct layer_found *found,
			 const struct err *err)
{
	reply_found_for(req, r, found, 0, err);
}

void reply_xattr(fuse_req_t req, ssize_t n, const void *data, size_t room, const struct err *err)
{
	if (n < 0)
		reply_error(req, (int)n, err);
	else if (room == 0)
		fuse_reply_xattr(req, (size_t)n);
	else
		fuse_reply_buf(req, data, (size_t)n);
}
