/*
 * node-acl.c - the access control lists of nodes, and the modes that go with them.
 */
#include <errno.h>
#include <string.h>

#include "cowfs/core/acl.h"
#include "cowfs/core/layer-i.h"
#include "cowfs/store/xattrs.h"

#define PERMISSIONS ((uint32_t)0777)

/*
 * A list that is stored: 1, and a copy of it (owned) to be changed; 0 if there is none; or
 * -EAGAIN.  *ret is borrowed until the operation ends.
 */
static int copy_acl(struct op *op, const struct node *n, const char *name, struct xattr *ret,
		    void **ret_copy)
{
	int r = node_find_xattr(op, n, name, ret);

	if (r > 0 && acl_check(ret->value, ret->value_len) < 0)
		r = -EINVAL;
	if (r <= 0)
		return r;
	*ret_copy = malloc(ret->value_len);
	if (!*ret_copy)
		return -ENOMEM;
	memcpy(*ret_copy, ret->value, ret->value_len);
	return 1;
}

int node_set_acl(struct op *op, struct node *n, const char *name, const void *acl, size_t len,
		 int flags)
{
	const bool access = strcmp(name, ACL_ACCESS) == 0;
	uint32_t mode = n->mode;
	struct buf *set;
	size_t before;
	int r;

	if (S_ISLNK(n->mode))
		return -EOPNOTSUPP;
	if (!access && !node_is_dir(n))
		return -EACCES;
	r = acl_check(acl, len);
	if (r < 0)
		return r;
	if (access) {
		mode = (mode & ~PERMISSIONS) | acl_mode(acl, len);
		if (flags & LAYER_ACL_KILL_SGID)
			mode &= ~(uint32_t)S_ISGID;
	}
	r = node_edit_xattrs(op, n, name, access && acl_is_mode(acl, len) ? NULL : acl, len, &set,
			     &before);
	if (r < 0)
		return r;
	n->mode = mode;
	node_set_xattrs(op->l, n, set, before);
	node_touch(op->l, n, false);
	return 0;
}

int node_chmod_acl(struct op *op, const struct node *n, uint32_t mode, struct buf **ret,
		   size_t *ret_before)
{
	AUTO_FREE void *acl = NULL;
	struct xattr now;
	int r = copy_acl(op, n, ACL_ACCESS, &now, &acl);

	if (r <= 0)
		return r;
	acl_chmod(acl, now.value_len, mode);
	return node_edit_xattrs(op, n, ACL_ACCESS, acl, now.value_len, ret, ret_before);
}

int node_inherit_acl(struct op *op, const struct node *dir, uint32_t *mode, struct buf **ret)
{
	AUTO_FREE void *acl = NULL;
	struct xattr above, list[2];
	uint32_t granted;
	size_t n = 0;
	int r;

	if (S_ISLNK(*mode))
		return 0;
	r = copy_acl(op, dir, ACL_DEFAULT, &above, &acl);
	if (r == 0)
		*mode &= ~(op->call->umask & PERMISSIONS);
	if (r <= 0)
		return r;
	granted = acl_inherit(acl, above.value_len, *mode);
	if (!acl_is_mode(acl, above.value_len))
		list[n++] = (struct xattr){ ACL_ACCESS, strlen(ACL_ACCESS), acl, above.value_len };
	if (S_ISDIR(*mode))
		list[n++] = above;
	r = n > 0 ? xattr_set_new(list, n, ret) : 0;
	if (r < 0)
		return r;
	*mode = granted;
	return r;
}
