/*
 * current.c - what the calling thread is handling, and for whom.
 */
#include <assert.h>

#include "base/sys.h"
#include "cowfs/fuse/mount-i.h"
#include "cowfs/fuse/ops.h"
#include "cowfs/fuse/request.h"

static _Thread_local struct request *current;

struct request *request_current(void)
{
	assert(current != NULL);
	return current;
}

void request_set_current(struct request *rq)
{
	current = rq;
}

struct layer *ops_layer(fuse_req_t req)
{
	const struct mount *m = fuse_req_userdata(req);

	return m->layer;
}

bool ops_hides_xattrs(fuse_req_t req)
{
	const struct mount *m = fuse_req_userdata(req);

	return m->no_xattrs;
}

struct layer_call ops_call(fuse_req_t req)
{
	const struct fuse_ctx *ctx = fuse_req_ctx(req);

	return (struct layer_call){
		.uid = ctx->uid,
		.gid = ctx->gid,
		.umask = ctx->umask,
		.may_wait = request_current()->may_wait,
	};
}

/* Where ids may be mapped the kernel tells them only of who makes something. */
bool ops_from_root(fuse_req_t req)
{
	const struct fuse_ctx *ctx = fuse_req_ctx(req);

	return ctx->uid == 0 || (ctx->uid == (uid_t)-1 && sys_task_is_root(ctx->pid));
}
