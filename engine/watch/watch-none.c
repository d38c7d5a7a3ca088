#include <errno.h>

#include "engine/watch/watch-i.h"

bool reach_ask(uint64_t (*look)(void *ctx), void *ctx, uint64_t *ret)
{
	*ret = look(ctx);
	return true;
}

int watch_loop(struct engine *e, struct docket_lock *lock, bool once,
	       int (*ready)(void *ctx, struct err *err), void *ctx, struct err *err)
{
	return err_set(err, -ENOTSUP, "this build cannot watch files on this system");
}
