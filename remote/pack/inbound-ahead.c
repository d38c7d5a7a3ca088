/*
 * A large fetch is brought in three steps. The directories are read for the chunks that they lead
 * to; several threads unpack, compare and put those, frame by frame, in order; then the walk in
 * inbound.c finds each of them noted. Only that walk judges directories: a directory that is wrong
 * or missing ends this step early, and the walk finds it again.
 *
 * Each object that an index lists is looked at once at most, so nothing here grows beyond the
 * indexes.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/crew.h"
#include "base/sha256-many.h"
#include "base/sys.h"
#include "base/vec.h"
#include "remote/pack/inbound-i.h"

#define FRAMES_MIN 8    /* for a thread, to be worth its start */
#define GROUP      1024 /* objects that are digested together */

/* A chunk to bring. */
struct ahead_chunk {
	struct digest digest;
	uint32_t pack, object;
	size_t brought; /* its number in `in->brought` */
};

/* A directory or a node of a large file to read. */
struct ahead_node {
	enum object_kind kind;
	struct digest digest;
};

/* What a thread has of its own. */
struct ahead_member {
	struct pack_opener *opener;
	struct buf frame;
	struct sha256_job jobs[GROUP];
	struct digest have[GROUP];
};

struct ahead {
	struct inbound *in;
	struct ahead_node *nodes; /* owned; that are not read yet */
	size_t n_nodes, cap_nodes;
	struct digest_table met; /* those that were among them */
	struct ahead_chunk *chunks;
	size_t n, cap;
	size_t *frames; /* owned; the first chunk of each frame, and the end */
	size_t n_frames, cap_frames;
	struct ahead_member *members[CREW_MAX]; /* owned; NULL: not begun */
	_Atomic uint64_t objects, bytes;        /* that are here */
};

static void ahead_done(struct ahead *a)
{
	for (unsigned i = 0; i < CREW_MAX; i++)
		if (a->members[i]) {
			pack_opener_free(a->members[i]->opener);
			buf_done(&a->members[i]->frame);
			free(a->members[i]);
		}
	digest_table_done(&a->met);
	free(a->nodes);
	free(a->chunks);
	free(a->frames);
}

/* --- which chunks ------------------------------------------------------------------------- */

/* Where it is in a pack that came whole; NULL: it is not. */
static const struct pack_object *find_here(const struct ahead *a, enum object_kind kind,
					   const struct digest *d, size_t *ret_pack)
{
	const struct pack_set *packs = a->in->options->packs;
	const struct pack_object *o = pack_set_find(packs, kind, d, ret_pack);

	return o && packs->packs[*ret_pack].fd >= 0 && !packs->packs[*ret_pack].here ? o : NULL;
}

static int add_node(struct ahead *a, enum object_kind kind, const struct digest *d, struct err *err)
{
	size_t unused;
	int r;

	if (!find_here(a, kind, d, &unused))
		return 0;
	r = digest_table_add(&a->met, kind, d, 0);
	if (r == 1)
		return 0;
	if (r < 0 || !VEC_ROOM(a->nodes, a->n_nodes, a->cap_nodes))
		return err_nomem(err);
	a->nodes[a->n_nodes++] = (struct ahead_node){ kind, *d };
	return 0;
}

static int add_chunk(struct ahead *a, const struct digest *d, struct err *err)
{
	size_t pack;
	const struct pack_object *o = find_here(a, OBJECT_CHUNK, d, &pack);
	struct brought what = { 0 };
	int r;

	if (!o || inbound_seen(a->in, OBJECT_CHUNK, d))
		return 0;
	if (!VEC_ROOM(a->chunks, a->n, a->cap))
		return err_nomem(err);
	what.data = o->len;
	a->chunks[a->n] = (struct ahead_chunk){
		.digest = *d,
		.pack = (uint32_t)pack,
		.object = (uint32_t)(o - a->in->options->packs->packs[pack].objects),
		.brought = a->in->n,
	};
	r = inbound_note(a->in, OBJECT_CHUNK, d, &what, err);
	if (r == 0)
		a->n++;
	return r;
}

static int add_entries(struct ahead *a, struct portable_node *node, struct err *err)
{
	struct err ignored = { 0 };
	struct portable_entry p;
	struct digest leaf;
	int r = 0;

	while (r == 0 && node->level == 1 && portable_next_leaf(node, &leaf) > 0)
		r = add_node(a, OBJECT_TREE, &leaf, err);
	while (r == 0 && node->level == 0 && portable_next_entry(node, &p, &ignored) > 0) {
		if (p.e.form == TREE_CHUNK)
			r = add_chunk(a, &p.content, err);
		else if (p.e.form == TREE_RECIPE)
			r = add_node(a, OBJECT_RECIPE, &p.content, err);
		else if (p.e.form == TREE_DIR)
			r = add_node(a, OBJECT_TREE, &p.content, err);
	}
	return r;
}

static int add_slots(struct ahead *a, const struct portable_recipe *node, struct err *err)
{
	int r = 0;

	for (unsigned i = 0; r == 0 && i < node->n; i++)
		if (!digest_is_zero(&node->slot[i]))
			r = node->level == 0 ? add_chunk(a, &node->slot[i], err)
					     : add_node(a, OBJECT_RECIPE, &node->slot[i], err);
	return r;
}

/* 1 if it cannot be read: the walk says why. */
static int read_node(struct ahead *a, const struct ahead_node *n, struct buf *room,
		     struct portable_recipe *recipe, struct err *err)
{
	struct err ignored = { 0 };
	struct portable_node node;

	if (pack_set_get(a->in->options->packs, n->kind, &n->digest, room, &ignored) < 0)
		return 1;
	if (n->kind == OBJECT_TREE)
		return portable_node(room->data, room->len, &node, &ignored) < 0
			   ? 1
			   : add_entries(a, &node, err);
	return portable_recipe_decode(room->data, room->len, recipe, &ignored) < 0
		   ? 1
		   : add_slots(a, recipe, err);
}

/*
 * A node may cost a whole frame to unpack, wherever a stranger put it.  So the first that is wrong is the last
 * that is read, and the waiting caller may give up.
 */
static int collect_chunks(struct ahead *a, const struct digest *root, struct err *err)
{
	const struct inbound_options *o = a->in->options;
	AUTO_FREE struct portable_recipe *recipe = malloc(sizeof(*recipe));
	CLEANUP(buf_done) struct buf room = BUF_INIT;
	int r = recipe ? add_node(a, OBJECT_TREE, root, err) : err_nomem(err);

	while (r == 0 && a->n_nodes > 0) {
		const struct ahead_node next = a->nodes[--a->n_nodes];

		r = read_node(a, &next, &room, recipe, err);
		if (r == 0 && o->step)
			r = o->step(o->ctx, a->in->objects, a->in->bytes, err);
	}
	return r < 0 ? r : 0;
}

/* --- frames ------------------------------------------------------------------------------- */

static const struct pack *pack_of(const struct ahead *a, const struct ahead_chunk *c)
{
	return &a->in->options->packs->packs[c->pack];
}

static int by_place(const void *a, const void *b)
{
	const struct ahead_chunk *x = a, *y = b;

	if (x->pack != y->pack)
		return x->pack < y->pack ? -1 : 1;
	return (x->object > y->object) - (x->object < y->object);
}

static int find_frames(struct ahead *a, struct err *err)
{
	uint32_t pack = 0, frame = 0;

	qsort(a->chunks, a->n, sizeof(*a->chunks), by_place);
	for (size_t i = 0; i <= a->n; i++) {
		const struct ahead_chunk *c = &a->chunks[i];
		const uint32_t at = i < a->n ? pack_of(a, c)->objects[c->object].frame : 0;

		if (i > 0 && i < a->n && c->pack == pack && at == frame)
			continue;
		if (!VEC_ROOM(a->frames, a->n_frames, a->cap_frames))
			return err_nomem(err);
		a->frames[a->n_frames++] = i;
		pack = i < a->n ? c->pack : 0;
		frame = at;
	}
	a->n_frames--; /* the end is none */
	return 0;
}

static int member_of(struct ahead *a, unsigned number, struct ahead_member **ret, struct err *err)
{
	struct ahead_member *m = a->members[number];

	*ret = m;
	if (m)
		return 0;
	m = a->members[number] = calloc(1, sizeof(*m));
	*ret = m;
	return m ? pack_opener_new(&m->opener, err) : err_nomem(err);
}

static int check_group(const struct ahead *a, struct ahead_member *m, const struct ahead_chunk *c,
		       size_t n, struct err *err)
{
	const struct pack *p = pack_of(a, c);
	char text[DIGEST_TEXT_SIZE];

	for (size_t i = 0; i < n; i++) {
		const struct pack_object *o = &p->objects[c[i].object];

		m->jobs[i] = (struct sha256_job){ m->frame.data + o->at, o->len, m->have[i].b };
	}
	sha256_many(m->jobs, n);
	for (size_t i = 0; i < n; i++)
		if (!digest_equal(&m->have[i], &c[i].digest))
			return err_set(err, -EBADMSG, "pack %s holds wrong bytes for a %s",
				       digest_text(&p->digest, text),
				       object_kind_name(OBJECT_CHUNK));
	return 0;
}

/* Up to GROUP chunks of the frame that is unpacked. */
static int put_group(struct ahead *a, struct ahead_member *m, const struct ahead_chunk *c, size_t n,
		     struct err *err)
{
	const struct pack *p = pack_of(a, c);
	int r = check_group(a, m, c, n, err);

	for (size_t i = 0; r >= 0 && i < n; i++) {
		const struct pack_object *o = &p->objects[c[i].object];

		r = batch_put(a->in->batch, OBJECT_CHUNK, m->frame.data + o->at, o->len,
			      &a->in->brought[c[i].brought].id, err);
		a->bytes += o->len;
	}
	a->objects += n;
	return r < 0 ? r : 0;
}

static int bring_frame(unsigned member, size_t i, void *ctx, struct err *err)
{
	struct ahead *a = ctx;
	const struct inbound_options *o = a->in->options;
	const struct ahead_chunk *c = &a->chunks[a->frames[i]];
	const size_t n = a->frames[i + 1] - a->frames[i];
	const struct pack *p = pack_of(a, c);
	char text[DIGEST_TEXT_SIZE];
	struct ahead_member *m;
	int r = member_of(a, member, &m, err);

	if (r < 0)
		return r;
	r = pack_open_frame(m->opener, p, p->objects[c->object].frame, &m->frame, err);
	if (r < 0)
		return err_wrap(err, r, "pack %s", digest_text(&p->digest, text));
	for (size_t at = 0; r == 0 && at < n; at += GROUP)
		r = put_group(a, m, c + at, n - at < GROUP ? n - at : GROUP, err);
	/* The first is the caller's own thread. */
	if (r == 0 && member == 0 && o->step)
		r = o->step(o->ctx, a->objects, a->bytes, err);
	return r;
}

static unsigned count_threads(size_t frames)
{
	const unsigned processors = sys_processors();
	const size_t most = frames / FRAMES_MIN;
	unsigned n = processors < CREW_MAX ? processors : CREW_MAX;

	if (n > most)
		n = (unsigned)most;
	return n > 0 ? n : 1;
}

/* What the walk will find noted. */
static int remember(struct ahead *a, struct err *err)
{
	for (size_t i = 0; i < a->n; i++)
		if (digests_add(a->in->options->known, OBJECT_CHUNK,
				&a->in->brought[a->chunks[i].brought].id, &a->chunks[i].digest) < 0)
			return err_nomem(err);
	a->in->objects += a->objects;
	a->in->bytes += a->bytes;
	return 0;
}

int inbound_ahead(struct inbound *in, const struct digest *root, struct err *err)
{
	CLEANUP(ahead_done) struct ahead a = { .in = in };
	int r = collect_chunks(&a, root, err);

	if (r < 0 || a.n == 0)
		return r;
	r = find_frames(&a, err);
	if (r == 0)
		r = crew_each(count_threads(a.n_frames), a.n_frames, bring_frame, &a, err);
	return r < 0 ? r : remember(&a, err);
}
