/*
 * xattr.c - reading and changing extended attributes; access lists are among them.
 */
#include "cowfs/store/xattrs.h"

#include <errno.h>
#include <string.h>
#include <sys/xattr.h>

#include "cowfs/core/acl.h"
#include "cowfs/core/layer-i.h"

/* --- looking ---------------------------------------------------------------------------- */

static ssize_t get_value(struct op *op, uint64_t id, const char *name, void *value, size_t size)
{
	struct xattr x;
	struct node *n;
	int r = node_get(op->l, id, &n);

	if (r < 0)
		return r;
	r = node_find_xattr(op, n, name, &x);
	if (r <= 0)
		return r < 0 ? r : -ENODATA;
	if (size > 0 && x.value_len > size)
		return -ERANGE;
	if (size > 0)
		memcpy(value, x.value, x.value_len);
	return (ssize_t)x.value_len;
}

ssize_t layer_getxattr(struct layer *l, const struct layer_call *call, uint64_t node,
		       const char *name, void *value, size_t size, struct err *err)
{
	CLEANUP(op_end) struct op op = op_begin(l, call, err);
	ssize_t len;
	int r;

	do {
		len = get_value(&op, node, name, value, size);
		r = len < 0 ? (int)len : 0;
	} while (op_again(&op, &r));
	return r < 0 ? r : len;
}

static ssize_t list_names(struct op *op, uint64_t id, char *list, size_t size)
{
	size_t pos = 0, len = 0;
	struct xattr x;
	struct node *n;
	struct buf set;
	int r = node_get(op->l, id, &n);

	if (r < 0)
		return r;
	r = node_xattrs(op, n, &set);
	if (r < 0)
		return r;
	while (set.len > 0 && xattrs_next(&set, &pos, &x)) {
		if (size > 0 && len + x.name_len + 1 > size)
			return -ERANGE;
		if (size > 0) {
			memcpy(list + len, x.name, x.name_len);
			list[len + x.name_len] = '\0';
		}
		len += x.name_len + 1;
	}
	return (ssize_t)len;
}

ssize_t layer_listxattr(struct layer *l, const struct layer_call *call, uint64_t node, char *list,
			size_t size, struct err *err)
{
	CLEANUP(op_end) struct op op = op_begin(l, call, err);
	ssize_t len;
	int r;

	do {
		len = list_names(&op, node, list, size);
		r = len < 0 ? (int)len : 0;
	} while (op_again(&op, &r));
	return r < 0 ? r : len;
}

/* --- changing --------------------------------------------------------------------------- */

/* `value` NULL: take it away. */
static int change(struct op *op, struct node *n, const char *name, const void *value, size_t size,
		  int flags)
{
	struct buf *set;
	struct xattr x;
	size_t before;
	int r = node_find_xattr(op, n, name, &x);

	if (r > 0 && (flags & XATTR_CREATE))
		return -EEXIST;
	if (r == 0 && (!value || (flags & XATTR_REPLACE)))
		return -ENODATA;
	if (r < 0)
		return r;
	r = node_edit_xattrs(op, n, name, value, size, &set, &before);
	if (r < 0)
		return r;
	node_set_xattrs(op->l, n, set, before);
	node_touch(op->l, n, false);
	return 0;
}

/* Linux does not say whether a list was there. */
static int take_away(struct op *op, struct node *n, const char *name)
{
	const int r = change(op, n, name, NULL, 0, 0);

	return r == -ENODATA && acl_is_name(name) ? 0 : r;
}

static int set_value(struct op *op, uint64_t id, const char *name, const void *value, size_t size,
		     int flags)
{
	struct node *n;
	int r = layers_room(op->l, 0, &op->need);

	if (r < 0)
		return r;
	r = node_get(op->l, id, &n);
	if (r < 0)
		return r;
	r = op_may_change(op);
	if (r < 0)
		return r;
	if (!acl_is_name(name))
		return change(op, n, name, value, size, flags);
	return acl_is_empty(value, size) ? take_away(op, n, name)
					 : node_set_acl(op, n, name, value, size, flags);
}

static int remove_value(struct op *op, uint64_t id, const char *name)
{
	struct node *n;
	int r = node_get(op->l, id, &n);

	if (r < 0)
		return r;
	r = op_may_change(op);
	return r < 0 ? r : take_away(op, n, name);
}

int layer_setxattr(struct layer *l, const struct layer_call *call, uint64_t node, const char *name,
		   const void *value, size_t size, int flags, struct err *err)
{
	CLEANUP(op_end) struct op op = op_begin(l, call, err);
	int r;

	if (*name == '\0' || strlen(name) > XATTR_NAME_LEN_MAX)
		return -ERANGE;
	if (size > XATTR_VALUE_LEN_MAX)
		return -E2BIG;
	do
		r = set_value(&op, node, name, value ? value : "", size, flags);
	while (op_again(&op, &r));
	return r;
}

int layer_removexattr(struct layer *l, const struct layer_call *call, uint64_t node,
		      const char *name, struct err *err)
{
	CLEANUP(op_end) struct op op = op_begin(l, call, err);
	int r;

	do
		r = remove_value(&op, node, name);
	while (op_again(&op, &r));
	return r;
}
