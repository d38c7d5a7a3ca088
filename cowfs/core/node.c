/*
 * node.c - nodes by number, and how long they live.
 *
 * A node is in memory as long as somebody refers to it, or it differs from its stored form, or
 * either is true of something below it. When the last reason goes it is taken out of its
 * directories, which may have been the last reason for those.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/sys.h"
#include "cowfs/core/layer-i.h"
#include "cowfs/core/listing-i.h"
#include "cowfs/store/pin.h"

#define BLOCK_SIZE   4096 /* what space is counted in, as file systems do */
#define IO_SIZE      ((size_t)64 << 10)
#define SECTOR       512
#define DIR_SIZE     4096
#define NO_SUCH_NODE (-ESTALE)

/* --- finding ---------------------------------------------------------------------------- */

int node_get(struct layer *l, uint64_t id, struct node **ret)
{
	struct node *n = map_get(&l->nodes, &id);

	if (!n)
		return NO_SUCH_NODE;
	*ret = n;
	return 0;
}

int node_get_dir(struct layer *l, uint64_t id, struct node **ret)
{
	int r = node_get(l, id, ret);

	return r >= 0 && !node_is_dir(*ret) ? -ENOTDIR : r;
}

int node_get_file(struct layer *l, uint64_t id, struct node **ret)
{
	int r = node_get(l, id, ret);

	if (r < 0 || S_ISREG((*ret)->mode))
		return r;
	return node_is_dir(*ret) ? -EISDIR : -EINVAL;
}

/* --- making ----------------------------------------------------------------------------- */

int node_new(struct layer *l, uint32_t mode, struct node **ret)
{
	static const struct content nothing = { .form = CONTENT_HOLE };
	struct node *n = calloc(1, sizeof(*n));
	int r;

	if (!n)
		return -ENOMEM;
	n->id = l->next_node;
	n->mode = mode;
	if (S_ISREG(mode))
		file_init(&n->file, &nothing);
	else if (S_ISDIR(mode))
		n->dir.entries = MAP_INIT(map_hash_str, map_equal_str);
	r = map_add(&l->nodes, &n->id, n, NULL);
	if (r < 0) {
		free(n);
		return r;
	}
	l->next_node++;
	layers_count_node(l->all, 1);
	*ret = n;
	return 0;
}

int node_from_entry(struct layer *l, const struct tree_entry *e, struct node **ret)
{
	struct content content;
	struct node *n;
	int r = node_new(l, e->mode, &n);

	if (r < 0)
		return r;
	n->ino = e->ino;
	n->rdev = e->rdev;
	n->uid = e->uid;
	n->gid = e->gid;
	n->mtime = (struct timespec){ .tv_sec = e->mtime_s, .tv_nsec = e->mtime_ns };
	n->ctime = (struct timespec){ .tv_sec = e->ctime_s, .tv_nsec = e->ctime_ns };
	n->atime = n->mtime;
	n->xattrs = e->xattrs;
	n->nlink = e->nlink ? e->nlink : 1;
	if (node_is_dir(n)) {
		n->dir.base = e->id;
		n->dir.below = e->below;
	} else if (S_ISREG(e->mode)) {
		content = tree_entry_content(e);
		file_init(&n->file, &content);
	} else if (S_ISLNK(e->mode)) {
		n->target = strndup(e->target, e->target_len);
		if (!n->target) {
			node_destroy(l, n);
			return -ENOMEM;
		}
	}
	*ret = n;
	return 0;
}

/* --- letting go ------------------------------------------------------------------------- */

struct node_pins {
	struct object_ref list[2]; /* its content and its attributes */
	size_t n;
};

static void keep_object(struct layer *l, struct node_pins *k, enum object_kind kind,
			const struct object_id *id)
{
	if (store_pin(layers_store(l->all), kind, id, NULL) >= 0)
		k->list[k->n++] = (struct object_ref){ .kind = kind, .id = *id };
}

void node_keep(struct layer *l, struct node *n)
{
	const struct content *c = S_ISREG(n->mode) ? &n->file.base : NULL;
	const bool has_content = c && c->form != CONTENT_HOLE && c->form != CONTENT_LAZY;
	const bool has_xattrs = !object_id_is_zero(&n->xattrs);
	struct node_pins *k;

	if (!has_content && !has_xattrs)
		return;
	/* Without memory for it a gc may take the file from a program that has it open, which gets EIO. */
	k = calloc(1, sizeof(*k));
	if (!k)
		return;
	if (has_content)
		keep_object(l, k, c->form == CONTENT_CHUNK ? OBJECT_CHUNK : OBJECT_RECIPE, &c->id);
	if (has_xattrs)
		keep_object(l, k, OBJECT_XATTRS, &n->xattrs);
	node_unkeep(l, n);
	n->kept = k;
}

void node_unkeep(struct layer *l, struct node *n)
{
	for (size_t i = 0; n->kept && i < n->kept->n; i++)
		store_unpin(layers_store(l->all), n->kept->list[i].kind, &n->kept->list[i].id);
	free(n->kept);
	n->kept = NULL;
}

void node_count_data(struct layer *l, const struct node *n, uint64_t before)
{
	const int64_t more = (int64_t)(n->file.data - before);

	l->grown += more;
	if (node_has_no_name(n))
		l->loose += more;
}

void node_orphan(struct layer *l, struct node *n)
{
	if (S_ISREG(n->mode))
		l->loose += (int64_t)n->file.data;
	charge_learn_xattrs(l, n);
	charge_loose(l, n, 1);
	node_keep(l, n);
}

void node_leave_strays(struct node *n)
{
	if (!n->stray_at)
		return;
	*n->stray_at = n->next_stray;
	if (n->next_stray)
		n->next_stray->stray_at = n->stray_at;
	n->stray_at = NULL;
}

void node_destroy(struct layer *l, struct node *n)
{
	struct entry *e;

	map_remove(&l->nodes, &n->id);
	layers_count_node(l->all, -1);
	node_leave_strays(n);
	node_unkeep(l, n);
	layer_count(l, node_dirty_xattrs(n->new_xattrs, NULL));
	xattr_set_free(n->new_xattrs);
	if (S_ISREG(n->mode)) {
		layer_count(l, -(int64_t)file_memory(&n->file));
		file_done(&n->file);
	} else if (node_is_dir(n)) {
		for (size_t pos = 0; (e = map_next(&n->dir.entries, &pos));) {
			entry_unmark(l, e);
			free(e);
		}
		map_done(&n->dir.entries);
		listing_free(n->dir.listing);
	} else if (S_ISLNK(n->mode)) {
		free(n->target);
	}
	free(n);
}

/* Is there a reason to keep it in memory? */
static bool is_needed(const struct node *n)
{
	if (n->refs > 0 || n->pins > 0)
		return true;
	if (node_has_no_name(n))
		return false;
	if (node_is_dir(n) && n->dir.entries.n > 0)
		return true;
	if (n->linked && n->linked->marked)
		return true;
	for (const struct entry *e = n->names; e; e = e->next)
		if (e->marked)
			return true;
	return false;
}

void node_release(struct layer *l, struct node *n)
{
	while (n && !is_needed(n)) {
		/* Several names of one file may be in several directories, but then it is no directory. */
		struct node *above = n->names ? n->names->dir : NULL;

		if (S_ISREG(n->mode) && node_has_no_name(n)) {
			l->loose -= (int64_t)n->file.data;
			l->grown -= (int64_t)n->file.data;
		}
		if (node_has_no_name(n) && n != l->top && n != l->links) {
			charge_loose(l, n, -1);
			charge_node(l, n, -1);
		}
		while (n->names && n->names->next) {
			struct node *other = n->names->next->dir;

			entry_free(l, n->names->next);
			if (other != above)
				node_release(l, other);
		}
		if (n->names)
			entry_free(l, n->names);
		if (n->linked)
			entry_free(l, n->linked);
		node_destroy(l, n);
		n = above;
	}
}

void layer_forget(struct layer *l, uint64_t id, uint64_t n)
{
	struct node *node;

	LOCKED(&l->lock);
	node = map_get(&l->nodes, &id);
	if (node && node != l->top) {
		node->refs -= n < node->refs ? n : node->refs;
		if (node->refs == 0)
			node_release(l, node);
	}
}

int layer_refer(struct layer *l, uint64_t id, struct layer_found *ret)
{
	LOCKED(&l->lock);
	struct node *n;
	int r = node_get(l, id, &n);

	if (r < 0)
		return r;
	node_found(n, ret);
	return r;
}

/* --- looking ---------------------------------------------------------------------------- */

static uint64_t node_size(const struct node *n)
{
	if (S_ISREG(n->mode))
		return n->file.size;
	if (S_ISLNK(n->mode))
		return strlen(n->target);
	return node_is_dir(n) ? DIR_SIZE : 0;
}

void node_stat(const struct node *n, struct stat *ret)
{
	const uint64_t space = S_ISREG(n->mode) ? n->file.data : node_is_dir(n) ? DIR_SIZE : 0;

	*ret = (struct stat){
		.st_ino = n->ino,
		.st_mode = n->mode,
		.st_nlink = n->nlink,
		.st_uid = n->uid,
		.st_gid = n->gid,
		.st_rdev = n->rdev,
		.st_size = (off_t)node_size(n),
		.st_blksize = IO_SIZE,
		.st_blocks =
		    (blkcnt_t)((space + BLOCK_SIZE - 1) / BLOCK_SIZE * (BLOCK_SIZE / SECTOR)),
	};
	SYS_ST_ATIM(ret) = n->atime;
	SYS_ST_MTIM(ret) = n->mtime;
	SYS_ST_CTIM(ret) = n->ctime;
}

void node_found(struct node *n, struct layer_found *ret)
{
	n->refs++;
	n->told = true;
	ret->node = n->id;
	node_stat(n, &ret->st);
}

/* --- changing --------------------------------------------------------------------------- */

static void join_strays(struct layer *l, struct node *n)
{
	if (n->stray_at)
		return;
	n->next_stray = l->strays;
	n->stray_at = &l->strays;
	if (n->next_stray)
		n->next_stray->stray_at = &n->next_stray;
	l->strays = n;
}

void node_mark(struct layer *l, struct node *n)
{
	n->changed = l->generation;
	n->told = false;
	if (n->linked)
		entry_mark(l, n->linked);
	else if (n->names)
		entry_mark(l, n->names);
	else if (n == l->top)
		layer_mark(l);
	else if (S_ISREG(n->mode))
		join_strays(l, n);
	/* What has no name is not worth storing, unless its memory is wanted. */
	if (n->stray_at && layers_pressed(l->all))
		layer_mark(l);
}

void node_touch(struct layer *l, struct node *n, bool mtime)
{
	n->ctime = layer_now();
	if (mtime)
		n->mtime = n->ctime;
	node_mark(l, n);
}
