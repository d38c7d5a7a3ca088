/*
 * xattr.c - extended attributes: a set that is stored, or one in memory in its place.
 */
#include "cowfs/store/xattrs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>

#include "base/bytes.h"
#include "cowfs/core/acl.h"
#include "cowfs/core/layer-i.h"

/* The set of a node, borrowed until the operation ends; an empty one if it has none. */
static int find_set(struct op *op, const struct node *n, struct buf *ret)
{
	const struct cached *o;
	int r;

	*ret = BUF_INIT;
	if (n->new_xattrs) {
		*ret = *n->new_xattrs;
		return 0;
	}
	if (object_id_is_zero(&n->xattrs))
		return 0;
	r = op_object(op, OBJECT_XATTRS, &n->xattrs, &o);
	if (r >= 0)
		r = xattrs_verify(o->data, o->len, op->err);
	if (r >= 0) {
		/* Nobody writes through it. */
		memcpy(&ret->data, &o->data, sizeof(ret->data));
		ret->len = o->len;
	}
	return r;
}

/* --- looking ---------------------------------------------------------------------------- */

int node_find_xattr(struct op *op, const struct node *n, const char *name, struct xattr *ret)
{
	struct buf set;
	int r;

	r = find_set(op, n, &set);
	if (r < 0)
		return r;
	return set.len > 0 && xattrs_find(&set, name, strlen(name), ret);
}

static ssize_t get_value(struct op *op, uint64_t id, const char *name, void *value, size_t size)
{
	struct xattr x;
	struct node *n;
	int r;

	r = node_get(op->l, id, &n);
	if (r >= 0)
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
	int r;

	r = node_get(op->l, id, &n);
	if (r >= 0)
		r = find_set(op, n, &set);
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

/* The attributes of a set as a list with room for one more. */
static int list_set(const struct buf *set, struct xattr **ret, size_t *ret_n)
{
	struct xattr *list, x;
	size_t n = 0, pos = 0;

	while (set->len > 0 && xattrs_next(set, &pos, &x))
		n++;
	list = calloc(n + 1, sizeof(*list));
	if (!list)
		return -ENOMEM;
	pos = 0;
	for (size_t i = 0; i < n; i++)
		xattrs_next(set, &pos, &list[i]);
	*ret = list;
	*ret_n = n;
	return 0;
}

int xattr_set_new(const struct xattr *list, size_t n, struct buf **ret)
{
	struct buf *set = calloc(1, sizeof(*set));
	int r = set ? 0 : -ENOMEM;

	if (r >= 0)
		r = xattrs_encode(list, n, set, NULL);
	if (r < 0) {
		free(set);
		return r == -E2BIG ? -ENOSPC : r;
	}
	*ret = set;
	return 0;
}

void xattr_set_free(struct buf *set)
{
	if (set)
		buf_done(set);
	free(set);
}

void node_set_xattrs(struct node *n, struct buf *set)
{
	xattr_set_free(n->new_xattrs);
	n->new_xattrs = set;
	n->xattrs = (struct object_id){ 0 };
}

static size_t find_in(const struct xattr *list, size_t n, const char *name)
{
	const size_t len = strlen(name);
	size_t i = 0;

	while (i < n && bytes_compare(list[i].name, list[i].name_len, name, len) != 0)
		i++;
	return i;
}

int node_edit_xattrs(struct op *op, const struct node *n, const char *name, const void *value,
		     size_t size, struct buf **ret)
{
	AUTO_FREE struct xattr *list = NULL;
	struct buf set;
	size_t n_list, i;
	int r;

	r = find_set(op, n, &set);
	if (r >= 0)
		r = list_set(&set, &list, &n_list);
	if (r < 0)
		return r;
	i = find_in(list, n_list, name);
	if (value) {
		list[i] = (struct xattr){ name, strlen(name), value, size };
		n_list += i == n_list;
	} else if (i < n_list) {
		list[i] = list[--n_list];
	}
	return xattr_set_new(list, n_list, ret);
}

/* `value` NULL: take it away. */
static int change(struct op *op, struct node *n, const char *name, const void *value, size_t size,
		  int flags)
{
	struct buf *set;
	struct xattr x;
	int r;

	r = node_find_xattr(op, n, name, &x);
	if (r > 0 && (flags & XATTR_CREATE))
		return -EEXIST;
	if (r == 0 && (!value || (flags & XATTR_REPLACE)))
		return -ENODATA;
	if (r >= 0)
		r = node_edit_xattrs(op, n, name, value, size, &set);
	if (r < 0)
		return r;
	node_set_xattrs(n, set);
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
	int r;

	r = layers_room(op->l->all, 0, &op->need);
	if (r >= 0)
		r = node_get(op->l, id, &n);
	if (r >= 0)
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
	int r;

	r = node_get(op->l, id, &n);
	if (r >= 0)
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
