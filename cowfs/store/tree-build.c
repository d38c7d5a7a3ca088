/*
 * tree-build.c - cut a sorted list of entries into nodes, the same way every time.
 *
 * The end of a node depends only on its content, mostly on a keyed hash of its last name. So an
 * added or removed entry moves the ends near it until an old end is met again, and every node from
 * there on is the same object as before. The hash is keyed, so that nobody can choose names that
 * are never cut; if somebody guessed it, the upper limits would still hold.
 *
 * A level may not end in a branch of one child. So a full branch is put only when two more children
 * have come: the first of them is held, and joins the full branch after all if it stays alone.
 *
 * A node of an older tree is taken over where it begins: nothing is then pending on its level or
 * below. Only the record of a branch that was taken over is at hand. It ended by the rule, so it is
 * full, and so is the last branch of each level within it; if a single child is held after one of
 * these at the end, the branch is read after all.
 */
#include "cowfs/store/tree.h"

#include <assert.h>
#include <errno.h>

#include "base/path.h"
#include "cowfs/store/tree-build-i.h"

/*
 * These decide which objects a directory is made of.  To change one changes the ids of
 * large directories: nothing becomes unreadable, but nothing is shared with before.
 *
 * A leaf has 128 entries and then, on average, 250 more: nearly all directories are one
 * object, and an edit in a huge one rewrites some 10 KiB once packed.  A branch has about
 * 190 children, so three levels hold ten million names.
 *
 * Long targets would fill a leaf to its byte limit before its 128th entry, and an end by
 * that limit depends on where the leaf began: no old end would be met again.  So a leaf of
 * 24 KiB can also end behind a long entry, the likelier the longer this is: every byte over
 * 256 is one chance in 32,768.  Leaves of long entries then have some 60 KiB, as those of
 * ordinary ones do, and few meet the limit.  A branch cannot reach it.
 */
#define LEAF_MIN       128
#define LEAF_MAX       1024
#define LEAF_CUT_BITS  0x00ffu /* of the name hash; all zero in one name of 256 */
#define LEAF_BYTES_MIN ((size_t)24 << 10)
#define LEAF_BYTES_MAX ((size_t)192 << 10)

#define LONG_ENTRY     256 /* bytes of a leaf that no ordinary entry takes */
#define LONG_CUT_SHIFT 16  /* other bits than the rest */
#define LONG_CUT_BITS  0x7fffu

#define BRANCH_MIN      64
#define BRANCH_MAX      512
#define BRANCH_CUT_BITS 0x7f00u /* other bits than a leaf's; all zero in one name of 128 */

/* What the last node of a level is, as long as it may still change. */
enum last_node {
	BUILT,  /* `node`, being filled */
	TAKEN,  /* `taken_id`, of an older tree; `node` is empty */
	WITHIN, /* the last of its level in the one taken over on a level above; all else is empty */
};

/* The nodes of one level: the one being filled, and what was put before it. */
struct build_level {
	struct tree_node_writer node;
	char first[TREE_NAME_LEN_MAX]; /* the first name in `node` */
	size_t first_len;
	uint64_t entries; /* in all leaves of `node`; 0: nothing is pending */
	struct tree_summary below;

	enum last_node last;
	struct object_id taken_id;
	bool full;              /* branch: `node` has reached its end */
	bool holding;           /* branch: `held` comes behind `node` */
	struct tree_child held; /* its name is held_name */
	char held_name[TREE_NAME_LEN_MAX];

	uint64_t n_put;          /* what a node that was taken over has on a level counts as two */
	struct object_id put_id; /* of the last one */
	struct tree_summary put_below;
};

struct tree_builder {
	struct batch *batch;          /* borrowed */
	struct cache *cache;          /* borrowed; where nodes that were taken over are read */
	const struct object_key *key; /* borrowed from the batch's store */
	bool offers;                  /* nodes to the cache that is shared */
	struct build_level levels[TREE_LEVEL_MAX + 1];
	struct buf bytes;
	char last[TREE_NAME_LEN_MAX]; /* the name added last */
	size_t last_len;              /* 0: none yet */
	int failed;                   /* what an earlier call for this directory returned */
};

int tree_builder_new(struct batch *b, struct tree_builder **ret, struct err *err)
{
	struct tree_builder *t = calloc(1, sizeof(*t));

	if (!t)
		return err_nomem(err);
	t->batch = b;
	t->key = store_key(batch_store(b));
	for (unsigned i = 0; i <= TREE_LEVEL_MAX; i++)
		t->levels[i].node.level = i;
	*ret = t;
	return 0;
}

int tree_builder_new_over(struct batch *b, struct cache *c, struct tree_builder **ret,
			  struct err *err)
{
	int r = tree_builder_new(b, ret, err);

	if (r < 0)
		return r;
	(*ret)->cache = c;
	return 0;
}

void tree_builder_offer(struct tree_builder *t)
{
	t->offers = true;
}

void tree_builder_free(struct tree_builder *t)
{
	if (!t)
		return;
	for (unsigned i = 0; i <= TREE_LEVEL_MAX; i++)
		tree_node_writer_done(&t->levels[i].node);
	buf_done(&t->bytes);
	free(t);
}

/* Forget the directory, keep the memory. */
static void builder_reset(struct tree_builder *t)
{
	for (unsigned i = 0; i <= TREE_LEVEL_MAX; i++) {
		struct build_level *l = &t->levels[i];

		buf_reset(&l->node.records);
		buf_reset(&l->node.heap);
		l->node.n = 0;
		l->entries = 0;
		l->below = (struct tree_summary){ 0 };
		l->last = BUILT;
		l->full = false;
		l->holding = false;
		l->n_put = 0;
	}
	t->last_len = 0;
	t->failed = 0;
}

/* Count what one record stands for. */
static void level_count(struct build_level *l, const char *name, size_t name_len, uint64_t entries,
			const struct tree_summary *below)
{
	if (l->entries == 0) {
		memcpy(l->first, name, name_len);
		l->first_len = name_len;
	}
	tree_node_count(&l->entries, &l->below, entries, below);
}

static int append_child(struct tree_builder *t, struct build_level *l, const struct tree_child *c,
			struct err *err)
{
	if (tree_node_add_child(&l->node, c) < 0)
		return err_nomem(err);
	level_count(l, c->name, c->name_len, c->entries, &c->below);
	l->full = l->node.n >= BRANCH_MAX ||
		  (l->node.n >= BRANCH_MIN &&
		   (object_name_hash(t->key, c->name, c->name_len) & BRANCH_CUT_BITS) == 0);
	return 0;
}

static int add_child(struct tree_builder *t, unsigned level, const struct tree_child *c,
		     struct err *err);

/* The id of the node being filled, which is put unless it was taken over. */
static int store_node(struct tree_builder *t, struct build_level *l, struct object_id *ret_id,
		      struct err *err)
{
	int r;

	if (l->last == TAKEN) {
		*ret_id = l->taken_id;
		return 0;
	}
	buf_reset(&t->bytes);
	if (tree_node_finish(&l->node, &t->bytes) < 0)
		return err_nomem(err);
	r = batch_put(t->batch, OBJECT_TREE, t->bytes.data, t->bytes.len, ret_id, err);
	if (r < 0)
		return r;
	if (t->cache)
		cache_add(t->cache, OBJECT_TREE, ret_id, t->bytes.data, t->bytes.len);
	else if (t->offers)
		cache_offer(batch_store(t->batch), OBJECT_TREE, ret_id, t->bytes.data,
			    t->bytes.len);
	return r;
}

/* Put the last node and name it in the level above, unless it is named there already. */
static int put_node(struct tree_builder *t, unsigned level, struct err *err)
{
	struct build_level *l = &t->levels[level];
	struct tree_child c = {
		.name = l->first,
		.name_len = l->first_len,
		.entries = l->entries,
		.below = l->below,
	};
	int r;

	l->full = false;
	if (l->last == WITHIN) {
		l->last = BUILT;
		return 0;
	}
	r = store_node(t, l, &c.id, err);
	if (r < 0)
		return r;

	l->n_put++;
	l->put_id = c.id;
	l->put_below = c.below;
	l->entries = 0;
	l->below = (struct tree_summary){ 0 };
	l->last = BUILT;
	/* An empty directory has no name for a branch to know it by. */
	return c.entries > 0 ? add_child(t, level + 1, &c, err) : 0;
}

/*
 * Add a child to a branch.  put_node() calls it for the level above.  Each level has at most
 * a sixty-fourth of the nodes below it, so all are never used, unless an older tree is damaged.
 */
static int add_child(struct tree_builder *t, unsigned level, const struct tree_child *c,
		     struct err *err)
{
	struct build_level *l;
	int r;

	if (level > TREE_LEVEL_MAX)
		return err_set(err, -EBADMSG, "a tree of more than %u levels", TREE_LEVEL_MAX);
	l = &t->levels[level];
	if (!l->full)
		return append_child(t, l, c, err);
	if (!l->holding) {
		memcpy(l->held_name, c->name, c->name_len);
		l->held = *c;
		l->held.name = l->held_name;
		l->holding = true;
		return 0;
	}

	r = put_node(t, level, err);
	if (r < 0)
		return r;
	l->holding = false;
	r = append_child(t, l, &l->held, err);
	if (r < 0)
		return r;
	return append_child(t, l, c, err);
}

/* Does the leaf end behind `last`, the entry it got last? */
static bool leaf_ends(const struct tree_builder *t, const struct tree_node_writer *leaf,
		      const struct tree_record *last)
{
	const size_t size = last->size;
	uint64_t hash;

	if (leaf->n >= LEAF_MAX)
		return true;
	if (leaf->n < LEAF_MIN && size <= LONG_ENTRY)
		return false;
	hash = object_name_hash(t->key, last->name, last->name_len);
	if (leaf->n >= LEAF_MIN && (hash & LEAF_CUT_BITS) == 0)
		return true;
	return size > LONG_ENTRY && tree_node_writer_size(leaf) >= LEAF_BYTES_MIN &&
	       (hash >> LONG_CUT_SHIFT & LONG_CUT_BITS) < size - LONG_ENTRY;
}

/* What `rec` says, from its bytes or, if it has none, from `e`. */
static int add_record(struct tree_builder *t, const struct tree_record *rec,
		      const struct tree_entry *e, struct err *err)
{
	struct build_level *leaf = &t->levels[0];
	int r;

	if (leaf->node.n > 0 && tree_node_writer_size(&leaf->node) + rec->size > LEAF_BYTES_MAX) {
		r = put_node(t, 0, err);
		if (r < 0)
			return r;
	}
	r = rec->bytes ? tree_node_add_record(&leaf->node, rec)
		       : tree_node_add_entry(&leaf->node, e);
	if (r < 0)
		return err_nomem(err);
	level_count(leaf, rec->name, rec->name_len, 1, &rec->counts);

	return leaf_ends(t, &leaf->node, rec) ? put_node(t, 0, err) : 0;
}

static int add_entry(struct tree_builder *t, const struct tree_entry *e, struct err *err)
{
	const struct tree_summary file = {
		.files = 1,
		.bytes = e->size,
		.links = e->form == TREE_LINK,
	};
	const struct tree_record rec = {
		.name = e->name,
		.name_len = e->name_len,
		.size = tree_node_entry_size(e),
		.counts = e->form == TREE_DIR ? e->below : file,
	};

	return add_record(t, &rec, e, err);
}

static int refuse_name(struct err *err, const char *name, size_t name_len, const char *why)
{
	CLEANUP(buf_done) struct buf shown = BUF_INIT;
	size_t len = name_len <= TREE_NAME_LEN_MAX ? name_len : TREE_NAME_LEN_MAX;
	const char *text;

	if (path_append_shown(&shown, name, len) < 0)
		return err_nomem(err);
	text = buf_str(&shown);
	if (!text)
		return err_nomem(err);
	return err_set(err, -EINVAL, "%s: '%s'", why, text);
}

/* May an entry of this name come next? */
static int check_name(const struct tree_builder *t, const char *name, size_t len, struct err *err)
{
	if (t->failed < 0)
		return err_set(err, t->failed,
			       "an earlier part of the directory could not be stored");
	if (!path_name_valid(name, len))
		return refuse_name(err, name, len, "a name that cannot stand in a directory");
	if (t->last_len > 0 && tree_name_compare(t->last, t->last_len, name, len) >= 0)
		return refuse_name(err, name, len, "a name that does not follow the one before");
	return 0;
}

static void set_last(struct tree_builder *t, const char *name, size_t len)
{
	memcpy(t->last, name, len);
	t->last_len = len;
}

int tree_builder_add(struct tree_builder *t, const struct tree_entry *e, struct err *err)
{
	int r = check_name(t, e->name, e->name_len, err);

	if (r < 0)
		return r;
	t->failed = add_entry(t, e, err);
	if (t->failed < 0)
		return t->failed;
	set_last(t, e->name, e->name_len);
	return 0;
}

int tree_builder_add_records(struct tree_builder *t, const struct tree_node *leaf, uint32_t from,
			     uint32_t end, struct err *err)
{
	struct tree_record rec = { 0 };
	int r = 0;

	for (uint32_t i = from; i < end; i++) {
		r = tree_node_record(leaf, i, &rec, err);
		/* The leaf was verified, so the others follow this one. */
		if (r == 0 && i == from)
			r = check_name(t, rec.name, rec.name_len, err);
		if (r < 0)
			return r;
		t->failed = add_record(t, &rec, NULL, err);
		if (t->failed < 0)
			return t->failed;
	}
	if (from < end)
		set_last(t, rec.name, rec.name_len);
	return 0;
}

/*
 * Put what is full on the levels up to this one, as at least two nodes follow on each below
 * it.  1 if a node of this level begins here, else 0.
 */
static int settle(struct tree_builder *t, unsigned level, struct err *err)
{
	int r;

	if (t->levels[0].entries > 0)
		return 0;
	for (unsigned i = 1; i <= level; i++) {
		const struct build_level *l = &t->levels[i];

		if (l->holding || (l->entries > 0 && !l->full))
			return 0;
		if (l->full) {
			r = put_node(t, i, err);
			if (r < 0)
				return r;
		}
	}
	return 1;
}

static int take_subtree(struct tree_builder *t, unsigned level, const struct tree_child *c,
			struct err *err)
{
	struct build_level *l = &t->levels[level];
	int r = settle(t, level, err);

	if (r <= 0)
		return r;
	for (unsigned i = 0; i < level; i++) {
		t->levels[i].n_put += 2;
		t->levels[i].last = i > 0 ? WITHIN : BUILT;
		t->levels[i].full = i > 0;
	}
	level_count(l, c->name, c->name_len, c->entries, &c->below);
	l->last = TAKEN;
	l->taken_id = c->id;
	l->full = level > 0;
	if (level == 0) {
		r = put_node(t, 0, err);
		if (r < 0)
			return r;
	}
	set_last(t, c->name, c->name_len);
	return 1;
}

int tree_builder_take(struct tree_builder *t, unsigned level, const struct tree_child *c,
		      struct err *err)
{
	int r;

	assert(t->cache && level < TREE_LEVEL_MAX && t->failed == 0);
	assert(t->last_len == 0 ||
	       tree_name_compare(t->last, t->last_len, c->name, c->name_len) < 0);
	r = take_subtree(t, level, c, err);
	if (r < 0)
		t->failed = r;
	return r;
}

int tree_builder_read(struct tree_builder *t, const struct object_id *id,
		      const struct cached **ret_hold, struct tree_node *ret, struct err *err)
{
	CLEANUP(cached_unref_p) const struct cached *hold = NULL;
	char hex[OBJECT_HEX_SIZE];
	struct tree_node node;
	int r = cache_load(t->cache, OBJECT_TREE, id, &hold, err);

	if (r < 0)
		return r;
	r = tree_node_open(hold->data, hold->len, &node, err);
	if (r == 0 && !cached_is_sound(hold))
		r = tree_node_verify(&node, err);
	if (r < 0)
		return err_wrap(err, r, "tree %s", object_id_hex(id, hex));
	cached_set_sound(hold);
	*ret = node;
	*ret_hold = TAKE_PTR(hold);
	return 0;
}

/*
 * Fill a branch that was taken over with its children.  If the last node below it is within
 * it, that one is taken over instead, and follows again.
 */
static int reopen(struct tree_builder *t, unsigned level, struct err *err)
{
	CLEANUP(cached_unref_p) const struct cached *hold = NULL;
	struct build_level *l = &t->levels[level], *lower = l - 1;
	struct tree_node node;
	struct tree_child c = { 0 };
	int r = tree_builder_read(t, &l->taken_id, &hold, &node, err);

	if (r < 0)
		return r;
	if (node.level != level)
		return err_set(err, -EBADMSG, "a tree node of level %u where %u belongs",
			       node.level, level);
	l->entries = 0;
	l->below = (struct tree_summary){ 0 };
	l->last = BUILT;
	for (uint32_t i = 0; i < node.n; i++) {
		r = tree_node_child(&node, i, &c, err);
		if (r < 0)
			return r;
		if (i == node.n - 1 && lower->last == WITHIN)
			break;
		r = append_child(t, l, &c, err);
		if (r < 0)
			return r;
	}
	if (lower->last == WITHIN) {
		level_count(lower, c.name, c.name_len, c.entries, &c.below);
		lower->last = TAKEN;
		lower->taken_id = c.id;
	}
	return 0;
}

/* Let the held child join the branch before it, wherever that is. */
static int join_held(struct tree_builder *t, unsigned level, struct err *err)
{
	struct build_level *l = &t->levels[level];
	unsigned taken = level;
	int r;

	while (t->levels[taken].last == WITHIN)
		taken++;
	for (; l->last != BUILT; taken--) {
		r = reopen(t, taken, err);
		if (r < 0)
			return r;
	}
	return append_child(t, l, &l->held, err);
}

/* Put what is left of each level, up to the first that has a single node. */
static int put_rest(struct tree_builder *t, struct build_level **ret_top, struct err *err)
{
	struct build_level *l = &t->levels[0];
	int r;

	if (l->entries > 0 || l->n_put == 0) {
		r = put_node(t, 0, err);
		if (r < 0)
			return r;
	}
	while (l->n_put > 1) {
		l++;
		if (l->holding) {
			r = join_held(t, l->node.level, err);
			if (r < 0)
				return r;
		}
		r = put_node(t, l->node.level, err);
		if (r < 0)
			return r;
	}
	*ret_top = l;
	return 0;
}

int tree_builder_finish(struct tree_builder *t, struct object_id *ret_id,
			struct tree_summary *ret_below, struct err *err)
{
	struct build_level *top = NULL;
	int r = t->failed;

	if (r < 0)
		err_set(err, r, "an earlier part of the directory could not be stored");
	else
		r = put_rest(t, &top, err);
	if (r == 0) {
		*ret_id = top->put_id;
		*ret_below = top->put_below;
	}
	builder_reset(t);
	return r;
}
