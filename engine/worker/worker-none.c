#include <errno.h>

#include "engine/api/worker.h"

int engine_worker(struct engine *e, const struct engine_worker_options *options, struct err *err)
{
	return err_set(err, -ENOTSUP, "this system has no sandbox, and a worker needs one");
}
