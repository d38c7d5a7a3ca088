/*
 * The kernel passes on any name. The file system decides which exist, and here it is as in ext4.
 * ACLs are attributes that the kernel asks for when it checks permissions; the layer knows how
 * files inherit them and how they change a mode.
 */
#include "cowfs/fuse/ops.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/attr.h"
#include "base/cleanup.h"
#include "cowfs/core/acl.h"
#include "cowfs/fuse/mount-i.h"
#include "cowfs/fuse/request.h"
#include "cowfs/fuse/shift.h"
#include "cowfs/fuse/wire.h"

#define VALUE_MAX ((size_t)64 << 10) /* as the kernel has it, XATTR_SIZE_MAX and XATTR_LIST_MAX */

static bool has_prefix(const char *name, const char *prefix)
{
	return strncmp(name, prefix, strlen(prefix)) == 0;
}

/* 0, or what a name that cannot be is answered with: after ENOSYS the kernel asks for none again. */
static int check_name(fuse_req_t req, const char *name)
{
	static const char *const spaces[] = { "user.", "trusted.", "security." };

	if (ops_hides_xattrs(req))
		return -ENOSYS;
	for (size_t i = 0; i < ARRAY_LEN(spaces); i++)
		if (has_prefix(name, spaces[i]))
			return name[strlen(spaces[i])] != '\0' ? 0 : -EINVAL;
	return acl_is_name(name) && !ops_hides_acls(req) ? 0 : -EOPNOTSUPP;
}

int ops_drop_capability(fuse_req_t req, fuse_ino_t node, struct err *err)
{
	struct layer_call call;
	int r;

	if (!ops_hides_xattrs(req))
		return 0;
	call = ops_call(req);
	r = layer_removexattr(ops_layer(req), &call, node, "security.capability", err);
	return r == -ENODATA ? 0 : r;
}

/*
 * On a mount that shows every file as root's, owners are set by this name: "33:-1", in which -1 leaves one as
 * it is.  The kernel asks for CAP_SYS_ADMIN of the mount's user namespace.
 */
static bool is_owner(fuse_req_t req, const char *name)
{
	return ops_hides_acls(req) && strcmp(name, MOUNT_OWNER_NAME) == 0;
}

static int set_owner(fuse_req_t req, fuse_ino_t node, const char *value, size_t size,
		     struct err *err)
{
	const struct layer_call call = ops_call(req);
	struct stat st = { 0 }, now;
	long long uid, gid;
	unsigned set = 0;
	char text[64], end;

	if (size >= sizeof(text))
		return -EINVAL;
	memcpy(text, value, size);
	text[size] = '\0';
	if (sscanf(text, "%lld:%lld%c", &uid, &gid, &end) != 2 || uid < -1 || gid < -1 ||
	    uid >= UINT32_MAX || gid >= UINT32_MAX)
		return -EINVAL;
	st.st_uid = (uid_t)uid;
	st.st_gid = (gid_t)gid;
	set |= uid >= 0 ? LAYER_SET_UID : 0;
	set |= gid >= 0 ? LAYER_SET_GID : 0;
	return set == 0 ? 0 : layer_setattr(ops_layer(req), &call, node, &st, set, &now, err);
}

/* The owner that is stored; its length. */
static ssize_t get_owner(fuse_req_t req, fuse_ino_t node, char *value, size_t room, struct err *err)
{
	struct stat st;
	int r = layer_getattr(ops_layer(req), node, &st, err);
	char text[64];
	int n;

	if (r < 0)
		return r;
	n = snprintf(text, sizeof(text), "%u:%u", (unsigned)st.st_uid, (unsigned)st.st_gid);
	if (room > 0 && (size_t)n > room)
		return -ERANGE;
	if (room > 0)
		memcpy(value, text, (size_t)n);
	return n;
}

static bool is_node(fuse_req_t req, const char *name)
{
	const struct mount *m = fuse_req_userdata(req);

	return m->adopted && strcmp(name, MOUNT_NODE_NAME) == 0;
}

void op_setxattr(fuse_req_t req, fuse_ino_t node, const char *name, const char *value, size_t size,
		 int flags)
{
	const struct wire_setxattr set = wire_setxattr(request_current());
	const struct layer_call call = ops_call(req);
	struct err err = { 0 };
	int r;

	if (set.kills_sgid)
		flags |= LAYER_ACL_KILL_SGID;
	r = check_name(req, set.name);
	if (r == 0 && is_owner(req, set.name))
		r = set_owner(req, node, set.value, size, &err);
	else if (r == 0 && is_node(req, set.name))
		r = ops_announce_node(req, node, set.value, size);
	else if (r == 0)
		r = layer_setxattr(ops_layer(req), &call, node, set.name, set.value, size, flags,
				   &err);
	reply_done(req, r, &err);
}

void op_getxattr(fuse_req_t req, fuse_ino_t node, const char *name, size_t size)
{
	const struct layer_call call = ops_call(req);
	const size_t room = size < VALUE_MAX ? size : VALUE_MAX;
	AUTO_FREE char *value = NULL;
	struct err err = { 0 };
	ssize_t n = check_name(req, name);

	if (n == 0 && room > 0)
		value = malloc(room);
	if (n == 0 && room > 0 && value == NULL)
		n = -ENOMEM;
	if (n == 0 && is_owner(req, name))
		n = get_owner(req, node, value, room, &err);
	else if (n == 0)
		n = layer_getxattr(ops_layer(req), &call, node, name, value, room, &err);
	if (n > 0 && room > 0 && acl_is_name(name))
		shift_acl_out(&request_current()->mount->shift, value, (size_t)n);
	reply_xattr(req, n, value, room, &err);
}

/* Keep the names that are one's to see, as ext4 does; their length. */
static size_t keep_visible(fuse_req_t req, char *list, size_t len)
{
	size_t kept = 0;

	for (size_t at = 0, n; at < len; at += n) {
		n = strlen(list + at) + 1;
		if (check_name(req, list + at) < 0 ||
		    (has_prefix(list + at, "trusted.") && !ops_from_root(req)))
			continue;
		memmove(list + kept, list + at, n);
		kept += n;
	}
	return kept;
}

void op_listxattr(fuse_req_t req, fuse_ino_t node, size_t size)
{
	const struct layer_call call = ops_call(req);
	AUTO_FREE char *list = malloc(VALUE_MAX);
	struct err err = { 0 };
	ssize_t n = -ENOMEM;

	if (ops_hides_xattrs(req))
		n = -ENOSYS;
	else if (list != NULL)
		n = layer_listxattr(ops_layer(req), &call, node, list, VALUE_MAX, &err);
	if (n > 0)
		n = (ssize_t)keep_visible(req, list, (size_t)n);
	if (n > 0 && size > 0 && (size_t)n > size)
		n = -ERANGE;
	reply_xattr(req, n, list, size, &err);
}

void op_removexattr(fuse_req_t req, fuse_ino_t node, const char *name)
{
	const struct layer_call call = ops_call(req);
	struct err err = { 0 };
	int r = check_name(req, name);

	if (r == 0)
		r = layer_removexattr(ops_layer(req), &call, node, name, &err);
	reply_done(req, r, &err);
}
