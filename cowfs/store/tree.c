/*
 * tree.c - find a name in a tree, or walk its names.
 *
 * A node's bytes have been checked against its id when they arrive here.  What is
 * checked on the way down is that nodes fit together: a child is of the level below
 * and begins with the name that its branch says, so no name can hide between nodes.
 */
#include "cowfs/store/tree.h"

#include <assert.h>
#include <errno.h>
#include <sys/stat.h>

#include "base/path.h"
#include "cowfs/store/tree-node.h"

#define NS_PER_S 1000000000

_Static_assert(TREE_NAME_LEN_MAX == PATH_NAME_MAX, "names are what path.h says");
_Static_assert(S_IFMT == 0170000 && S_IFDIR == 0040000 && S_IFREG == 0100000 &&
		   S_IFLNK == 0120000 && S_IFCHR == 0020000 && S_IFBLK == 0060000 &&
		   S_IFIFO == 0010000 && S_IFSOCK == 0140000,
	       "the format has these type bits");

void tree_entry_set_content(struct tree_entry *e, const struct content *c)
{
	switch (c->form) {
	case CONTENT_HOLE:
		e->form = TREE_NONE;
		break;
	case CONTENT_CHUNK:
		e->form = TREE_CHUNK;
		break;
	case CONTENT_RECIPE:
		e->form = TREE_RECIPE;
		break;
	}
	e->id = c->id;
	e->size = c->size;
	e->data = c->data;
}

struct content tree_entry_content(const struct tree_entry *e)
{
	struct content c = { .id = e->id, .size = e->size, .data = e->data };

	assert(S_ISREG(e->mode) && e->form != TREE_LINK);
	if (e->form == TREE_CHUNK)
		c.form = CONTENT_CHUNK;
	else if (e->form == TREE_RECIPE)
		c.form = CONTENT_RECIPE;
	else
		c.form = CONTENT_HOLE;
	return c;
}

static bool bytes_equal(const char *a, size_t a_len, const char *b, size_t b_len)
{
	return a_len == b_len && (a_len == 0 || memcmp(a, b, a_len) == 0);
}

bool tree_entry_equal(const struct tree_entry *a, const struct tree_entry *b)
{
	return bytes_equal(a->name, a->name_len, b->name, b->name_len) && a->form == b->form &&
	       a->mode == b->mode && a->uid == b->uid && a->gid == b->gid && a->ino == b->ino &&
	       a->size == b->size && a->mtime_s == b->mtime_s && a->ctime_s == b->ctime_s &&
	       a->mtime_ns == b->mtime_ns && a->ctime_ns == b->ctime_ns &&
	       object_id_equal(&a->id, &b->id) && object_id_equal(&a->xattrs, &b->xattrs) &&
	       a->data == b->data && a->rdev == b->rdev && a->nlink == b->nlink &&
	       bytes_equal(a->target, a->target_len, b->target, b->target_len) &&
	       a->below.files == b->below.files && a->below.bytes == b->below.bytes &&
	       a->below.links == b->below.links;
}

static bool mode_known(uint32_t mode)
{
	if ((mode & ~(uint32_t)(S_IFMT | 07777)) != 0)
		return false;
	switch (mode & S_IFMT) {
	case S_IFREG:
	case S_IFDIR:
	case S_IFLNK:
	case S_IFCHR:
	case S_IFBLK:
	case S_IFIFO:
	case S_IFSOCK:
		return true;
	default:
		return false;
	}
}

static const char *link_flaw(const struct tree_entry *e)
{
	struct tree_entry bare = {
		.name = e->name,
		.name_len = e->name_len,
		.form = TREE_LINK,
		.mode = e->mode & S_IFMT,
		.ino = e->ino,
	};

	if (S_ISDIR(e->mode))
		return "a directory with several names";
	if (!tree_entry_equal(e, &bare))
		return "a link has attributes of its own";
	return NULL;
}

static const char *regular_flaw(const struct tree_entry *e)
{
	if (e->size > INT64_MAX)
		return "its size is beyond what a file can have";
	if (e->form == TREE_CHUNK && (e->size == 0 || e->size > CHUNK_SIZE_MAX))
		return "its size does not fit a single chunk";
	if (e->form == TREE_RECIPE && e->size <= CHUNK_SIZE_MAX)
		return "its size does not fit a recipe";
	if ((e->form == TREE_NONE) != (e->data == 0))
		return "data and content do not go together";
	if (e->data > e->size)
		return "it has more data than bytes";
	if (e->form == TREE_CHUNK && e->data != e->size)
		return "a single chunk with a hole in it";
	return NULL;
}

static const char *symlink_flaw(const struct tree_entry *e)
{
	if (e->target_len == 0)
		return "a symlink without a target";
	if (e->target_len > TREE_TARGET_LEN_MAX)
		return "its target is too long";
	if (memchr(e->target, 0, e->target_len))
		return "its target holds a NUL";
	if (e->size != e->target_len)
		return "the size of a symlink is not the length of its target";
	return NULL;
}

/* Of every form but TREE_LINK: are the fields those of its type? */
static const char *type_flaw(const struct tree_entry *e)
{
	const struct tree_summary *below = &e->below;
	bool reg = S_ISREG(e->mode), dir = S_ISDIR(e->mode), symlink = S_ISLNK(e->mode);

	if (dir != (e->form == TREE_DIR))
		return "directory and tree do not go together";
	if (!reg && (e->form == TREE_CHUNK || e->form == TREE_RECIPE || e->data != 0))
		return "content of what is no regular file";
	if (!S_ISCHR(e->mode) && !S_ISBLK(e->mode) && e->rdev != 0)
		return "a device number of what is no device";
	if (!dir && (below->files != 0 || below->bytes != 0 || below->links))
		return "a summary of what is no directory";
	if (dir && e->nlink != 0)
		return "a directory with a number of names";
	if (!symlink && e->target_len != 0)
		return "a target of what is no symlink";
	if (!reg && !symlink && e->size != 0)
		return "a size of what is neither regular file nor symlink";
	if (reg)
		return regular_flaw(e);
	return symlink ? symlink_flaw(e) : NULL;
}

const char *tree_entry_flaw(const struct tree_entry *e)
{
	if (!path_name_valid(e->name, e->name_len))
		return "its name cannot stand in a directory";
	if (!mode_known(e->mode))
		return "its mode is of no known type";
	if (e->mtime_ns >= NS_PER_S || e->ctime_ns >= NS_PER_S)
		return "its time has more nanoseconds than a second";
	if (object_id_is_zero(&e->id) != (e->form == TREE_NONE || e->form == TREE_LINK))
		return "its form and its object do not go together";
	return e->form == TREE_LINK ? link_flaw(e) : type_flaw(e);
}

/* Who names a node relies on it being there, so a missing one is damage. */
static int load_node(struct store *s, const struct object_id *id, struct buf *bytes,
		     struct tree_node *ret, struct err *err)
{
	char hex[OBJECT_HEX_SIZE];
	int r;

	r = store_get(s, OBJECT_TREE, id, bytes, err);
	if (r == -ENOENT)
		return err_set(err, -EBADMSG, "tree %s is missing", object_id_hex(id, hex));
	if (r < 0)
		return r;
	r = tree_node_open(bytes->data, bytes->len, ret, err);
	if (r < 0)
		return err_wrap(err, r, "tree %s", object_id_hex(id, hex));
	return 0;
}

/* The node that record i of a branch names; `bytes` are not those of the branch. */
static int load_child(struct store *s, const struct tree_node *branch, uint32_t i,
		      struct buf *bytes, struct tree_node *ret, struct err *err)
{
	char hex[OBJECT_HEX_SIZE];
	struct tree_child c;
	uint32_t first;
	bool equal;
	int r;

	r = tree_node_child(branch, i, &c, err);
	if (r < 0)
		return r;
	r = load_node(s, &c.id, bytes, ret, err);
	if (r < 0)
		return r;
	if (ret->level + 1 != branch->level)
		return err_set(err, -EBADMSG, "tree %s: level %u right below level %u",
			       object_id_hex(&c.id, hex), ret->level, branch->level);
	r = tree_node_find(ret, c.name, c.name_len, &first, &equal, err);
	if (r < 0)
		return err_wrap(err, r, "tree %s", object_id_hex(&c.id, hex));
	if (first != 0 || !equal)
		return err_set(err, -EBADMSG, "tree %s: does not begin as its branch says",
			       object_id_hex(&c.id, hex));
	return 0;
}

/* Which child of a branch would hold the name; -ENOENT if it is before all of them. */
static int find_child(const struct tree_node *branch, const char *name, size_t name_len,
		      uint32_t *ret_i, struct err *err)
{
	uint32_t i;
	bool equal;
	int r;

	r = tree_node_find(branch, name, name_len, &i, &equal, err);
	if (r < 0)
		return r;
	if (!equal && i == 0)
		return -ENOENT;
	*ret_i = equal ? i : i - 1;
	return 0;
}

int tree_lookup(struct store *s, const struct object_id *tree, const char *name, size_t name_len,
		struct tree_entry *ret, struct buf *hold, struct err *err)
{
	CLEANUP(buf_done) struct buf below = BUF_INIT;
	struct tree_node node, child;
	uint32_t i;
	bool equal;
	int r;

	r = load_node(s, tree, hold, &node, err);
	if (r < 0)
		return r;
	while (node.level > 0) {
		r = find_child(&node, name, name_len, &i, err);
		if (r < 0)
			return r;
		r = load_child(s, &node, i, &below, &child, err);
		if (r < 0)
			return r;
		buf_swap(hold, &below);
		node = child;
	}
	r = tree_node_find(&node, name, name_len, &i, &equal, err);
	if (r < 0)
		return r;
	return equal ? tree_node_entry(&node, i, ret, err) : -ENOENT;
}

/* A node on the way from the top to the present leaf. */
struct step {
	struct buf bytes;
	struct tree_node node; /* borrows from `bytes` */
	uint32_t next;         /* the record to give, or to go down to */
};

struct tree_iter {
	struct store *s; /* borrowed */
	struct step steps[TREE_LEVEL_MAX + 1];
	unsigned depth; /* steps in use; the first is the top node and stays */
};

int tree_iter_new(struct store *s, const struct object_id *tree, struct tree_iter **ret,
		  struct err *err)
{
	CLEANUP(tree_iter_free_p) struct tree_iter *it = calloc(1, sizeof(*it));
	int r;

	if (!it)
		return err_nomem(err);
	it->s = s;
	r = load_node(s, tree, &it->steps[0].bytes, &it->steps[0].node, err);
	if (r < 0)
		return r;
	it->depth = 1;
	*ret = TAKE_PTR(it);
	return 0;
}

void tree_iter_free(struct tree_iter *it)
{
	if (!it)
		return;
	for (unsigned i = 0; i <= TREE_LEVEL_MAX; i++)
		buf_done(&it->steps[i].bytes);
	free(it);
}

/* From a branch to its next child.  Levels fall by one each time, so the steps suffice. */
static int step_down(struct tree_iter *it, struct err *err)
{
	struct step *from = &it->steps[it->depth - 1], *to = from + 1;
	int r;

	r = load_child(it->s, &from->node, from->next, &to->bytes, &to->node, err);
	if (r < 0)
		return r;
	from->next++;
	to->next = 0;
	it->depth++;
	return 0;
}

int tree_iter_seek(struct tree_iter *it, const char *name, size_t name_len, struct err *err)
{
	struct step *step = it->steps;
	bool equal;
	int r;

	it->depth = 1;
	step->next = 0;
	for (; step->node.level > 0; step++) {
		r = find_child(&step->node, name, name_len, &step->next, err);
		if (r == -ENOENT)
			return 0;
		if (r < 0)
			return r;
		r = step_down(it, err);
		if (r < 0)
			return r;
	}
	return tree_node_find(&step->node, name, name_len, &step->next, &equal, err);
}

int tree_iter_next(struct tree_iter *it, struct tree_entry *ret, struct err *err)
{
	int r;

	for (;;) {
		struct step *step = &it->steps[it->depth - 1];

		if (step->next == step->node.n) {
			if (it->depth == 1)
				return 0;
			it->depth--;
		} else if (step->node.level > 0) {
			r = step_down(it, err);
			if (r < 0)
				return r;
		} else {
			r = tree_node_entry(&step->node, step->next, ret, err);
			if (r < 0)
				return r;
			step->next++;
			return 1;
		}
	}
}
