#include "cowfs/fuse/ops.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#if __has_include(<sys/sysmacros.h>)
#include <sys/sysmacros.h>
#endif

#include "base/attr.h"
#include "base/vec.h"
#include "cowfs/fuse/echo.h"
#include "cowfs/fuse/mount-i.h"

void op_lookup(fuse_req_t req, fuse_ino_t dir, const char *name)
{
	const struct layer_call call = ops_call(req);
	struct layer_found found = { 0 };
	struct err err = { 0 };
	bool brief;
	int r;

	if (echo_lookup(req, dir, name))
		return;
	r = layer_lookup(ops_layer(req), &call, dir, name, &found, &err);
	if (r >= 0 && mount_hides(fuse_req_userdata(req), found.st.st_ino)) {
		layer_forget(ops_layer(req), found.node, 1);
		fuse_reply_err(req, EACCES);
		return;
	}
	brief = echo_awaits(fuse_req_userdata(req), dir, name);
	if (r == -ENOENT) {
		/* Node 0 means "no such name" and is remembered; an ENOENT error would not be. */
		const struct fuse_entry_param none = { .entry_timeout = brief ? 0 : OPS_TIMEOUT_S };

		fuse_reply_entry(req, &none);
		return;
	}
	if (brief)
		reply_found_briefly(req, r, &found, &err);
	else
		reply_found(req, r, &found, &err);
}

void op_forget(fuse_req_t req, fuse_ino_t node, uint64_t n)
{
	mount_forget(fuse_req_userdata(req), node, n);
	fuse_reply_none(req);
}

void op_forget_multi(fuse_req_t req, size_t count, struct fuse_forget_data *list)
{
	struct mount *m = fuse_req_userdata(req);

	for (size_t i = 0; i < count; i++)
		mount_forget(m, list[i].ino, list[i].nlookup);
	fuse_reply_none(req);
}

static void make(fuse_req_t req, fuse_ino_t dir, const char *name, mode_t mode, dev_t rdev)
{
	const struct layer_call call = ops_call(req);
	struct layer_found found = { 0 };
	struct err err = { 0 };
	int r;

	if (echo_make(req, dir, name, mode))
		return;
	r = layer_make(ops_layer(req), &call, dir, name, mode, rdev, &found, &err);
	/*
	 * The kernel asked because it remembers that the name is not there, which a rollback
	 * has changed and the announcement not yet reached it: ESTALE has it look again.
	 */
	if (r == -EEXIST)
		r = -ESTALE;
	reply_found(req, r, &found, &err);
}

/* The same that the clerk of a run asks for (runner/device-linux.c); a mount opens none of them. */
static bool may_be_shown(unsigned long dev)
{
	static const unsigned harmless[] = { 0, 0x103, 0x105, 0x107, 0x108, 0x109, 0x500 };

	return VEC_HAS(it, harmless, ARRAY_LEN(harmless), *it == dev);
}

int ops_announce_node(fuse_req_t req, fuse_ino_t dir, const char *value, size_t size)
{
	struct mount *m = fuse_req_userdata(req);
	char text[sizeof(m->node_name) + 16], *name;
	unsigned long dev;

	if (size >= sizeof(text) || memchr(value, '\0', size))
		return -EINVAL;
	memcpy(text, value, size);
	text[size] = '\0';
	dev = strtoul(text, &name, 10);
	if (*name != ':' || strlen(name + 1) > NAME_MAX)
		return -EINVAL;
	if (!may_be_shown(dev))
		return -EPERM;
	LOCKED(&m->lock);
	m->node_dir = dir;
	m->node_dev = (uint32_t)dev;
	strcpy(m->node_name, name + 1); // NOLINT: its length is checked
	return 0;
}

/* The device that a whiteout is to be; 0: none. */
static dev_t take_node(fuse_req_t req, fuse_ino_t dir, const char *name)
{
	struct mount *m = fuse_req_userdata(req);
	uint32_t dev = 0;

	if (!m->adopted)
		return 0;
	LOCKED(&m->lock);
	if (m->node_dir == dir && strcmp(m->node_name, name) == 0) {
		dev = m->node_dev;
		m->node_name[0] = '\0';
	}
	return makedev(dev >> 8, dev & 0xff);
}

void op_mknod(fuse_req_t req, fuse_ino_t dir, const char *name, mode_t mode, dev_t rdev)
{
	if (S_ISCHR(mode) && rdev == 0)
		rdev = take_node(req, dir, name);
	make(req, dir, name, mode, rdev);
}

void op_mkdir(fuse_req_t req, fuse_ino_t dir, const char *name, mode_t mode)
{
	make(req, dir, name, S_IFDIR | mode, 0);
}

void op_symlink(fuse_req_t req, const char *target, fuse_ino_t dir, const char *name)
{
	const struct layer_call call = ops_call(req);
	struct layer_found found = { 0 };
	struct err err = { 0 };
	int r = layer_symlink(ops_layer(req), &call, dir, name, target, &found, &err);

	reply_found(req, r, &found, &err);
}

void op_readlink(fuse_req_t req, fuse_ino_t node)
{
	char target[PATH_MAX];
	struct err err = { 0 };
	int r = layer_readlink(ops_layer(req), node, target, sizeof(target), &err);

	if (r >= (int)sizeof(target))
		r = -ENAMETOOLONG;
	if (r < 0)
		reply_error(req, r, &err);
	else
		fuse_reply_readlink(req, target);
}

void op_link(fuse_req_t req, fuse_ino_t node, fuse_ino_t dir, const char *name)
{
	const struct layer_call call = ops_call(req);
	struct layer_found found = { 0 };
	struct err err = { 0 };
	int r = layer_link(ops_layer(req), &call, node, dir, name, &found, &err);

	reply_found(req, r, &found, &err);
}

void op_unlink(fuse_req_t req, fuse_ino_t dir, const char *name)
{
	const struct layer_call call = ops_call(req);
	struct err err = { 0 };

	if (echo_remove(req, dir, name))
		return;
	reply_done(req, layer_unlink(ops_layer(req), &call, dir, name, &err), &err);
}

void op_rmdir(fuse_req_t req, fuse_ino_t dir, const char *name)
{
	const struct layer_call call = ops_call(req);
	struct err err = { 0 };

	if (echo_remove(req, dir, name))
		return;
	reply_done(req, layer_rmdir(ops_layer(req), &call, dir, name, &err), &err);
}

void op_rename(fuse_req_t req, fuse_ino_t dir, const char *name, fuse_ino_t new_dir,
	       const char *new_name, unsigned flags)
{
	const struct layer_call call = ops_call(req);
	struct err err = { 0 };
	int r = -EINVAL;
	unsigned ours;

	if (platform_rename_flags(flags, &ours))
		r = layer_rename(ops_layer(req), &call, dir, name, new_dir, new_name, ours, &err);
	reply_done(req, r, &err);
}
