/*
 * A root counts the names of each file that has several. Directories that are read once and occur
 * in several places count for each place, so they are walked again; the cost of that is bounded.
 */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/le.h"
#include "remote/pack/inbound-i.h"

#define STEPS_MAX ((uint64_t)4 << 20)

static struct digest key_of(uint64_t ino)
{
	struct digest d = { { 0 } };

	le64_store(d.b, ino);
	return d;
}

int inbound_count_link(struct inbound *in, const struct tree_entry *e, struct err *err)
{
	const struct digest key = key_of(e->ino);
	const uint32_t type = e->mode & S_IFMT;
	uint64_t *count;
	int r = digest_table_add(&in->links, type, &key, 1);

	if (r < 0)
		return err_nomem(err);
	if (r == 0)
		return 0;
	count = digest_table_find(&in->links, type, &key);
	++*count;
	return 0;
}

static int step(struct inbound *in, unsigned depth, struct err *err)
{
	if (depth > INBOUND_DEPTH_MAX || ++in->link_steps > STEPS_MAX)
		return err_set(err, -E2BIG, "the snapshot has more hard links than can be checked");
	return 0;
}

static int count_stored(struct inbound *in, const struct object_id *tree, unsigned depth,
			struct err *err)
{
	CLEANUP(tree_iter_free_p) struct tree_iter *it = NULL;
	struct tree_entry e;
	int r = tree_iter_new(in->store, tree, &it, err);

	while (r >= 0 && (r = tree_iter_next(it, &e, err)) > 0) {
		r = step(in, depth, err);
		if (r == 0 && e.form == TREE_LINK)
			r = inbound_count_link(in, &e, err);
		else if (r == 0 && e.form == TREE_DIR && e.below.links)
			r = count_stored(in, &e.id, depth + 1, err);
	}
	return r;
}

static int count_packed(struct inbound *in, const struct digest *d, unsigned depth,
			struct err *err);

static int count_leaf(struct inbound *in, struct portable_node *node, unsigned depth,
		      struct err *err)
{
	struct portable_entry p;
	int r;

	while ((r = portable_next_entry(node, &p, err)) > 0) {
		const struct brought *dir =
		    p.e.form == TREE_DIR ? inbound_seen(in, OBJECT_TREE, &p.content) : NULL;

		r = step(in, depth, err);
		if (r == 0 && p.e.form == TREE_LINK)
			r = inbound_count_link(in, &p.e, err);
		if (r == 0 && dir && dir->below.links)
			r = dir->shared ? count_stored(in, &dir->id, depth + 1, err)
					: count_packed(in, &p.content, depth + 1, err);
		if (r < 0)
			return r;
	}
	return r;
}

static int count_packed(struct inbound *in, const struct digest *d, unsigned depth, struct err *err)
{
	CLEANUP(buf_done) struct buf bytes = BUF_INIT, leaf = BUF_INIT;
	struct portable_node node, in_leaf;
	struct digest next;
	int r = inbound_get(in, OBJECT_TREE, d, &bytes, err);

	if (r == 0)
		r = step(in, depth, err);
	if (r == 0)
		r = portable_node(bytes.data, bytes.len, &node, err);
	if (r < 0)
		return r;
	if (node.level == 0)
		return count_leaf(in, &node, depth, err);
	while (r == 0 && portable_next_leaf(&node, &next) > 0) {
		r = inbound_get(in, OBJECT_TREE, &next, &leaf, err);
		if (r == 0)
			r = portable_node(leaf.data, leaf.len, &in_leaf, err);
		if (r == 0)
			r = count_leaf(in, &in_leaf, depth, err);
	}
	return r;
}

int inbound_count_links(struct inbound *in, const struct digest *d, const struct brought *dir,
			struct err *err)
{
	if (!dir->below.links || dir->lacking)
		return 0;
	return dir->shared ? count_stored(in, &dir->id, 0, err) : count_packed(in, d, 0, err);
}

int inbound_settle_link(struct inbound *in, const struct tree_entry *e, struct err *err)
{
	const struct digest key = key_of(e->ino);
	uint64_t *count = digest_table_find(&in->links, e->mode & S_IFMT, &key);
	char name[ROOT_LINK_NAME_SIZE];

	root_link_name(e->ino, name);
	if (e->name_len != sizeof(name) - 1 || memcmp(e->name, name, e->name_len) != 0)
		return err_set(err, -EBADMSG, "a hard link in a pack has a wrong number");
	if (e->nlink == 0 || !count || *count != e->nlink)
		return err_set(err, -EBADMSG,
			       "a file in a pack says that it has %u names, and has %llu",
			       (unsigned)e->nlink, (unsigned long long)(count ? *count : 0));
	*count = 0;
	return 0;
}
