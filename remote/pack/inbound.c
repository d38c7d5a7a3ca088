/*
 * Directories are read from the top down and put from the bottom up. Each is paired with the
 * directory of the base at the same path, if there is one: an object with the digest of the base's
 * is taken over without a look into the packs.
 */
#include "remote/pack/inbound.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/path.h"
#include "base/vec.h"
#include "remote/pack/inbound-i.h"

#define HELD_MAX ((size_t)128 << 20)

/* --- what the base has -------------------------------------------------------------------- */

/* The directory of the base beside the one that is read. */
struct beside {
	struct tree_iter *it; /* NULL: there is none */
	struct tree_entry e;
	bool has; /* `e` is set */
};

static int beside_open(struct inbound *in, const struct object_id *tree, struct beside *b,
		       struct err *err)
{
	int r = tree_iter_new(in->store, tree, &b->it, err);

	if (r < 0)
		return r;
	r = tree_iter_next(b->it, &b->e, err);
	b->has = r > 0;
	return r < 0 ? r : 0;
}

/* The base's entry of this name, or NULL.  Names are asked for in rising order. */
static int beside_find(struct beside *b, const struct tree_entry *e, const struct tree_entry **ret,
		       struct err *err)
{
	int order = -1, r = 0;

	*ret = NULL;
	while (b->has) {
		order = tree_name_compare(b->e.name, b->e.name_len, e->name, e->name_len);
		if (order >= 0)
			break;
		r = tree_iter_next(b->it, &b->e, err);
		if (r < 0)
			return r;
		b->has = r > 0;
	}
	if (b->has && order == 0)
		*ret = &b->e;
	return 0;
}

static bool is_known(struct inbound *in, enum object_kind kind, const struct object_id *id,
		     const struct digest *d)
{
	struct digest have;

	return digests_find(in->options->known, kind, id, &have) && digest_equal(&have, d);
}

/* --- directories -------------------------------------------------------------------------- */

struct dir {
	struct tree_builder *builder;
	struct beside beside;
	const struct object_id *base; /* the same directory of the base; NULL: none */
	struct regrown grown;
	struct brought made;
	uint64_t files, bytes; /* so far, to see an overflow before it happens */
	unsigned depth;
	bool links; /* it is the links tree */
};

static void dir_done(struct dir *d)
{
	tree_builder_free(d->builder);
	tree_iter_free(d->beside.it);
	regrown_done(&d->grown);
}

static int bring_tree(struct inbound *in, const struct digest *d, const struct tree_entry *base,
		      unsigned depth, bool links, struct brought *ret, struct err *err);

static int bring_dir(struct inbound *in, const struct portable_entry *p,
		     const struct tree_entry *base, unsigned depth, struct tree_entry *e,
		     struct err *err)
{
	struct brought child = { 0 };
	int r = bring_tree(in, &p->content, base, depth, false, &child, err);

	e->id = child.id;
	e->below = child.below;
	e->nlink = child.nlink;
	return r;
}

static int bring_content(struct inbound *in, const struct portable_entry *p,
			 const struct tree_entry *base, struct tree_entry *e, struct err *err)
{
	const enum object_kind kind = e->form == TREE_CHUNK ? OBJECT_CHUNK : OBJECT_RECIPE;

	if (base && base->form == e->form && base->size == e->size &&
	    is_known(in, kind, &base->id, &p->content)) {
		e->id = base->id;
		e->data = base->data;
		return 0;
	}
	if (in->options->promise &&
	    !(in->options->at_once && in->options->at_once(e->name, e->name_len)))
		return inbound_promise(in, p, e, err);
	return inbound_file(in, p, e, err);
}

/* All that an entry refers to.  -ENODATA if some of it is not here; the rest is looked at, too. */
static int bring_entry(struct inbound *in, struct dir *d, const struct portable_entry *p,
		       struct tree_entry *e, struct err *err)
{
	const struct tree_entry *base;
	int r, content = 0;

	*e = p->e;
	if (d->links ? e->form == TREE_LINK || e->form == TREE_DIR
		     : e->form != TREE_DIR && e->nlink != 0)
		return err_set(err, -EBADMSG, "hard links in a pack stand where none can");
	if (e->form == TREE_LINK)
		return inbound_count_link(in, e, err);
	r = beside_find(&d->beside, e, &base, err);
	if (r < 0)
		return r;
	if (e->form == TREE_DIR)
		content = bring_dir(in, p, base, d->depth + 1, e, err);
	else if (e->form == TREE_CHUNK || e->form == TREE_RECIPE)
		content = bring_content(in, p, base, e, err);
	if (content < 0 && content != -ENODATA)
		return content;
	if (p->has_xattrs && base && is_known(in, OBJECT_XATTRS, &base->xattrs, &p->xattrs))
		e->xattrs = base->xattrs;
	else if (p->has_xattrs)
		r = inbound_xattrs(in, &p->xattrs, &e->xattrs, err);
	return r < 0 ? r : content;
}

static int add_up(struct dir *d, const struct tree_entry *e, struct err *err)
{
	const bool dir = e->form == TREE_DIR;

	if (__builtin_add_overflow(d->files, dir ? e->below.files : 1, &d->files) ||
	    __builtin_add_overflow(d->bytes, dir ? e->below.bytes : e->size, &d->bytes) ||
	    d->files > INT64_MAX || d->bytes > INT64_MAX)
		return err_set(err, -EBADMSG, "a directory in a pack is larger than any can be");
	d->made.nlink += dir;
	return 0;
}

static int add_entry(struct inbound *in, struct dir *d, const struct portable_entry *p,
		     struct err *err)
{
	struct tree_entry e;
	const char *flaw;
	int r;

	/* Before anything is made of the name. */
	if (!path_name_valid(p->e.name, p->e.name_len))
		return err_set(err, -EBADMSG, "a name in a pack cannot stand in a directory");
	r = bring_entry(in, d, p, &e, err);
	if (r == -ENODATA) {
		d->made.lacking = true;
		return 0;
	}
	if (r < 0 || d->made.lacking)
		return r;
	r = add_up(d, &e, err);
	if (r < 0)
		return r;
	flaw = tree_entry_flaw(&e);
	if (flaw)
		return err_set(err, -EBADMSG, "an entry of a directory in a pack: %s", flaw);
	if (d->links) {
		r = inbound_settle_link(in, &e, err);
		if (r < 0)
			return r;
	}
	return tree_builder_add(d->builder, &e, err);
}

static int add_leaf(struct inbound *in, struct dir *d, struct portable_node *node, struct err *err)
{
	struct portable_entry p;
	int r;

	while ((r = portable_next_entry(node, &p, err)) > 0) {
		r = add_entry(in, d, &p, err);
		if (r < 0)
			return r;
	}
	return r;
}

static int hold(struct inbound *in, size_t bytes, struct err *err)
{
	if (bytes > HELD_MAX - in->held)
		return err_set(err, -E2BIG,
			       "directories in a pack are nested too deep for their size");
	in->held += bytes;
	return 0;
}

/* The names of one leaf come before those of the next. */
static int add_next_leaf(struct inbound *in, struct dir *d, const struct digest *leaf,
			 struct buf *last, struct err *err)
{
	CLEANUP(buf_done) struct buf bytes = BUF_INIT;
	struct portable_node node;
	int r = regrown_take(&d->grown, leaf, &bytes)
		    ? 0
		    : inbound_get(in, OBJECT_TREE, leaf, &bytes, err);

	if (r == -ENODATA) {
		d->made.lacking = true;
		return 0;
	}
	if (r == 0)
		r = portable_node(bytes.data, bytes.len, &node, err);
	if (r < 0)
		return r;
	if (node.level != 0 || node.n == 0)
		return err_set(err, -EBADMSG,
			       "a large directory in a pack has a node of a wrong kind");
	r = hold(in, bytes.len, err);
	if (r < 0)
		return r;
	if (last->len > 0) {
		node.last = (const char *)last->data;
		node.last_len = last->len;
	}
	r = add_leaf(in, d, &node, err);
	in->held -= bytes.len;
	if (r < 0)
		return r;
	buf_reset(last);
	return buf_append(last, node.last, node.last_len) < 0 ? err_nomem(err) : 0;
}

static int add_leaves(struct inbound *in, struct dir *d, struct portable_node *branch,
		      struct err *err)
{
	CLEANUP(buf_done) struct buf last = BUF_INIT;
	struct digest leaf;
	int r = d->base ? regrown_fill(in, d->base, branch, &d->grown, err) : 0;

	while (r == 0 && portable_next_leaf(branch, &leaf) > 0)
		r = add_next_leaf(in, d, &leaf, &last, err);
	return r;
}

/* All of it as the base has it. */
static int add_base(struct inbound *in, struct dir *d, struct err *err)
{
	CLEANUP(tree_iter_free_p) struct tree_iter *it = NULL;
	struct portable_entry p;
	struct tree_entry e;
	int r = tree_iter_new(in->store, d->base, &it, err);

	while (r >= 0 && (r = tree_iter_next(it, &e, err)) > 0) {
		if (!inbound_portable(in, &e, &p))
			return -ENODATA;
		r = add_entry(in, d, &p, err);
	}
	return r;
}

static int fill_dir(struct inbound *in, const struct digest *digest, struct dir *d, struct err *err)
{
	CLEANUP(buf_done) struct buf bytes = BUF_INIT;
	struct portable_node node;
	int r = inbound_get(in, OBJECT_TREE, digest, &bytes, err);

	if (r == -ENODATA && d->base && is_known(in, OBJECT_TREE, d->base, digest))
		return add_base(in, d, err);
	if (r == 0)
		r = portable_node(bytes.data, bytes.len, &node, err);
	if (r == 0)
		r = hold(in, bytes.len, err);
	if (r < 0)
		return r;
	r = node.level == 0 ? add_leaf(in, d, &node, err) : add_leaves(in, d, &node, err);
	in->held -= bytes.len;
	return r;
}

/* Read it all, and put what came of it. */
static int make_dir(struct inbound *in, const struct digest *digest, const struct tree_entry *base,
		    struct dir *d, struct err *err)
{
	int r = tree_builder_new(in->batch, &d->builder, err);

	d->made.nlink = 2;
	if (r == 0 && base && base->form == TREE_DIR) {
		d->base = &base->id;
		r = beside_open(in, &base->id, &d->beside, err);
	}
	if (r == 0)
		r = fill_dir(in, digest, d, err);
	if (r == -ENODATA) {
		d->made.lacking = true;
		r = 0;
	}
	if (r < 0 || d->made.lacking)
		return r;
	r = tree_builder_finish(d->builder, &d->made.id, &d->made.below, err);
	if (r < 0)
		return r;
	if (digests_add(in->options->known, OBJECT_TREE, &d->made.id, digest) < 0)
		return err_nomem(err);
	return 0;
}

static int bring_tree(struct inbound *in, const struct digest *digest,
		      const struct tree_entry *base, unsigned depth, bool links,
		      struct brought *ret, struct err *err)
{
	const struct brought *seen = links ? NULL : inbound_seen(in, OBJECT_TREE, digest);
	CLEANUP(dir_done) struct dir d = { .depth = depth, .links = links };
	int r;

	if (depth > INBOUND_DEPTH_MAX)
		return err_set(err, -ELOOP, "directories in a pack are nested too deep");
	if (seen) {
		*ret = *seen;
		r = inbound_count_links(in, digest, ret, err);
		return r == 0 && ret->lacking ? -ENODATA : r;
	}
	if (!links && base && base->form == TREE_DIR && base->nlink >= 2 &&
	    is_known(in, OBJECT_TREE, &base->id, digest)) {
		d.made = (struct brought){
			.id = base->id, .below = base->below, .nlink = base->nlink, .shared = true
		};
		r = inbound_count_links(in, digest, &d.made, err);
	} else {
		r = make_dir(in, digest, base, &d, err);
	}
	if (r < 0)
		return r;
	r = links ? 0 : inbound_note(in, OBJECT_TREE, digest, &d.made, err);
	if (r == 0 && in->options->step)
		r = in->options->step(in->options->ctx, in->objects, in->bytes, err);
	if (r < 0)
		return r;
	*ret = d.made;
	return d.made.lacking ? -ENODATA : 0;
}

/* --- the root ----------------------------------------------------------------------------- */

struct root_parts {
	struct portable_entry top, links;
	bool has_top, has_links;
};

static bool is_named(const struct portable_entry *p, const char *name)
{
	return p->e.name_len == strlen(name) && memcmp(p->e.name, name, p->e.name_len) == 0;
}

static bool is_plain_links(const struct portable_entry *p)
{
	struct tree_entry bare = {
		.name = p->e.name, .name_len = p->e.name_len, .form = TREE_DIR, .mode = S_IFDIR
	};

	return !p->has_xattrs && tree_entry_equal(&p->e, &bare);
}

/* The entries of a root; they borrow from `bytes`. */
static int read_root(struct inbound *in, const struct digest *digest, struct buf *bytes,
		     struct root_parts *ret, struct err *err)
{
	struct portable_node node;
	struct portable_entry p;
	int r = inbound_get(in, OBJECT_TREE, digest, bytes, err);

	if (r == 0)
		r = portable_node(bytes->data, bytes->len, &node, err);
	if (r == 0 && node.level != 0)
		r = err_set(err, -EBADMSG, "the root of the snapshot is none");
	if (r < 0)
		return r;
	while ((r = portable_next_entry(&node, &p, err)) > 0) {
		if (is_named(&p, ROOT_TOP) && p.e.form == TREE_DIR && S_ISDIR(p.e.mode)) {
			ret->top = p;
			ret->has_top = true;
		} else if (is_named(&p, ROOT_LINKS) && is_plain_links(&p)) {
			ret->links = p;
			ret->has_links = true;
		} else {
			return err_set(err, -EBADMSG, "the root of the snapshot is none");
		}
	}
	return r < 0 || ret->has_top ? r
				     : err_set(err, -EBADMSG, "the root of the snapshot is none");
}

static int bring_top(struct inbound *in, const struct root_parts *parts, const struct root *base,
		     struct root *root, struct err *err)
{
	struct brought top = { 0 };
	const char *flaw;
	int r, x = 0;

	root->top = parts->top.e;
	r = bring_tree(in, &parts->top.content, base ? &base->top : NULL, 0, false, &top, err);
	if (r < 0 && r != -ENODATA)
		return r;
	if (parts->top.has_xattrs)
		x = inbound_xattrs(in, &parts->top.xattrs, &root->top.xattrs, err);
	if (r < 0 || x < 0)
		return x < 0 ? x : r;
	root->top.id = top.id;
	root->top.below = top.below;
	root->top.nlink = top.nlink;
	flaw = tree_entry_flaw(&root->top);
	return flaw ? err_set(err, -EBADMSG, "the top of the snapshot: %s", flaw) : 0;
}

static int bring_links(struct inbound *in, const struct root_parts *parts, const struct root *base,
		       struct root *root, struct err *err)
{
	struct tree_entry beside = { .form = TREE_DIR };
	struct brought links = { 0 };
	size_t at;
	int r = 0;

	if (base)
		beside.id = base->links;
	if (parts->has_links)
		r = bring_tree(in, &parts->links.content,
			       base && !object_id_is_zero(&base->links) ? &beside : NULL, 0, true,
			       &links, err);
	if (r < 0)
		return r;
	for (at = 0; at < in->links.n; at++)
		if (in->links.list[at].value > 0)
			return err_set(err, -EBADMSG, "a hard link in a pack leads nowhere");
	root->links = links.id;
	root->in_links = links.below;
	return 0;
}

static int bring_root(struct inbound *in, const struct digest *digest, struct inbound_result *ret,
		      struct err *err)
{
	CLEANUP(buf_done) struct buf bytes = BUF_INIT;
	const struct object_id *base_id = in->options->base;
	struct root_parts parts = { 0 };
	struct root root = { 0 }, base;
	int r, top;

	if (base_id) {
		r = root_get(in->store, base_id, &base, err);
		if (r < 0)
			return r;
	}
	r = read_root(in, digest, &bytes, &parts, err);
	/* With a base little comes; without the bytes nothing does. */
	if (r == 0 && !base_id && !in->options->promise)
		r = inbound_ahead(in, digest, err);
	if (r < 0)
		return r;
	top = bring_top(in, &parts, base_id ? &base : NULL, &root, err);
	if (top < 0 && top != -ENODATA)
		return top;
	/* Names are missing in the count if packs are: then only those packs matter that it needs. */
	if (top == -ENODATA)
		return top;
	r = bring_links(in, &parts, base_id ? &base : NULL, &root, err);
	if (r < 0)
		return r;
	r = root_put(in->batch, &root, &ret->root, err);
	if (r < 0)
		return r;
	if (digests_add(in->options->known, OBJECT_TREE, &ret->root, digest) < 0)
		return err_nomem(err);
	ret->files = root.top.below.files;
	ret->bytes = root.top.below.bytes + root.in_links.bytes;
	ret->objects = in->objects;
	return 0;
}

static void inbound_done(struct inbound *in)
{
	digest_table_done(&in->seen);
	digest_table_done(&in->links);
	free(in->brought);
	buf_done(&in->object);
}

int inbound_root(struct batch *b, const struct inbound_options *options, const struct digest *root,
		 struct inbound_result *ret, struct err *err)
{
	CLEANUP(inbound_done)
	struct inbound in = { .batch = b, .store = batch_store(b), .options = options };

	return bring_root(&in, root, ret, err);
}

int inbound_content(struct batch *b, const struct inbound_options *options, enum object_kind kind,
		    const struct digest *digest, uint64_t size, struct content *ret,
		    struct err *err)
{
	CLEANUP(inbound_done)
	struct inbound in = { .batch = b, .store = batch_store(b), .options = options };
	const struct portable_entry p = { .content = *digest };
	struct tree_entry e = { .mode = S_IFREG,
				.form = kind == OBJECT_CHUNK ? TREE_CHUNK : TREE_RECIPE,
				.size = size };
	int r = inbound_file(&in, &p, &e, err);

	if (r < 0)
		return r;
	if (e.data == 0 || e.data > e.size)
		return err_set(err, -EBADMSG, "a large file in a pack has no bytes");
	*ret = tree_entry_content(&e);
	return 0;
}
