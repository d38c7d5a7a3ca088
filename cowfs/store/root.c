#include "cowfs/store/root.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>

#include "cowfs/store/cache.h"
#include "cowfs/store/tree-node.h"

const char *root_link_name(uint64_t ino, char name[ROOT_LINK_NAME_SIZE])
{
	snprintf(name, ROOT_LINK_NAME_SIZE, "%016" PRIx64, ino);
	return name;
}

static bool name_is(const struct tree_entry *e, const char *name)
{
	return tree_name_compare(e->name, e->name_len, name, strlen(name)) == 0;
}

/* Its attributes are nobody's, so they are all zero. */
static struct tree_entry links_entry(const struct root *root)
{
	return (struct tree_entry){
		.name = ROOT_LINKS,
		.name_len = strlen(ROOT_LINKS),
		.form = TREE_DIR,
		.mode = S_IFDIR,
		.id = root->links,
		.below = root->in_links,
	};
}

int root_put(struct batch *b, const struct root *root, struct object_id *ret_id, struct err *err)
{
	CLEANUP(tree_builder_free_p) struct tree_builder *t = NULL;
	struct tree_entry links = links_entry(root);
	struct tree_summary below;
	int r;

	assert(root->top.form == TREE_DIR && name_is(&root->top, ROOT_TOP));

	r = tree_builder_new(b, &t, err);
	if (r < 0)
		return r;
	if (!object_id_is_zero(&root->links)) {
		r = tree_builder_add(t, &links, err);
		if (r < 0)
			return r;
	}
	r = tree_builder_add(t, &root->top, err);
	if (r < 0)
		return r;
	return tree_builder_finish(t, ret_id, &below, err);
}

/* What root_put() wrote and nothing else. */
int root_decode(const void *data, size_t len, struct root *ret, struct err *err)
{
	struct tree_entry links, want;
	struct root root = { 0 };
	struct tree_node node;
	int r = tree_node_open(data, len, &node, err);

	if (r < 0)
		return r;
	if (node.level != 0 || node.n < 1 || node.n > 2)
		return err_set(err, -EBADMSG, "a directory, not a root");
	r = tree_node_entry(&node, node.n - 1, &root.top, err);
	if (r < 0)
		return r;
	if (!name_is(&root.top, ROOT_TOP) || root.top.form != TREE_DIR)
		return err_set(err, -EBADMSG, "a root without its first directory");
	root.top.name = ROOT_TOP;

	if (node.n == 2) {
		r = tree_node_entry(&node, 0, &links, err);
		if (r < 0)
			return r;
		root.links = links.id;
		root.in_links = links.below;
		want = links_entry(&root);
		if (!tree_entry_equal(&links, &want))
			return err_set(err, -EBADMSG, "a root with more than its links beside it");
	}
	*ret = root;
	return 0;
}

int root_get(struct store *s, const struct object_id *id, struct root *ret, struct err *err)
{
	CLEANUP(buf_done) struct buf bytes = BUF_INIT;
	char hex[OBJECT_HEX_SIZE];
	int r = cache_require(s, OBJECT_TREE, id, &bytes, err);

	if (r < 0)
		return r;
	r = root_decode(bytes.data, bytes.len, ret, err);
	if (r < 0)
		return err_wrap(err, r, "root %s", object_id_hex(id, hex));
	return 0;
}

int root_find_link(struct store *s, const struct root *root, uint64_t ino, struct tree_entry *ret,
		   struct buf *hold, struct err *err)
{
	char name[ROOT_LINK_NAME_SIZE];

	if (object_id_is_zero(&root->links))
		return -ENOENT;
	root_link_name(ino, name);
	return tree_lookup(s, &root->links, name, strlen(name), ret, hold, err);
}

int root_link(struct store *s, const struct root *root, uint64_t ino, struct tree_entry *ret,
	      struct buf *hold, struct err *err)
{
	struct tree_entry e;
	int r = root_find_link(s, root, ino, &e, hold, err);

	if (r == -ENOENT)
		return err_set(err, -EBADMSG,
			       "the file with inode %" PRIu64 " is not among the links", ino);
	if (r < 0)
		return r;
	if (e.form == TREE_LINK || e.form == TREE_DIR || e.ino != ino)
		return err_set(err, -EBADMSG,
			       "what stands among the links for inode %" PRIu64 " is not that file",
			       ino);
	*ret = e;
	return 0;
}
