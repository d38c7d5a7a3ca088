/*
 * charge.c - the charge to a clone for inodes, names, targets of symlinks and extended attributes,
 * besides the bytes of its files.
 *
 * A little of it is free, so that a limit of so many bytes leaves so many for files. If a stored
 * file is removed unread, its attributes are unknown and not credited.
 */
#include <errno.h>
#include <string.h>

#include "cowfs/core/layer-i.h"

/* What one of them takes, in memory and in the store, beside its text. */
#define NODE_CHARGE 192
#define NAME_CHARGE 64

#define FREE_OF_CHARGE ((int64_t)1 << 20)

int64_t charge_of_entry(const struct tree_entry *e)
{
	return NODE_CHARGE + (int64_t)e->target_len;
}

int64_t charge_of_name(size_t len)
{
	return NAME_CHARGE + (int64_t)len;
}

static int64_t charge_of(const struct node *n)
{
	return NODE_CHARGE + n->xattr_len + (S_ISLNK(n->mode) ? (int64_t)strlen(n->target) : 0);
}

uint64_t layer_charged(const struct layer *l)
{
	const int64_t more = l->meta > FREE_OF_CHARGE ? l->meta - FREE_OF_CHARGE : 0;

	return (uint64_t)((l->grown > 0 ? l->grown : 0) + more);
}

int charge_may(struct layer *l, unsigned nodes, size_t bytes)
{
	const uint64_t limit = layer_limit(l);
	const bool free = l->meta + (int64_t)bytes <= FREE_OF_CHARGE;

	if (nodes > 0 && l->nodes_ceiling > 0 && l->inodes >= (int64_t)l->nodes_ceiling) {
		l->nodes_refused++;
		return -ENOSPC;
	}
	if (limit == 0 || free)
		return 0;
	if (layer_charged(l) + bytes <= limit)
		return 0;
	l->refused++;
	return -ENOSPC;
}

void charge_node(struct layer *l, const struct node *n, int sign)
{
	l->inodes += sign;
	l->meta += sign * charge_of(n);
}

void charge_name(struct layer *l, const char *name, int sign)
{
	l->meta += sign * charge_of_name(strlen(name));
}

void charge_loose(struct layer *l, const struct node *n, int sign)
{
	l->loose_meta += sign * charge_of(n);
}

void charge_xattrs(struct layer *l, struct node *n, size_t before, size_t now)
{
	const int64_t more = (int64_t)now - (int64_t)before;

	l->meta += more;
	if (node_has_no_name(n))
		l->loose_meta += (int64_t)now - n->xattr_len;
	n->xattr_len = (uint32_t)now;
}

void charge_learn_xattrs(struct layer *l, struct node *n)
{
	const struct cached *o;

	if (n->xattr_len > 0 || object_id_is_zero(&n->xattrs))
		return;
	o = cache_find(l->cache, OBJECT_XATTRS, &n->xattrs);
	if (o)
		n->xattr_len = (uint32_t)o->len;
	cached_unref(o);
}

void layer_set_nodes_ceiling(struct layer *l, uint64_t ceiling)
{
	LOCKED(&l->lock);
	l->nodes_ceiling = ceiling;
}
