/*
 * promise.c - files whose bytes are promised and not yet captured (docs/design/lazy.md).
 *
 * The first operation that needs a byte of such a file, or changes one, has the promise kept; then
 * the file has an ordinary content. Reads of a large one get just their bytes (io.c), and it may be
 * changed while the rest is promised (partly.c). All promises of changed files are kept before
 * anything is persisted, so in a tree only an unchanged file can be a promise.
 */
#include <assert.h>
#include <errno.h>

#include "cowfs/core/layers-i.h"

/*
 * The same bytes, found elsewhere.  What a freeze has taken of the file is stored as a promise then, which
 * is as good; file_init() has it not settle here.
 */
void node_stand_on(struct layer *l, struct node *n, const struct content *c)
{
	const uint64_t before = n->file.data;

	assert(n->file.base.form == CONTENT_LAZY && c->size == n->file.base.size);
	if (file_is_stored(&n->file)) {
		file_init(&n->file, c);
	} else {
		file_stand_on(&n->file, c);
		node_count_data(l, n, before);
	}
	if (node_has_no_name(n))
		node_keep(l, n);
}

int node_get_bytes(struct op *op, uint64_t id, struct node **ret)
{
	const struct object_id *promise;
	struct node *n;
	int r = node_get_file(op->l, id, &n);

	if (r < 0)
		return r;
	*ret = n;
	if (n->file.base.form != CONTENT_LAZY)
		return 0;
	promise = &n->file.base.id;
	if (!object_id_equal(promise, &op->promise)) {
		op->need = (struct need){ .kind = NEED_PROMISE, .object.id = *promise };
		return -EAGAIN;
	}
	if (op->content.size != n->file.base.size)
		return err_set(op->err, -EBADMSG, "a promise was kept with another size");
	node_stand_on(op->l, n, &op->content);
	return 0;
}
