/*
 * partly.c - large files that are changed while they are promised (docs/design/lazy.md).
 *
 * Such a file has its promise underneath and its own blocks over it, like any file that is being
 * changed. Two more rules hold. No block of its own shows promised bytes: bytes around a partial
 * change are read first, so a promise that is lost takes no bytes that a caller relies on. And it
 * exists in memory only: its promise is kept before anything is persisted.
 *
 * Only a file that nobody can change before its promise is kept may become partly promised; for any
 * other the first change waits until all of it is.
 */
#include <errno.h>

#include "base/log.h"
#include "base/vec.h"
#include "cowfs/core/file-i.h"
#include "cowfs/core/layers-i.h"

/*
 * A program that calls fsync waits for all of them, and the watchdog ends a mount that does not answer for
 * long.  So there are only so many bytes, or one file.
 */
static bool is_too_much(const struct layer *l, const struct node *n)
{
	return l->n_partly > 0 && l->partly_bytes + n->file.base.size > l->all->options.partly_max;
}

/*
 * Nothing is persisted before their promises are kept, and that takes room for all that was promised.  Where
 * there may be none, the first change says so, and not the persist of all else.
 */
static bool lacks_room(const struct layer *l, const struct node *n)
{
	struct layers *ls = l->all;
	const int64_t more = (int64_t)(l->partly_bytes + n->file.base.size);

	if (ls->dirty + more > ls->room_until)
		layers_look_at_disk(ls);
	return ls->dirty + more > ls->room_until;
}

int node_get_partly(struct op *op, uint64_t id, struct node **ret)
{
	struct layer *l = op->l;
	struct node *n;
	int r = node_get_file(l, id, &n);

	if (r < 0)
		return r;
	*ret = n;
	if (n->file.base.form != CONTENT_LAZY || node_is_partly(n))
		return 0;
	if (n->file.size < PROMISE_PEEK_MIN || l->whole_only || layer_is_warm(l) ||
	    is_too_much(l, n) || lacks_room(l, n))
		return node_get_bytes(op, id, ret);
	if (!object_id_equal(&n->file.base.id, &op->asked)) {
		op->need = (struct need){ .kind = NEED_SURETY, .object.id = n->file.base.id };
		return -EAGAIN;
	}
	/* Without memory to remember it by, all of it is kept first. */
	if (!op->sure || (!n->listed && !VEC_ROOM(l->partly, l->n_partly, l->cap_partly)))
		return node_get_bytes(op, id, ret);
	return 0;
}

void partly_note(struct layer *l, struct node *n)
{
	if (n->listed || !node_is_partly(n))
		return;
	l->has_partly = true;
	l->partly[l->n_partly++] = n->id; /* node_get_partly() has made room */
	l->partly_bytes += n->file.base.size;
	n->listed = true;
}

/* --- blocks that are changed in part ------------------------------------------------------ */

/* Does [off, end) cover a part of the block, and would promised bytes show beside that? */
static bool is_mixed(const struct file *f, uint64_t number, uint64_t off, uint64_t end)
{
	if (extents_at(f, number) || file_shows(f, number) == 0)
		return false;
	return block_below(number, off) > 0 ||
	       block_below(number, end) < block_below(number, f->size);
}

static int own_block(struct op *op, struct node *n, uint64_t number)
{
	struct file *f = &n->file;
	const uint32_t shows = file_shows(f, number);
	const uint64_t before = f->data;
	int64_t grown = 0;
	int r;

	if (!op->block.data || op->block.number != number ||
	    !object_id_equal(&op->block.promise, &f->base.id)) {
		op->need =
		    (struct need){ .kind = NEED_BLOCK, .object.id = f->base.id, .number = number };
		return -EAGAIN;
	}
	if (op->block.len < shows)
		return node_get_bytes(op, n->id, &n);
	r = file_write(f, op->l->cache, block_start(number), op->block.data, shows, &grown,
		       &op->need);
	layer_count(op->l, grown);
	node_count_data(op->l, n, before);
	if (r < 0)
		return r;
	node_mark(op->l, n);
	partly_note(op->l, n);
	return 0;
}

int partly_own(struct op *op, struct node *n, uint64_t off, uint64_t len)
{
	const uint64_t end = off + len;
	uint64_t edge[2];
	int r = 0;

	if (n->file.base.form != CONTENT_LAZY || len == 0)
		return 0;
	edge[0] = off / FILE_BLOCK;
	edge[1] = (end - 1) / FILE_BLOCK;
	for (size_t i = 0; i < 2 && r >= 0 && n->file.base.form == CONTENT_LAZY; i++)
		if (is_mixed(&n->file, edge[i], off, end))
			r = own_block(op, n, edge[i]);
	return r;
}

/* --- before all is persisted -------------------------------------------------------------- */

/* As if it had never been changed; but its size and times stay. */
static void lose(struct layer *l, struct node *n, struct err *err)
{
	const struct content lost = { .form = CONTENT_LAZY,
				      .id = n->file.base.id,
				      .size = n->file.size,
				      .data = n->file.size };
	const uint64_t before = n->file.data;

	layer_count(l, -(int64_t)file_memory(&n->file));
	file_done(&n->file);
	file_init(&n->file, &lost);
	node_count_data(l, n, before);
	node_mark(l, n);
	n->lost = true;
	log_error("clone '%s': what was written to a file is lost with it: %s", layer_name(l),
		  err->msg);
}

/* The node, if it is still partly promised. */
static struct node *find_node(struct layer *l, uint64_t id)
{
	struct node *n;

	return node_get_file(l, id, &n) >= 0 && node_is_partly(n) ? n : NULL;
}

/* It is the last of the list. */
static void unlist(struct layer *l)
{
	struct node *n;

	if (node_get_file(l, l->partly[--l->n_partly], &n) >= 0)
		n->listed = false;
	if (l->n_partly == 0) {
		l->partly_bytes = 0;
		l->has_partly = false;
	}
}

static int keep_one(struct layer *l, uint64_t id, struct err *err)
{
	struct node *n = find_node(l, id);
	struct object_id promise;
	struct content content;
	int r, lost = 0;

	if (!n)
		return 0;
	promise = n->file.base.id;
	pthread_mutex_unlock(&l->lock);
	r = layers_keep_promise(l->all, &promise, &content, err);
	if (r == -EIO || r == -ESTALE)
		lost = layers_hurry_promise(l->all, &promise); /* and no failure that may pass? */
	pthread_mutex_lock(&l->lock);
	n = find_node(l, id);
	if (!n || !object_id_equal(&n->file.base.id, &promise))
		return 0;
	if (lost < 0)
		lose(l, n, err);
	if (r >= 0 && content.size != n->file.base.size)
		r = err_set(err, -EBADMSG, "a promise was kept with another size");
	if (r >= 0)
		node_stand_on(l, n, &content);
	return lost < 0 ? -EIO : r;
}

int partly_keep(struct layer *l, struct err *err)
{
	int r, lost = 0;

	l->whole_only = true;
	while (l->n_partly > 0) {
		const uint64_t id = l->partly[l->n_partly - 1];

		r = keep_one(l, id, err);
		if (r < 0 && find_node(l, id)) {
			l->failed = r;
			return r;
		}
		unlist(l);
		if (r < 0)
			lost = r;
	}
	return lost;
}

bool partly_is_lost(struct layer *l, uint64_t id)
{
	struct node *n;

	return node_get_file(l, id, &n) >= 0 && n->lost && n->file.base.form == CONTENT_LAZY;
}
