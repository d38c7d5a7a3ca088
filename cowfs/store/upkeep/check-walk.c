/*
 * Depth first over directories, with a stack of our own: a tree of user-made depth must not decide
 * how deep we recurse. Knowledge about a node is kept by its row, so a thousand snapshots of one
 * project cost one walk:
 *
 *   - a node without damage at or below it is never walked again;
 *   - unless files with several names lie below it: then it is walked once for each links tree it
 *     occurs with, because those files are there;
 *   - a node with damage is walked again for each ref, to name every path, but not more than
 *     CHECK_PATHS_MAX times for one ref: directories may name each other so that the paths double
 *     with every level.
 */
#include <errno.h>
#include <string.h>

#include "base/vec.h"
#include "cowfs/store/upkeep/check-walk-i.h"

int check_walk_new(struct check *c, struct check_walk **ret, struct err *err)
{
	struct check_walk *w = calloc(1, sizeof(*w));

	if (!w)
		return err_nomem(err);
	w->c = c;
	*ret = w;
	return 0;
}

void check_walk_free(struct check_walk *w)
{
	size_t pos = 0;
	void *seen;

	if (!w)
		return;
	VEC_FREE(it, w->stack, w->cap, buf_done(&it->bytes));
	while ((seen = map_next(&w->nodes, &pos)))
		free(seen);
	map_done(&w->nodes);
	walk_content_done(w);
	check_links_done(&w->links);
	buf_done(&w->path);
	buf_done(&w->blamed);
	free(w);
}

/* Room for one frame more. */
static int reserve_frame(struct check_walk *w, struct err *err)
{
	const size_t had = w->cap;

	if (!VEC_ROOM(w->stack, w->depth, w->cap))
		return err_nomem(err);
	memset(w->stack + had, 0, (w->cap - had) * sizeof(*w->stack));
	return 0;
}

/* Nothing new would come of walking the node; what is known of it goes to the frame above. */
static bool may_skip(struct check_walk *w, struct seen_node *n)
{
	struct frame *above = w->depth > 0 ? &w->stack[w->depth - 1] : NULL;

	if (n->round != w->round) {
		n->round = w->round;
		n->walks = 0;
	}
	if (w->in_links) {
		/* Every file is needed for the list, but not twice. */
		if (n->walks > 0)
			return true;
	} else if (n->clean) {
		return true;
	} else if (n->links_no == w->links.no) {
		if (above)
			above->linked = true;
		return true;
	} else if (n->walks == CHECK_PATHS_MAX) {
		if (above)
			above->trouble = true;
		return true;
	}
	n->walks++;
	return false;
}

/* The node's bytes into the frame.  1, or 0 and the place has been blamed. */
static int load_node(struct check_walk *w, const struct object_id *id, int64_t seq, struct frame *f,
		     struct err *err)
{
	struct err why = { 0 };
	int r = walk_fetch(w, OBJECT_TREE, id, &f->bytes, err);

	if (r <= 0)
		return r;
	r = tree_node_open(f->bytes.data, f->bytes.len, &f->node, &why);
	f->seen = seen_node_get(w, seq);
	if (r >= 0 && !f->seen)
		r = seen_node_add(w, seq, &f->node, &f->seen, &why);
	if (r == -EBADMSG)
		return walk_contradiction(w, OBJECT_TREE, id, why.msg, err);
	return r < 0 ? err_set(err, r, "%s", why.msg) : 1;
}

/* Does the node fit the one that names it?  1, 0 if it must not be walked from there. */
static int compare(struct check_walk *w, const struct object_id *id, const struct node_claim *claim,
		   const struct seen_node *n, struct err *err)
{
	struct err why = { 0 };
	const char *flaw;
	int r;

	if (claim->child && n->level != claim->level)
		return walk_contradiction(w, OBJECT_TREE, id, "its level is wrong here", err);
	flaw = node_claim_flaw(claim, n, &why);
	r = flaw ? walk_contradiction(w, OBJECT_TREE, id, flaw, err) : 0;
	return r < 0 ? r : 1;
}

/* What a child of the topmost branch adds to it. */
static void count_child(struct check_walk *w, const struct seen_node *n)
{
	struct frame *f = &w->stack[w->depth - 1];

	if (!n->counted)
		return;
	f->dirs += n->dirs;
	f->n_counted++;
}

/* Come to a node: on the stack with it, unless there is nothing to be found. */
static int enter(struct check_walk *w, const struct object_id *id, const struct node_claim *claim,
		 struct err *err)
{
	struct seen_node *n;
	struct frame *f;
	struct row row;
	bool loaded = false;
	int r = reserve_frame(w, err);

	if (r < 0)
		return r;
	f = &w->stack[w->depth];
	r = walk_visit(w, OBJECT_TREE, id, &row, err);
	if (r <= 0)
		return r;
	n = seen_node_get(w, row.seq);
	if (!n) {
		r = load_node(w, id, row.seq, f, err);
		if (r <= 0)
			return r;
		n = f->seen;
		loaded = true;
	}
	r = compare(w, id, claim, n, err);
	if (r <= 0)
		return r;
	if (claim->child)
		w->stack[w->depth - 1].before = n;
	else if (w->in_links)
		w->links.top = n;
	if (may_skip(w, n)) {
		if (claim->child)
			count_child(w, n);
		return 0;
	}
	if (!loaded) {
		r = load_node(w, id, row.seq, f, err);
		if (r <= 0)
			return r;
	}
	f->i = 0;
	f->before = NULL;
	f->id = *id;
	f->whole = !claim->child;
	f->nlink = n->counted ? 0 : claim->nlink;
	f->dirs = 0;
	f->n_counted = 0;
	f->path_len = w->path.len;
	f->trouble = false;
	f->linked = false;
	w->depth++;
	return 0;
}

/* The directories in a branch are known when all below it was walked. */
static int leave_branch(struct check_walk *w, struct frame *f, struct err *err)
{
	const struct node_claim claim = { .nlink = f->nlink };
	int r;

	f->seen->right = f->before;
	if (f->n_counted < f->node.n)
		return 0;
	f->seen->dirs = f->dirs;
	f->seen->counted = true;
	r = compare(w, &f->id, &claim, f->seen, err);
	return r < 0 ? r : 0;
}

/* All records of the topmost node were walked. */
static int leave(struct check_walk *w, struct err *err)
{
	struct frame *f = &w->stack[--w->depth];
	int r;

	if (w->depth > 0) {
		f[-1].trouble = f[-1].trouble || f->trouble;
		f[-1].linked = f[-1].linked || f->linked;
	}
	if (f->node.level > 0) {
		r = leave_branch(w, f, err);
		if (r < 0)
			return r;
	}
	if (!f->whole)
		count_child(w, f->seen);
	if (f->trouble || w->in_links)
		return 0;
	if (f->linked)
		f->seen->links_no = w->links.no;
	else
		f->seen->clean = true;
	return 0;
}

static int walk_child(struct check_walk *w, struct frame *f, struct err *err)
{
	struct node_claim claim = { .level = f->node.level - 1 };
	const struct seen_node *before = f->before;
	struct tree_child c;
	int r = tree_node_child(&f->node, f->i++, &c, err);

	if (r < 0)
		return r;
	if (before && !seen_node_is_before(before, c.name, c.name_len)) {
		r = walk_contradiction(w, OBJECT_TREE, &c.id,
				       "its names do not follow those of the node before it", err);
		if (r < 0)
			return r;
	}
	f->before = NULL;
	claim.child = &c;
	claim.below = &c.below;
	return enter(w, &c.id, &claim, err);
}

static int walk_entry(struct check_walk *w, const struct tree_entry *e, struct err *err)
{
	const struct node_claim claim = { .below = &e->below, .nlink = e->nlink };
	struct row row;
	int r;

	if (!object_id_is_zero(&e->xattrs)) {
		r = walk_visit(w, OBJECT_XATTRS, &e->xattrs, &row, err);
		if (r < 0)
			return r;
	}
	switch (e->form) {
	case TREE_CHUNK:
	case TREE_RECIPE:
		return walk_content(w, e, err);
	case TREE_DIR:
		return w->in_links ? 0 : enter(w, &e->id, &claim, err);
	case TREE_LINK:
		return w->in_links ? 0 : walk_link(w, e->ino, err);
	case TREE_NONE:
	case TREE_LAZY:
		return 0;
	}
	return 0;
}

static int enter_entry(struct check_walk *w, const struct tree_entry *e, struct err *err)
{
	int r;

	if (w->in_links) {
		w->link_entry = e;
		r = check_links_add(w, e, err);
		if (r < 0)
			return r;
	} else if ((w->path.len > w->start && buf_append_u8(&w->path, '/') < 0) ||
		   buf_append(&w->path, e->name, e->name_len) < 0) {
		return err_nomem(err);
	}
	return walk_entry(w, e, err);
}

static int step(struct check_walk *w, struct err *err)
{
	struct frame *f = &w->stack[w->depth - 1];
	struct tree_entry e;
	int r;

	w->place++;
	w->path.len = f->path_len;
	if (f->i == f->node.n)
		return leave(w, err);
	if (f->node.level > 0)
		return walk_child(w, f, err);
	r = tree_node_entry(&f->node, f->i++, &e, err);
	if (r < 0)
		return r;
	r = enter_entry(w, &e, err);
	w->link_entry = NULL;
	return r < 0 ? r : 0;
}

static int walk_tree(struct check_walk *w, const struct object_id *id,
		     const struct node_claim *claim, struct err *err)
{
	int r;

	w->depth = 0;
	w->place++;
	w->round++;
	r = enter(w, id, claim, err);
	while (r >= 0 && w->depth > 0)
		r = step(w, err);
	return r;
}

/* Have the files with several names of this root at hand. */
static int walk_links(struct check_walk *w, struct err *err)
{
	const struct node_claim nothing = { 0 };
	const struct object_id *id = &w->root.links;
	int r = 0;

	if (w->links.no > 0 && object_id_equal(&w->links.id, id))
		return 0;
	check_links_begin(&w->links);
	if (!object_id_is_zero(id)) {
		w->in_links = true;
		r = walk_tree(w, id, &nothing, err);
		w->in_links = false;
	}
	if (r < 0)
		return r;
	check_links_end(&w->links, id);
	return r;
}

static int walk_root(struct check_walk *w, const struct object_id *id, struct err *err)
{
	CLEANUP(buf_done) struct buf bytes = BUF_INIT;
	const struct node_claim in_links = { .below = &w->root.in_links };
	struct node_claim top = { .below = &w->root.top.below };
	struct err why = { 0 };
	struct row row;
	int r = walk_visit(w, OBJECT_TREE, id, &row, err);

	if (r > 0)
		r = walk_fetch(w, OBJECT_TREE, id, &bytes, err);
	if (r <= 0)
		return r;
	r = root_decode(bytes.data, bytes.len, &w->root, &why);
	if (r < 0)
		return walk_contradiction(w, OBJECT_TREE, id, why.msg, err);

	r = walk_links(w, err);
	if (r < 0)
		return r;
	w->place++;
	w->depth = 0;
	w->path.len = w->start;
	if (w->links.top) {
		r = compare(w, &w->root.links, &in_links, w->links.top, err);
		if (r < 0)
			return r;
	}
	if (!object_id_is_zero(&w->root.top.xattrs)) {
		r = walk_visit(w, OBJECT_XATTRS, &w->root.top.xattrs, &row, err);
		if (r < 0)
			return r;
	}
	top.nlink = w->root.top.nlink;
	return walk_tree(w, &w->root.top.id, &top, err);
}

int check_walk_ref(struct check_walk *w, const struct ref *ref, struct err *err)
{
	if (object_id_is_zero(&ref->root))
		return 0;
	buf_reset(&w->path);
	if (buf_printf(&w->path, "%s ", ref_kind_name(ref->kind)) < 0 ||
	    buf_append(&w->path, ref->name, ref->name_len) < 0 || buf_append_u8(&w->path, ':') < 0)
		return err_nomem(err);
	w->start = w->path.len;
	w->place++;
	w->depth = 0;
	return walk_root(w, &ref->root, err);
}
