#include "remote/pack/outbound.h"

#include <errno.h>
#include <stdlib.h>

#include "base/vec.h"
#include "cowfs/store/cache.h"
#include "cowfs/store/root.h"
#include "cowfs/store/tree.h"
#include "cowfs/store/xattrs.h"
#include "remote/pack/digest-table.h"
#include "remote/pack/outbound-i.h"
#include "remote/pack/portable.h"

/* Trees that are read twice, a little later the second time. */
#define TREES_MAX ((size_t)8 << 20)

struct outbound {
	struct store *store;
	struct digests *known;
	const struct outbound_sink *sink;
	struct digest_table sent; /* in this run */
	struct outbound_ahead *ahead;
	struct buf object;  /* room */
	struct buf encoded; /* room */
};

static bool is_there(const struct outbound *o, enum object_kind kind, const struct digest *d)
{
	return digest_table_find(&o->sent, kind, d) || o->sink->has(o->sink->ctx, kind, d);
}

/* Send an object unless it is there. */
static int send(struct outbound *o, enum object_kind kind, const struct digest *d, const void *data,
		size_t len, struct err *err)
{
	int r;

	if (is_there(o, kind, d))
		return 0;
	r = digest_table_add(&o->sent, kind, d, 0);
	if (r < 0)
		return err_nomem(err);
	return o->sink->put(o->sink->ctx, kind, d, data, len, err);
}

/* A chunk or a set of attributes, which travels as it is. */
static int send_plain(struct outbound *o, enum object_kind kind, const struct object_id *id,
		      struct digest *ret, struct err *err)
{
	const struct outbound_ahead_chunk *c;
	const struct buf *bytes;
	int r;

	if (digests_find(o->known, kind, id, ret) && is_there(o, kind, ret))
		return 0;
	c = kind == OBJECT_CHUNK ? outbound_ahead_take(o->ahead, id) : NULL;
	if (!c) {
		r = store_require(o->store, kind, id, &o->object, err);
		if (r < 0)
			return r;
	}
	bytes = c ? &c->bytes : &o->object;
	*ret = c ? c->digest : digest_of(bytes->data, bytes->len);
	if (digests_add(o->known, kind, id, ret) < 0)
		return err_nomem(err);
	return send(o, kind, ret, bytes->data, bytes->len, err);
}

/* --- large files -------------------------------------------------------------------------- */

/* A node of the store and, borrowed from it, where its ids are. */
struct node {
	struct buf bytes;
	struct recipe_view view;
	struct portable_recipe portable;
};

static void node_free(struct node *n)
{
	if (n)
		buf_done(&n->bytes);
	free(n);
}
DEFINE_CLEANUP(struct node *, node_free)

static int send_recipe(struct outbound *o, const struct object_id *id, struct digest *ret,
		       struct err *err)
{
	CLEANUP(node_free_p) struct node *n = NULL;
	int r;

	if (digests_find(o->known, OBJECT_RECIPE, id, ret) && is_there(o, OBJECT_RECIPE, ret))
		return 0;
	n = calloc(1, sizeof(*n));
	if (!n)
		return err_nomem(err);
	r = cache_require(o->store, OBJECT_RECIPE, id, &n->bytes, err);
	if (r == 0)
		r = recipe_view(n->bytes.data, n->bytes.len, &n->view, err);
	if (r < 0)
		return r;
	n->portable.level = n->view.level;
	n->portable.n = n->view.n;
	for (unsigned i = 0; i < n->view.n; i++) {
		const struct object_id child = recipe_view_id(&n->view, i);

		if (object_id_is_zero(&child))
			continue;
		/* The level falls with each step: six are the most. */
		r = n->view.level == 0
			? send_plain(o, OBJECT_CHUNK, &child, &n->portable.slot[i], err)
			: send_recipe(o, &child, &n->portable.slot[i], err);
		if (r < 0)
			return r;
	}
	if (portable_recipe_encode(&n->portable, &o->encoded) < 0)
		return err_nomem(err);
	*ret = digest_of(o->encoded.data, o->encoded.len);
	if (digests_add(o->known, OBJECT_RECIPE, id, ret) < 0)
		return err_nomem(err);
	return send(o, OBJECT_RECIPE, ret, o->encoded.data, o->encoded.len, err);
}

/* --- directories -------------------------------------------------------------------------- */

struct dir {
	struct portable_leaf leaf;
	struct digest *leaves; /* that were sent */
	size_t n, cap;
};

static void dir_done(struct dir *d)
{
	portable_leaf_done(&d->leaf);
	free(d->leaves);
}

static int send_leaf(struct outbound *o, struct dir *d, struct err *err)
{
	struct digest digest;
	int r;

	if (d->n >= PORTABLE_BRANCH_LEAVES)
		return err_set(err, -EFBIG, "a directory has too many names to be pushed");
	if (portable_leaf_seal(&d->leaf) < 0 || !VEC_ROOM(d->leaves, d->n, d->cap))
		return err_nomem(err);
	digest = digest_of(d->leaf.bytes.data, d->leaf.bytes.len);
	r = send(o, OBJECT_TREE, &digest, d->leaf.bytes.data, d->leaf.bytes.len, err);
	if (r < 0)
		return r;
	d->leaves[d->n++] = digest;
	portable_leaf_reset(&d->leaf);
	return 0;
}

static int send_tree(struct outbound *o, const struct object_id *tree, unsigned depth,
		     struct digest *ret, struct err *err);

static int step(const struct outbound *o, uint64_t files, struct err *err)
{
	return o->sink->step ? o->sink->step(o->sink->ctx, files, err) : 0;
}

/* One that is there counts with all below it, so that the files add up to those of the root. */
static int send_dir(struct outbound *o, const struct tree_entry *e, unsigned depth,
		    struct digest *ret, struct err *err)
{
	if (digests_find(o->known, OBJECT_TREE, &e->id, ret) && is_there(o, OBJECT_TREE, ret))
		return step(o, e->below.files, err);
	return send_tree(o, &e->id, depth, ret, err);
}

static int send_entry(struct outbound *o, const struct tree_entry *e, unsigned depth,
		      struct portable_entry *p, struct err *err)
{
	int r = 0;

	/* Nobody could fetch what nobody has. */
	if (e->form == TREE_LAZY)
		return err_set(err, -EIO,
			       "'%.*s' was promised and is not captured: a snapshot without its "
			       "bytes cannot be pushed",
			       (int)e->name_len, e->name);
	*p = (struct portable_entry){ .e = *e };
	if (e->form == TREE_CHUNK)
		r = send_plain(o, OBJECT_CHUNK, &e->id, &p->content, err);
	else if (e->form == TREE_RECIPE)
		r = send_recipe(o, &e->id, &p->content, err);
	else if (e->form == TREE_DIR)
		r = send_dir(o, e, depth + 1, &p->content, err);
	if (r < 0 || object_id_is_zero(&e->xattrs))
		return r;
	p->has_xattrs = true;
	return send_plain(o, OBJECT_XATTRS, &e->xattrs, &p->xattrs, err);
}

/* What the last leaf leaves: the directory itself, or one node more that lists the leaves. */
static int send_top(struct outbound *o, struct dir *d, struct digest *ret, struct err *err)
{
	int r = d->leaf.n > 0 || d->n == 0 ? send_leaf(o, d, err) : 0;

	if (r < 0)
		return r;
	if (d->n == 1) {
		*ret = d->leaves[0];
		return 0;
	}
	if (portable_branch(d->leaves, d->n, &o->encoded) < 0)
		return err_nomem(err);
	*ret = digest_of(o->encoded.data, o->encoded.len);
	return send(o, OBJECT_TREE, ret, o->encoded.data, o->encoded.len, err);
}

static int send_tree(struct outbound *o, const struct object_id *tree, unsigned depth,
		     struct digest *ret, struct err *err)
{
	CLEANUP(tree_iter_free_p) struct tree_iter *it = NULL;
	CLEANUP(dir_done) struct dir d = { 0 };
	struct portable_entry p;
	struct tree_entry e;
	uint64_t files = 0;
	int r;

	if (depth > OUTBOUND_DEPTH_MAX)
		return err_set(err, -ELOOP, "directories are nested too deep to be pushed");
	if (digests_find(o->known, OBJECT_TREE, tree, ret) && is_there(o, OBJECT_TREE, ret))
		return 0;
	r = tree_iter_new(o->store, tree, &it, err);
	while (r >= 0 && (r = tree_iter_next(it, &e, err)) > 0) {
		r = send_entry(o, &e, depth, &p, err);
		if (r < 0)
			return r;
		files += e.form != TREE_DIR;
		if (portable_leaf_add(&d.leaf, &p) < 0)
			return err_nomem(err);
		if (portable_leaf_ends(&d.leaf, e.name, e.name_len))
			r = send_leaf(o, &d, err);
	}
	if (r < 0)
		return r;
	r = send_top(o, &d, ret, err);
	if (r < 0)
		return r;
	if (digests_add(o->known, OBJECT_TREE, tree, ret) < 0)
		return err_nomem(err);
	return step(o, files, err);
}

static bool is_sent(void *ctx, enum object_kind kind, const struct object_id *id)
{
	const struct outbound *o = ctx;
	struct digest d;

	return digests_find(o->known, kind, id, &d) && is_there(o, kind, &d);
}

static int send_root(struct outbound *o, const struct object_id *root, struct digest *ret,
		     struct err *err)
{
	const struct cache_limits limits = { .meta_bytes = TREES_MAX };
	CLEANUP(cache_free_p) struct cache *trees = NULL;
	CLEANUP(outbound_ahead_free_p) struct outbound_ahead *ahead = NULL;
	int r = cache_new(o->store, &limits, &trees, err);

	if (r < 0)
		return r;
	cache_share(trees);
	r = outbound_ahead_new(o->store, root, is_sent, o, &ahead, err);
	o->ahead = ahead;
	return r < 0 ? r : send_tree(o, root, 0, ret, err);
}

int outbound_root(struct store *s, struct digests *known, const struct object_id *root,
		  const struct outbound_sink *sink, struct digest *ret, struct err *err)
{
	struct outbound o = { .store = s, .known = known, .sink = sink };
	int r = send_root(&o, root, ret, err);

	digest_table_done(&o.sent);
	buf_done(&o.object);
	buf_done(&o.encoded);
	return r;
}
