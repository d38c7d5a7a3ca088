#include <errno.h>
#include <stdlib.h>

#include "cowfs/store/xattrs.h"
#include "remote/pack/inbound-i.h"

/* Put a verified object that travels as it is, and remember it. */
static int put_plain(struct inbound *in, enum object_kind kind, const struct digest *d,
		     struct object_id *ret, struct err *err)
{
	struct brought made = { .data = in->object.len };
	int r = batch_put(in->batch, kind, in->object.data, in->object.len, &made.id, err);

	if (r < 0)
		return r;
	if (digests_add(in->options->known, kind, &made.id, d) < 0)
		return err_nomem(err);
	*ret = made.id;
	return inbound_note(in, kind, d, &made, err);
}

/* A chunk of exactly `len` bytes. */
static int bring_chunk(struct inbound *in, const struct digest *d, uint64_t len,
		       struct object_id *ret, struct err *err)
{
	const struct brought *seen = inbound_seen(in, OBJECT_CHUNK, d);
	int r;

	if (!seen) {
		r = inbound_get(in, OBJECT_CHUNK, d, &in->object, err);
		if (r < 0)
			return r;
		if (in->object.len != len)
			return err_set(err, -EBADMSG, "a chunk in a pack has a wrong length");
		return put_plain(in, OBJECT_CHUNK, d, ret, err);
	}
	if (seen->data != len)
		return err_set(err, -EBADMSG, "a chunk in a pack has a wrong length");
	*ret = seen->id;
	return 0;
}

int inbound_xattrs(struct inbound *in, const struct digest *d, struct object_id *ret,
		   struct err *err)
{
	const struct brought *seen = inbound_seen(in, OBJECT_XATTRS, d);
	int r;

	if (seen) {
		*ret = seen->id;
		return 0;
	}
	r = inbound_get(in, OBJECT_XATTRS, d, &in->object, err);
	if (r == 0)
		r = xattrs_verify(in->object.data, in->object.len, err);
	return r < 0 ? r : put_plain(in, OBJECT_XATTRS, d, ret, err);
}

/* --- large files -------------------------------------------------------------------------- */

struct node {
	struct portable_recipe from;
	struct recipe_node to;
	struct buf bytes;
};

static void node_free(struct node *n)
{
	if (n)
		buf_done(&n->bytes);
	free(n);
}
DEFINE_CLEANUP(struct node *, node_free)

static int bring_node(struct inbound *in, const struct digest *d, unsigned level, uint64_t size,
		      struct brought *ret, struct err *err);

/* One slot of a node: `size` bytes of the file. */
static int bring_slot(struct inbound *in, struct node *n, unsigned slot, uint64_t size,
		      struct brought *whole, struct err *err)
{
	struct brought child = { 0 };
	int r;

	if (digest_is_zero(&n->from.slot[slot]))
		return 0;
	if (n->from.level == 0) {
		r = bring_chunk(in, &n->from.slot[slot], size, &child.id, err);
		child.data = size;
	} else {
		r = bring_node(in, &n->from.slot[slot], n->from.level - 1, size, &child, err);
	}
	if (r == -ENODATA) {
		whole->lacking = true;
		return 0;
	}
	n->to.id[slot] = child.id;
	whole->data += child.data;
	return r;
}

/* All slots of a node that covers `size` bytes of the file. */
static int bring_slots(struct inbound *in, struct node *n, uint64_t size, struct brought *ret,
		       struct err *err)
{
	const uint64_t span = recipe_slot_span(n->from.level);
	const uint64_t slots = size / span + (size % span > 0);
	int r = 0;

	if (n->from.n > slots)
		return err_set(err, -EBADMSG, "a large file in a pack is longer than its size");
	n->to.level = n->from.level;
	n->to.n = n->from.n;
	for (unsigned i = 0; r >= 0 && i < n->from.n; i++)
		r = bring_slot(in, n, i, i + 1 < slots ? span : size - i * span, ret, err);
	return r;
}

static int read_node(struct inbound *in, const struct digest *d, unsigned level, struct node *n,
		     struct err *err)
{
	int r = inbound_get(in, OBJECT_RECIPE, d, &n->bytes, err);

	if (r == 0)
		r = portable_recipe_decode(n->bytes.data, n->bytes.len, &n->from, err);
	if (r == 0 && n->from.level != level)
		return err_set(err, -EBADMSG, "a large file in a pack has nodes of a wrong level");
	return r;
}

/* A node and what is below it.  One that covers all that it can is the same wherever it stands. */
static int bring_node(struct inbound *in, const struct digest *d, unsigned level, uint64_t size,
		      struct brought *ret, struct err *err)
{
	const bool full = size == recipe_slot_span(level) * RECIPE_FANOUT;
	const struct brought *seen = full ? inbound_seen(in, OBJECT_RECIPE, d) : NULL;
	CLEANUP(node_free_p) struct node *n = NULL;
	struct brought made = { 0 };
	int r;

	if (seen) {
		*ret = *seen;
		return seen->lacking ? -ENODATA : 0;
	}
	n = calloc(1, sizeof(*n));
	if (!n)
		return err_nomem(err);
	r = read_node(in, d, level, n, err);
	if (r == 0)
		r = bring_slots(in, n, size, &made, err);
	if (r < 0)
		return r;
	if (!made.lacking) {
		if (recipe_encode(&n->to, &n->bytes) < 0)
			return err_nomem(err);
		r = batch_put(in->batch, OBJECT_RECIPE, n->bytes.data, n->bytes.len, &made.id, err);
		if (r < 0)
			return r;
		if (digests_add(in->options->known, OBJECT_RECIPE, &made.id, d) < 0)
			return err_nomem(err);
	}
	r = full ? inbound_note(in, OBJECT_RECIPE, d, &made, err) : 0;
	*ret = made;
	return r == 0 && made.lacking ? -ENODATA : r;
}

static int bring_large(struct inbound *in, const struct portable_entry *p, struct tree_entry *e,
		       struct err *err)
{
	const struct brought *seen = inbound_seen(in, SEEN_FILE, &p->content);
	struct brought made = { 0 };
	int r;

	if (seen && seen->size == e->size) {
		made = *seen;
		r = made.lacking ? -ENODATA : 0;
	} else {
		r = bring_node(in, &p->content, recipe_level(e->size), e->size, &made, err);
		made.size = e->size;
		made.lacking = r == -ENODATA;
		if (r == 0 || r == -ENODATA) {
			int noted = seen ? 0 : inbound_note(in, SEEN_FILE, &p->content, &made, err);

			r = noted < 0 ? noted : r;
		}
	}
	e->id = made.id;
	e->data = made.data;
	return r;
}

static int check_size(const struct tree_entry *e, struct err *err)
{
	const bool fits = e->form == TREE_CHUNK ? e->size > 0 && e->size <= CHUNK_SIZE_MAX
						: e->size > CHUNK_SIZE_MAX && e->size <= INT64_MAX;

	return fits ? 0 : err_set(err, -EBADMSG, "a file in a pack has an impossible size");
}

int inbound_promise(struct inbound *in, const struct portable_entry *p, struct tree_entry *e,
		    struct err *err)
{
	const enum object_kind kind = e->form == TREE_CHUNK ? OBJECT_CHUNK : OBJECT_RECIPE;
	const struct inbound_options *o = in->options;
	const struct pack_object *at;
	char text[DIGEST_TEXT_SIZE];
	size_t unused;
	int r = check_size(e, err);

	if (r < 0)
		return r;
	at = pack_set_find(o->packs, kind, &p->content, &unused);
	if (!at)
		return err_set(err, -EBADMSG, "the snapshot is incomplete: no pack has the %s %s",
			       object_kind_name(kind), digest_text(&p->content, text));
	if (kind == OBJECT_CHUNK && at->len != e->size)
		return err_set(err, -EBADMSG, "a chunk in a pack has a wrong length");
	r = o->promise(o->promise_ctx, kind, &p->content, e->size, &e->id, err);
	e->form = TREE_LAZY;
	e->data = e->size;
	return r;
}

int inbound_file(struct inbound *in, const struct portable_entry *p, struct tree_entry *e,
		 struct err *err)
{
	int r = check_size(e, err);

	if (r < 0 || e->form == TREE_RECIPE)
		return r < 0 ? r : bring_large(in, p, e, err);
	r = bring_chunk(in, &p->content, e->size, &e->id, err);
	e->data = e->size;
	return r;
}
