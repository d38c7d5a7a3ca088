/*
 * node-xattr.c - the attributes of a node: a stored set, or one in memory in its place.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "cowfs/core/layer-i.h"
#include "cowfs/store/xattrs.h"

/* The set of a node, borrowed until the operation ends; an empty one if it has none. */
int node_xattrs(struct op *op, const struct node *n, struct buf *ret)
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
	if (r < 0)
		return r;
	r = xattrs_verify(o->data, o->len, op->err);
	if (r < 0)
		return r;
	/* Nobody writes through it. */
	memcpy(&ret->data, &o->data, sizeof(ret->data));
	ret->len = o->len;
	return r;
}

int node_find_xattr(struct op *op, const struct node *n, const char *name, struct xattr *ret)
{
	struct buf set;
	int r = node_xattrs(op, n, &set);

	if (r < 0)
		return r;
	return set.len > 0 && xattrs_find(&set, name, strlen(name), ret);
}

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
	CLEANUP(xattr_set_free_p) struct buf *set = calloc(1, sizeof(*set));
	int r;

	if (!set)
		return -ENOMEM;
	r = xattrs_encode(list, n, set, NULL);
	if (r < 0)
		return r == -E2BIG ? -ENOSPC : r;
	*ret = TAKE_PTR(set);
	return 0;
}

void xattr_set_free(struct buf *set)
{
	if (set)
		buf_done(set);
	free(set);
}

void node_set_xattrs(struct layer *l, struct node *n, struct buf *set, size_t before)
{
	charge_xattrs(l, n, before, set->len);
	layer_count(l, node_dirty_xattrs(n->new_xattrs, set));
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
		     size_t size, struct buf **ret, size_t *ret_before)
{
	CLEANUP(xattr_set_free_p) struct buf *edited = NULL;
	AUTO_FREE struct xattr *list = NULL;
	struct buf set;
	size_t n_list, i;
	int r;

	*ret = NULL;
	r = node_xattrs(op, n, &set);
	if (r < 0)
		return r;
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
	*ret_before = set.len;
	r = xattr_set_new(list, n_list, &edited);
	if (r < 0)
		return r;
	if (edited->len > set.len)
		r = charge_may(op->l, 0, edited->len - set.len);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(edited);
	return r;
}
