#include "engine/host/task-i.h"

#include <errno.h>

#include "engine/host/host-i.h"

static int may_read(void *host, const char *dir, struct err *err)
{
	return host_may_read(host, dir, err);
}

struct task task_of(struct host *h)
{
	return (struct task){
		.engine = {
			.store_path = h->dir,
			.no_symlinks = true,
			.store = h->store,
			.mode = STORE_WRITE,
			.may_read = may_read,
			.may_read_ctx = h,
		},
		.host = h,
	};
}

int task_may_read(const struct task *task, const char *path, struct err *err)
{
	return task->engine.may_read(task->engine.may_read_ctx, path, err);
}

int task_wanted(const struct task *task, struct err *err)
{
	if (!task->left || !task->left(task->left_ctx))
		return 0;
	return err_set(err, -ECONNABORTED, "nobody waits for it any more");
}
