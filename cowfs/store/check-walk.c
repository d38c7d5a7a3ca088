/*
 * Depth first over directories, with a stack of our own: a tree of user-made depth
 * must not decide how deep we recurse.  A subtree in which nothing was wrong is
 * remembered by its row, so a thousand snapshots of one project cost one walk; one in
 * which something is wrong is walked again for each ref, to name every path.
 *
 * A file with several names is damaged where it stands, in the links tree, which is
 * therefore walked before the directories; the names that lead to it are added when
 * they come along.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cowfs/store/check-i.h"
#include "cowfs/store/recipe.h"
#include "cowfs/store/root.h"
#include "cowfs/store/tree-node.h"

#define ROWS_MAX ((int64_t)1 << 31) /* a damaged row number must not cost more than 256 MiB */

struct frame {
	struct buf bytes; /* kept for the next user of this depth */
	struct tree_node node;
	uint32_t i;
	int64_t seq;     /* of its row */
	size_t path_len; /* of the directory it belongs to */
	bool trouble;    /* something at or below it is wrong */
};

/* A file of the links tree that has something wrong, and the findings about it. */
struct bad_link {
	uint64_t ino;
	size_t finding;
};

struct check_walk {
	struct check *c;
	struct buf clean; /* a bit per row of meta.db: all below it is in order */
	struct frame *stack;
	size_t depth, cap;
	struct buf path;   /* "snapshot NAME:a/b" */
	uint64_t place;    /* rises with every place the walk comes to */
	struct buf blamed; /* uint64_t per finding: the place that was last blamed for it */

	/* Of the ref being walked: */
	struct root root;
	size_t start;         /* length of "snapshot NAME:" */
	struct buf link;      /* node that a file with several names was found in */
	struct buf bad_links; /* struct bad_link */
	bool in_links;        /* the links tree is being walked */
	const struct tree_entry
	    *link_entry;      /* in it: the file being looked at, or NULL at a node */
	bool links_broken;    /* nodes of the links tree itself cannot be read: */
	size_t links_finding; /* the last finding about that */
};

int check_walk_new(struct check *c, struct check_walk **ret, struct err *err)
{
	CLEANUP(check_walk_free_p) struct check_walk *w = calloc(1, sizeof(*w));
	int64_t max = 0;

	if (!w)
		return err_nomem(err);
	w->c = c;
	if (db_int(c->rd->db[TABLE_META], "SELECT coalesce(max(seq), 0) FROM object", &max, NULL) <
		0 ||
	    max < 0 || max > ROWS_MAX)
		max = 0; /* rows beyond it are walked each time */
	if (buf_append_zero(&w->clean, (size_t)max / 8 + 1) < 0)
		return err_nomem(err);
	*ret = TAKE_PTR(w);
	return 0;
}

void check_walk_free(struct check_walk *w)
{
	if (!w)
		return;
	for (size_t i = 0; i < w->cap; i++)
		buf_done(&w->stack[i].bytes);
	free(w->stack);
	buf_done(&w->clean);
	buf_done(&w->path);
	buf_done(&w->blamed);
	buf_done(&w->bad_links);
	buf_done(&w->link);
	free(w);
}

static bool is_clean(const struct check_walk *w, int64_t seq)
{
	return seq >= 0 && (uint64_t)seq / 8 < w->clean.len &&
	       w->clean.data[seq / 8] & 1u << seq % 8;
}

static void set_clean(struct check_walk *w, int64_t seq)
{
	if (seq >= 0 && (uint64_t)seq / 8 < w->clean.len)
		w->clean.data[seq / 8] |= (uint8_t)(1u << seq % 8);
}

static void set_trouble(struct check_walk *w)
{
	for (size_t i = 0; i < w->depth; i++)
		w->stack[i].trouble = true;
}

/* 1 if the finding comes up for the first time here: a file may hold one block many times. */
static int first_here(struct check_walk *w, size_t finding, struct err *err)
{
	const size_t need = (finding + 1) * sizeof(w->place);
	uint64_t *last;

	if (w->blamed.len < need && buf_append_zero(&w->blamed, need - w->blamed.len) < 0)
		return err_nomem(err);
	last = (uint64_t *)w->blamed.data + finding;
	if (*last == w->place)
		return 0;
	*last = w->place;
	return 1;
}

static int blame(struct check_walk *w, size_t finding, struct err *err)
{
	struct bad_link bad = { .finding = finding };
	int r;

	set_trouble(w);
	if (w->in_links && !w->link_entry) {
		w->links_broken = true;
		w->links_finding = finding;
		return 0;
	}
	r = first_here(w, finding, err);
	if (r <= 0)
		return r;
	if (w->in_links) {
		bad.ino = w->link_entry->ino;
		return buf_append(&w->bad_links, &bad, sizeof(bad)) < 0 ? err_nomem(err) : 0;
	}
	return check_add_path(w->c, finding, (const char *)w->path.data, w->path.len, err);
}

/*
 * Is the object there and in order, as far as the first pass knows?  1, with its row;
 * 0 if not, and the path has been noted.
 */
static int visit(struct check_walk *w, enum object_kind kind, const struct object_id *id,
		 struct row *ret, struct err *err)
{
	struct bad_object *bad = check_bad(w->c, kind, id);
	struct err why = { 0 };
	size_t finding;
	int r;

	if (!bad) {
		r = reader_find(w->c->rd, kind, id, ret, &why);
		if (r > 0)
			return 1;
		if (r < 0 && r != -EBADMSG && r != -EIO)
			return err_set(err, r, "%s", why.msg);
		r = check_add_object(w->c, kind, id, r < 0 ? why.msg : "it is missing", &finding,
				     err);
		if (r < 0)
			return r;
	} else {
		finding = bad->finding;
	}
	return blame(w, finding, err);
}

/* 1: fetched.  0: it cannot be, and the path has been noted. */
static int fetch(struct check_walk *w, enum object_kind kind, const struct object_id *id,
		 struct buf *out, struct row *row, struct err *err)
{
	struct err why = { 0 };
	size_t finding;
	int r;

	r = visit(w, kind, id, row, err);
	if (r <= 0)
		return r;
	r = object_fetch(w->c->rd->db[TABLE_META], w->c->rd->codec, kind, id, out, row, &why);
	if (r > 0)
		return 1;
	if (r < 0 && r != -EBADMSG && r != -EIO)
		return err_set(err, r, "%s", why.msg);
	r = check_add_object(w->c, kind, id, r < 0 ? why.msg : "it is missing", &finding, err);
	return r < 0 ? r : blame(w, finding, err);
}

/* The form of an object contradicts the one that names it: others may name it rightly. */
static int contradicts(struct check_walk *w, enum object_kind kind, const struct object_id *id,
		       const char *why, struct err *err)
{
	size_t finding;
	int r;

	r = check_add_about(w->c, kind, id, why, &finding, err);
	return r < 0 ? r : blame(w, finding, err);
}

/* `level` bounds the recursion: a node below level n has level n - 1. */
static int walk_recipe(struct check_walk *w, const struct object_id *id, unsigned level,
		       struct err *err)
{
	AUTO_FREE struct recipe_node *node = NULL;
	CLEANUP(buf_done) struct buf bytes = BUF_INIT;
	struct err why = { 0 };
	struct row row, chunk;
	bool ok = true;
	int r;

	r = fetch(w, OBJECT_RECIPE, id, &bytes, &row, err);
	if (r <= 0 || is_clean(w, row.seq))
		return r;
	node = malloc(sizeof(*node));
	if (!node)
		return err_nomem(err);
	r = recipe_decode(bytes.data, bytes.len, node, &why);
	if (r < 0 || node->level != level)
		return contradicts(w, OBJECT_RECIPE, id,
				   r < 0 ? why.msg : "its level is wrong here", err);
	for (unsigned i = 0; i < node->n; i++) {
		if (object_id_is_zero(&node->id[i]))
			continue;
		if (level > 0)
			r = walk_recipe(w, &node->id[i], level - 1, err);
		else
			r = visit(w, OBJECT_CHUNK, &node->id[i], &chunk, err);
		if (r < 0)
			return r;
		ok = ok && r > 0;
	}
	if (ok)
		set_clean(w, row.seq);
	return ok;
}

static int push(struct check_walk *w, const struct object_id *id, int level, struct err *err)
{
	struct frame *f;
	struct err why = { 0 };
	struct row row;
	int r;

	if (w->depth == w->cap) {
		size_t cap = w->cap ? 2 * w->cap : 32;

		f = reallocarray(w->stack, cap, sizeof(*f));
		if (!f)
			return err_nomem(err);
		memset(f + w->cap, 0, (cap - w->cap) * sizeof(*f));
		w->stack = f;
		w->cap = cap;
	}
	f = &w->stack[w->depth];
	r = visit(w, OBJECT_TREE, id, &row, err);
	if (r <= 0)
		return r;
	if (is_clean(w, row.seq))
		return 0;
	r = fetch(w, OBJECT_TREE, id, &f->bytes, &row, err);
	if (r <= 0)
		return r;
	r = tree_node_open(f->bytes.data, f->bytes.len, &f->node, &why);
	if (r < 0 || (level >= 0 && f->node.level != (unsigned)level))
		return contradicts(w, OBJECT_TREE, id, r < 0 ? why.msg : "its level is wrong here",
				   err);
	f->i = 0;
	f->seq = row.seq;
	f->path_len = w->path.len;
	f->trouble = false;
	w->depth++;
	return 0;
}

/* One name of a file that has several: is the file there, and is anything wrong with it? */
static int walk_link(struct check_walk *w, uint64_t ino, struct err *err)
{
	const struct bad_link *bad = (const struct bad_link *)w->bad_links.data;
	struct tree_entry e;
	struct err why = { 0 };
	size_t finding = w->links_finding;
	int r;

	/* The links tree is another one for every ref: never remember this as clean. */
	set_trouble(w);
	for (size_t i = 0; i < w->bad_links.len / sizeof(*bad); i++) {
		if (bad[i].ino != ino)
			continue;
		r = check_add_path(w->c, bad[i].finding, (const char *)w->path.data, w->path.len,
				   err);
		if (r < 0)
			return r;
	}
	r = root_link(w->c->store, &w->root, ino, &e, &w->link, &why);
	if (r >= 0)
		return 0;
	if (r != -EBADMSG && r != -ENOENT)
		return err_set(err, r, "%s", why.msg);
	r = w->links_broken ? 0 : check_add(w->c, "hard link", why.msg, &finding, err);
	if (r < 0)
		return r;
	return check_add_path(w->c, finding, (const char *)w->path.data, w->path.len, err);
}

static int walk_entry(struct check_walk *w, const struct tree_entry *e, struct err *err)
{
	struct row row;
	int r;

	if (!object_id_is_zero(&e->xattrs)) {
		r = visit(w, OBJECT_XATTRS, &e->xattrs, &row, err);
		if (r < 0)
			return r;
	}
	switch (e->form) {
	case TREE_CHUNK:
		return visit(w, OBJECT_CHUNK, &e->id, &row, err);
	case TREE_RECIPE:
		return walk_recipe(w, &e->id, recipe_level(e->size), err);
	case TREE_DIR:
		return push(w, &e->id, -1, err);
	case TREE_LINK:
		return walk_link(w, e->ino, err);
	case TREE_NONE:
		return 0;
	}
	return 0;
}

static int step(struct check_walk *w, struct err *err)
{
	struct frame *f = &w->stack[w->depth - 1];
	struct tree_entry e;
	struct tree_child c;
	int r;

	w->place++;
	w->path.len = f->path_len;
	if (f->i == f->node.n) {
		if (!f->trouble)
			set_clean(w, f->seq);
		w->depth--;
		return 0;
	}
	if (f->node.level > 0) {
		r = tree_node_child(&f->node, f->i++, &c, err);
		return r < 0 ? r : push(w, &c.id, (int)f->node.level - 1, err);
	}
	r = tree_node_entry(&f->node, f->i++, &e, err);
	if (r < 0)
		return r;
	if (w->in_links) {
		w->link_entry = &e;
	} else if ((w->path.len > w->start && buf_append_u8(&w->path, '/') < 0) ||
		   buf_append(&w->path, e.name, e.name_len) < 0) {
		return err_nomem(err);
	}
	r = walk_entry(w, &e, err);
	w->link_entry = NULL;
	return r < 0 ? r : 0;
}

static int walk_tree(struct check_walk *w, const struct object_id *id, struct err *err)
{
	int r;

	w->depth = 0;
	w->place++;
	r = push(w, id, -1, err);
	while (r >= 0 && w->depth > 0)
		r = step(w, err);
	return r;
}

int check_walk_ref(struct check_walk *w, const struct ref *ref, struct err *err)
{
	struct err why = { 0 };
	struct row row;
	int r;

	if (object_id_is_zero(&ref->root))
		return 0;
	buf_reset(&w->path);
	buf_reset(&w->bad_links);
	if (buf_printf(&w->path, "%s ", ref_kind_name(ref->kind)) < 0 ||
	    buf_append(&w->path, ref->name, ref->name_len) < 0 || buf_append_u8(&w->path, ':') < 0)
		return err_nomem(err);
	w->start = w->path.len;

	w->place++;
	w->depth = 0;
	w->links_broken = false;
	r = visit(w, OBJECT_TREE, &ref->root, &row, err);
	if (r <= 0)
		return r;
	r = root_get(w->c->store, &ref->root, &w->root, &why);
	if (r == -EBADMSG || r == -ENOENT)
		return contradicts(w, OBJECT_TREE, &ref->root, why.msg, err);
	if (r < 0)
		return err_set(err, r, "%s", why.msg);

	if (!object_id_is_zero(&w->root.links)) {
		w->in_links = true;
		r = walk_tree(w, &w->root.links, err);
		w->in_links = false;
		if (r < 0)
			return r;
	}
	w->path.len = w->start;
	if (!object_id_is_zero(&w->root.top.xattrs)) {
		r = visit(w, OBJECT_XATTRS, &w->root.top.xattrs, &row, err);
		if (r < 0)
			return r;
	}
	return walk_tree(w, &w->root.top.id, err);
}
