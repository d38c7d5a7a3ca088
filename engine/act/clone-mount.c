/*
 * clone-mount.c - mount and unmount a clone for a command.
 */
#include "engine/act/acts-i.h"
#include "engine/host/host-i.h"

int clone_mount(struct task *task, const char *name, char **ret_path, struct err *err)
{
	CLEANUP(turn_give_p) struct turn *turn = NULL;
	CLEANUP(clone_done) struct clone clone = { 0 };
	AUTO_FREE char *path = live_path(task->host, name);
	int r;

	if (!path)
		return err_nomem(err);
	r = turns_take(&task->host->turns, name, &turn, err);
	if (r < 0)
		return r;
	r = clone_find(task->engine.store, name, &clone, err);
	if (r < 0)
		return r;
	r = live_mount(task->host, name, err);
	if (r < 0)
		return r;
	*ret_path = TAKE_PTR(path);
	return r;
}

int clone_umount(struct task *task, const char *name, bool force, struct err *err)
{
	CLEANUP(turn_give_p) struct turn *turn = NULL;
	CLEANUP(clone_done) struct clone clone = { 0 };
	int r = turns_take(&task->host->turns, name, &turn, err);

	if (r < 0)
		return r;
	r = clone_find(task->engine.store, name, &clone, err);
	return r < 0 ? r : live_end(task->host, name, LIVE_UNMOUNT, force, err);
}
