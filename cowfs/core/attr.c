#include <errno.h>

#include "base/sys.h"
#include "cowfs/core/layer-i.h"

int layer_getattr(struct layer *l, uint64_t node, struct stat *ret, struct err *err)
{
	LOCKED(&l->lock);
	struct node *n;
	int r = node_get(l, node, &n);

	if (r < 0)
		return r;
	n->told = true;
	node_stat(n, ret);
	return r;
}

/*
 * Without the right to execute, set-gid gives nobody anything; but it may come to mean something with
 * a later chmod, so a writer outside of the group takes it away, as on other file systems.  A
 * change of the owner (`call` NULL) leaves it.
 */
void node_kill_priv(const struct layer_call *call, struct node *n)
{
	if (node_is_dir(n))
		return;
	n->mode &= ~(uint32_t)S_ISUID;
	if ((n->mode & S_IXGRP) || (call && call->gid != n->gid))
		n->mode &= ~(uint32_t)S_ISGID;
}

static int set_size(struct op *op, struct node *n, off_t size)
{
	const uint64_t before = n->file.data;
	int64_t grown = 0;
	int r;

	if (size < 0)
		return -EINVAL;
	r = file_truncate(&n->file, (uint64_t)size, &grown);
	layer_count(op->l, grown);
	node_count_data(op->l, n, before);
	if (r < 0)
		return r;
	partly_note(op->l, n);
	n->mtime = layer_now();
	return r;
}

static void set_fields(const struct layer_call *call, struct node *n, const struct stat *st,
		       unsigned set)
{
	if (set & LAYER_SET_MODE)
		n->mode = (n->mode & S_IFMT) | (st->st_mode & 07777);
	if (set & LAYER_SET_UID)
		n->uid = st->st_uid;
	if (set & LAYER_SET_GID)
		n->gid = st->st_gid;
	if (set & LAYER_KILL_PRIV)
		node_kill_priv(set & (LAYER_SET_UID | LAYER_SET_GID) ? NULL : call, n);
	if (set & LAYER_SET_ATIME)
		n->atime = SYS_ST_ATIM(st);
	if (set & LAYER_SET_MTIME)
		n->mtime = SYS_ST_MTIM(st);
	n->ctime = set & LAYER_SET_CTIME ? SYS_ST_CTIM(st) : layer_now();
}

static int set_attr(struct op *op, uint64_t id, const struct stat *st, unsigned set,
		    struct stat *ret)
{
	CLEANUP(xattr_set_free_p) struct buf *xattrs = NULL;
	size_t before = 0;
	struct node *n;
	int r;

	if (!(set & LAYER_SET_SIZE))
		r = node_get(op->l, id, &n);
	else if (st->st_size == 0)
		r = node_get_file(op->l, id, &n); /* nothing of it stays, so nobody need have it */
	else
		r = node_get_partly(op, id, &n);
	if (r < 0)
		return r;
	r = op_may_change(op);
	if (r < 0)
		return r;
	if (set & LAYER_SET_MODE)
		r = node_chmod_acl(op, n, st->st_mode, &xattrs, &before);
	if (r < 0)
		return r;
	if (set & LAYER_SET_SIZE)
		r = set_size(op, n, st->st_size);
	if (r < 0)
		return r;
	set_fields(op->call, n, st, set);
	if (xattrs)
		node_set_xattrs(op->l, n, TAKE_PTR(xattrs), before);
	node_mark(op->l, n);
	node_stat(n, ret);
	return 0;
}

int layer_setattr(struct layer *l, const struct layer_call *call, uint64_t node,
		  const struct stat *st, unsigned set, struct stat *ret, struct err *err)
{
	CLEANUP(op_end) struct op op = op_begin(l, call, err);
	int r;

	do
		r = set_attr(&op, node, st, set, ret);
	while (op_again(&op, &r));
	return r;
}

static void narrow(struct statvfs *st, uint64_t all, uint64_t left)
{
	const fsblkcnt_t blocks = left / st->f_frsize;

	if (all / st->f_frsize < st->f_blocks)
		st->f_blocks = all / st->f_frsize;
	st->f_bfree = blocks < st->f_bfree ? blocks : st->f_bfree;
	st->f_bavail = blocks < st->f_bavail ? blocks : st->f_bavail;
}

int layer_statfs(struct layer *l, struct statvfs *ret, struct err *err)
{
	struct store *s = layers_store(l->all);
	uint64_t quota, used;
	int r = layers_statvfs(l->all, ret);

	if (r < 0)
		return r;
	pthread_mutex_lock(&l->lock);
	quota = layer_limit(l);
	used = layer_charged(l);
	pthread_mutex_unlock(&l->lock);
	ret->f_namemax = TREE_NAME_LEN_MAX;
	if (store_limit(s) > 0)
		narrow(ret, store_limit(s), store_limit_left(s));
	if (quota > 0)
		narrow(ret, quota, used < quota ? quota - used : 0);
	return 0;
}

void layer_usage(struct layer *l, struct layer_usage *ret)
{
	LOCKED(&l->lock);
	*ret = (struct layer_usage){
		.quota = l->record.quota,
		.used = l->grown > 0 ? (uint64_t)l->grown : 0,
		.charged = layer_charged(l),
		.inodes = l->inodes > 0 ? (uint64_t)l->inodes : 0,
		.nodes = l->nodes.n,
		.refused = l->refused,
		.nodes_refused = l->nodes_refused,
		.switches = l->switches,
		.changed = l->marked,
	};
}
