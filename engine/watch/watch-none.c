#include <errno.h>

#include "engine/watch/watch-i.h"

int watch_loop(struct engine *e, struct docket_lock *lock, bool once,
	       int (*ready)(void *ctx, struct err *err), void *ctx, struct err *err)
{
	return err_set(err, -ENOTSUP, "this build cannot watch files on this system");
}
