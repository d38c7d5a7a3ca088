#include "cowfs/core/layer.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/sys.h"
#include "cowfs/core/difference-i.h"
#include "cowfs/core/persist-i.h"
#include "cowfs/store/pin.h"

/* New numbers follow the clock, so no tree that was stored before has them. */
uint64_t layer_first_ino(uint64_t at_least)
{
	const struct timespec now = layer_now();
	const uint64_t us = (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
	const uint64_t ino = (uint64_t)1 << 62 | us;

	return ino > at_least ? ino : at_least;
}

static int make_links(struct layer *l, const struct root *root)
{
	struct tree_entry e = {
		.form = TREE_DIR,
		.mode = S_IFDIR,
		.id = root->links,
		.below = root->in_links,
	};

	return node_from_entry(l, &e, &l->links);
}

static int load_root(struct layer *l, struct err *err)
{
	struct root root;
	int r = root_get(layers_store(l->all), &l->record.root, &root, err);

	if (r < 0)
		return r;
	l->state = (struct layer_state){
		.id = l->record.root,
		.files = root.top.below.files,
		.bytes = root.top.below.bytes + root.in_links.bytes,
	};
	if (node_from_entry(l, &root.top, &l->top) < 0 || make_links(l, &root) < 0)
		return err_nomem(err);
	assert(l->top->id == LAYER_ROOT);
	l->top->refs = 1; /* the caller has it from the start and never forgets it */
	l->links->refs = 1;
	return 0;
}

void layer_unpin(struct layer *l)
{
	if (l->pinned)
		store_unpin(layers_store(l->all), OBJECT_TREE, &l->record.root);
	l->pinned = false;
}

void layer_destroy(struct layer *l)
{
	struct node *n;

	if (!l)
		return;
	for (size_t pos = 0; (n = map_next(&l->nodes, &pos));)
		node_destroy(l, n);
	map_done(&l->nodes);
	layer_unpin(l);
	clone_done(&l->record);
	pthread_mutex_destroy(&l->lock);
	free(l->halves);
	free(l->partly);
	pthread_cond_destroy(&l->calm);
	free(l);
}

/* Without a root. */
static struct layer *layer_new(struct layers *ls)
{
	struct layer *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	l->all = ls;
	l->cache = layers_cache(ls);
	l->generation = 1;
	l->next_node = LAYER_ROOT;
	l->nodes = MAP_INIT(map_hash_u64, map_equal_u64);
	pthread_mutex_init(&l->lock, NULL);
	sys_cond_init(&l->calm);
	return l;
}

void layer_take_record(struct layer *l, struct clone *record)
{
	l->record = *record;
	*record = (struct clone){ 0 };
	l->grown = l->record.grown;
	l->meta = l->record.meta;
	l->held = l->grown + l->meta;
	sweep_bound(l);
	l->next_ino = layer_first_ino(l->record.next_ino);
}

int layer_find_record(struct layers *ls, const char *clone, struct clone *ret, struct err *err)
{
	int r = clone_get(layers_store(ls), clone, ret, err);

	return r == -ENOENT ? err_set(err, r, "there is no clone '%s'", clone) : r;
}

int layer_create(struct layers *ls, const char *clone, struct layer **ret, struct err *err)
{
	CLEANUP(layer_destroy_p) struct layer *l = layer_new(ls);
	CLEANUP(clone_done) struct clone record = { 0 };
	int r;

	if (!l)
		return err_nomem(err);
	r = layer_find_record(ls, clone, &record, err);
	if (r < 0)
		return r;
	layer_take_record(l, &record);
	r = load_root(l, err);
	if (r < 0)
		return err_wrap(err, r, "clone '%s'", clone);
	*ret = TAKE_PTR(l);
	return 0;
}

int layer_create_warm(struct layers *ls, const struct object_id *root, struct layer **ret,
		      struct err *err)
{
	CLEANUP(layer_destroy_p) struct layer *l = layer_new(ls);
	int r;

	if (!l)
		return err_nomem(err);
	l->record.root = *root;
	r = store_pin(layers_store(ls), OBJECT_TREE, root, err);
	if (r < 0)
		return r;
	l->pinned = true;
	r = load_root(l, err);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(l);
	return r;
}

const char *layer_name(const struct layer *l)
{
	return l->record.name;
}

bool layer_is_private(const struct layer *l)
{
	return l->record.private != 0;
}

bool layer_hides_xattrs(const struct layer *l)
{
	return l->record.no_xattrs != 0;
}

void layer_set_expiry(struct layer *l, int64_t expires)
{
	LOCKED(&l->lock);
	l->record.expires = expires;
	node_mark(l, l->top); /* also if a persist is under way */
}

int layer_growth(struct store *s, const struct object_id *from, const struct object_id *to,
		 struct layer_growth *ret, struct err *err)
{
	CLEANUP(difference_done) struct difference d = { 0 };
	int r = difference_find(s, from, to, &d, err);

	if (r < 0)
		return r;
	*ret = (struct layer_growth){ .data = d.grown, .meta = d.meta };
	return r;
}

void layer_set_base(struct layer *l, const struct layer_base *to)
{
	LOCKED(&l->lock);
	l->record.base = to->base;
	l->record.start = to->start;
	l->grown -= to->more.data;
	l->meta -= to->more.meta;
	node_mark(l, l->top); /* also if a persist is under way */
}

void layer_leave_run(struct layer *l)
{
	LOCKED(&l->lock);
	l->passing = false;
	l->record.run = 0;
	l->record.strict = 1; /* it is no throw-away any more */
	node_mark(l, l->top); /* also if a persist is under way */
}

void layer_hold_names(struct layer *l, uint64_t ms)
{
	const uint64_t until = clock_ms() + ms;

	pthread_mutex_lock(&l->lock);
	l->names_held++;
	if (until > l->names_until)
		l->names_until = until;
	pthread_mutex_unlock(&l->lock);
}

void layer_release_names(struct layer *l)
{
	pthread_mutex_lock(&l->lock);
	l->names_held--;
	pthread_cond_broadcast(&l->calm);
	pthread_mutex_unlock(&l->lock);
}

void layer_set_passing(struct layer *l, bool passing)
{
	l->passing = passing;
}

void layer_set_ceiling(struct layer *l, uint64_t ceiling)
{
	LOCKED(&l->lock);
	l->ceiling = ceiling;
	sweep_bound(l);
}
