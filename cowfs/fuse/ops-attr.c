#include "cowfs/fuse/ops.h"

#include <errno.h>
#include <time.h>
#include <unistd.h>

#include "base/attr.h"
#include "base/sys.h"
#include "cowfs/fuse/echo.h"

void op_getattr(fuse_req_t req, fuse_ino_t node, struct fuse_file_info *fi)
{
	struct err err = { 0 };
	struct stat st;
	int r = layer_getattr(ops_layer(req), node, &st, &err);

	reply_attr(req, r, &st, &err);
}

/*
 * The kernel sends this for access(2) and chdir(2), and only where it checks no permissions itself.
 * The caller is root, who may do anything but execute a file that nobody may execute.
 */
void op_access(fuse_req_t req, fuse_ino_t node, int mask)
{
	struct err err = { 0 };
	struct stat st;
	int r = 0;

	if (mask & X_OK)
		r = layer_getattr(ops_layer(req), node, &st, &err);
	if (r == 0 && (mask & X_OK) && !S_ISDIR(st.st_mode) && !(st.st_mode & 0111))
		r = -EACCES;
	reply_done(req, r, &err);
}

/* The kernel's words for what shall be set, in ours; "now" becomes a time in `st`. */
static unsigned what_to_set(int theirs, struct stat *st)
{
	static const struct {
		int theirs;
		unsigned ours;
	} known[] = {
		{ FUSE_SET_ATTR_MODE, LAYER_SET_MODE },
		{ FUSE_SET_ATTR_UID, LAYER_SET_UID },
		{ FUSE_SET_ATTR_GID, LAYER_SET_GID },
		{ FUSE_SET_ATTR_SIZE, LAYER_SET_SIZE },
		{ FUSE_SET_ATTR_ATIME, LAYER_SET_ATIME },
		{ FUSE_SET_ATTR_MTIME, LAYER_SET_MTIME },
		{ FUSE_SET_ATTR_CTIME, LAYER_SET_CTIME },
		{ FUSE_SET_ATTR_ATIME_NOW, LAYER_SET_ATIME },
		{ FUSE_SET_ATTR_MTIME_NOW, LAYER_SET_MTIME },
		{ FUSE_SET_ATTR_KILL_SUID, LAYER_KILL_PRIV }, /* the protocol's KILL_SUIDGID */
	};
	struct timespec now;
	unsigned ours = 0;

	for (size_t i = 0; i < ARRAY_LEN(known); i++)
		if (theirs & known[i].theirs)
			ours |= known[i].ours;
	if (theirs & (FUSE_SET_ATTR_ATIME_NOW | FUSE_SET_ATTR_MTIME_NOW)) {
		clock_gettime(CLOCK_REALTIME, &now);
		if (theirs & FUSE_SET_ATTR_ATIME_NOW)
			SYS_ST_ATIM(st) = now;
		if (theirs & FUSE_SET_ATTR_MTIME_NOW)
			SYS_ST_MTIM(st) = now;
	}
	return ours;
}

void op_setattr(fuse_req_t req, fuse_ino_t node, struct stat *st, int set,
		struct fuse_file_info *fi)
{
	const struct layer_call call = ops_call(req);
	const unsigned ours = what_to_set(set, st);
	struct err err = { 0 };
	struct stat now;
	int r = 0;

	if (echo_setattr(req, node))
		return;
	if (ours & (LAYER_SET_SIZE | LAYER_SET_UID | LAYER_SET_GID))
		r = ops_drop_capability(req, node, &err);
	if (r == 0)
		r = layer_setattr(ops_layer(req), &call, node, st, ours, &now, &err);
	reply_attr(req, r, &now, &err);
}

void op_statfs(fuse_req_t req, fuse_ino_t node)
{
	struct err err = { 0 };
	struct statvfs st = { 0 };
	int r = layer_statfs(ops_layer(req), &st, &err);

	if (r < 0)
		reply_error(req, r, &err);
	else
		fuse_reply_statfs(req, &st);
}
