/*
 * rollback.c - a layer shows another root while it is in use.
 *
 * Changes wait from the freeze of the present state until the other root is there, so none falls
 * between the two. Once all is persisted, memory equals the stored state and only needs the
 * differences of the other root.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "cowfs/core/difference-i.h"
#include "cowfs/core/halves-i.h"
#include "cowfs/core/listing-i.h"
#include "cowfs/core/persist-i.h"
#include "cowfs/core/replaced-i.h"
#include "cowfs/store/pin.h"

void layer_changes_done(struct layer_changes *c)
{
	VEC_FREE(one, c->names, c->n_names, free(one->name));
	VEC_FREE(it, c->replaced, c->n_replaced, free(it->path));
	free(c->dirs);
	*c = (struct layer_changes){ 0 };
}

struct switching {
	struct layer *l;
	struct difference *difference;
	struct layer_changes changes;
	size_t cap_names;
	struct node **nodes;  /* by number of the different directory; NULL: not in memory */
	struct node *dropped; /* without a name now; may be freed at the end */
	struct node *emptied; /* directories among them whose names are still to be dropped, */
	struct replaced_dirs paths; /* and the paths that those had */
};

/* --- preparing: all memory there is need for, so that nothing stops half way ------------- */

static const struct node *linked_node(const struct switching *s, size_t i)
{
	const struct different_dir *links = &s->difference->dirs[DIFFERENCE_LINKS];
	const struct entry *e = map_get(&s->l->links->dir.entries, links->names[i].name);

	return e ? e->node : NULL;
}

static size_t count_names(const struct switching *s)
{
	const struct difference *d = s->difference;
	const struct node *n;
	size_t sum = 0;

	for (size_t i = 0; i < d->n; i++)
		sum += d->dirs[i].n;
	for (size_t i = 0; i < d->dirs[DIFFERENCE_LINKS].n; i++)
		if ((n = linked_node(s, i)))
			for (const struct entry *e = n->names; e; e = e->next)
				sum++;
	return sum;
}

/* Takes the string. */
static void add_changed_name(struct switching *s, const struct node *dir, char *name)
{
	assert(s->changes.n_names < s->cap_names);
	s->changes.names[s->changes.n_names++] =
	    (struct layer_changed_name){ .dir = dir->id, .name = name };
}

/* A file with several names that is another now: each of its names in memory leads to a new node. */
static int add_names_of_links(struct switching *s)
{
	const struct node *n;

	for (size_t i = 0; i < s->difference->dirs[DIFFERENCE_LINKS].n; i++)
		if ((n = linked_node(s, i)))
			for (const struct entry *e = n->names; e; e = e->next) {
				char *name = strdup(e->name);

				if (!name)
					return -ENOMEM;
				add_changed_name(s, e->dir, name);
			}
	return 0;
}

static struct node *find_dir(const struct switching *s, size_t which)
{
	const struct different_dir *d = &s->difference->dirs[which];
	const struct entry *e;

	if (which == DIFFERENCE_TOP)
		return s->l->top;
	if (which == DIFFERENCE_LINKS)
		return s->l->links;
	e = s->nodes[d->in] ? map_get(&s->nodes[d->in]->dir.entries, d->name) : NULL;
	return e ? e->node : NULL;
}

/* What loses its last reference meanwhile is freed, so they are looked for when they are used. */
static void find_dirs(struct switching *s)
{
	for (size_t i = 0; i < s->difference->n; i++) {
		s->nodes[i] = find_dir(s, i);
		if (s->nodes[i])
			s->nodes[i]->pins++;
	}
}

static void release_dirs(struct switching *s)
{
	for (size_t i = s->difference->n; i-- > 0;)
		if (s->nodes[i]) {
			s->nodes[i]->pins--;
			node_release(s->l, s->nodes[i]);
		}
}

static int prepare(struct switching *s)
{
	const size_t n = s->difference->n;

	s->cap_names = count_names(s);
	s->changes.names = calloc(s->cap_names + 1, sizeof(*s->changes.names));
	s->changes.dirs = calloc(n + 1, sizeof(*s->changes.dirs));
	s->nodes = calloc(n + 1, sizeof(struct node *));
	if (!s->changes.names || !s->changes.dirs || !s->nodes)
		return -ENOMEM;
	return add_names_of_links(s);
}

static void switching_done(struct switching *s)
{
	free(s->nodes);
	replaced_dirs_done(&s->paths);
	layer_changes_done(&s->changes);
}

/* --- dropping --------------------------------------------------------------------------- */

/* Freed once all is switched, unless somebody refers to it. */
static void set_aside(struct switching *s, struct node *n)
{
	if (n->pins > 0)
		return;
	n->pins = 1;
	n->next_dropped = s->dropped;
	s->dropped = n;
}

static void drop(struct switching *s, struct node *n)
{
	n->nlink = 0;
	node_orphan(s->l, n);
	if (S_ISREG(n->mode))
		s->l->grown += (int64_t)n->file.data; /* not with the root, but while it is open */
	charge_node(s->l, n, 1);                      /* the same */
	set_aside(s, n);
	if (node_is_dir(n)) {
		n->next_emptied = s->emptied;
		s->emptied = n;
	}
}

/*
 * One name, in a directory of that path (or NULL).  A file with several is dropped through the links
 * tree, which differs then too.
 */
static void drop_entry(struct switching *s, struct entry *e, const char *in)
{
	struct node *n = e->node;

	if (n && node_is_dir(n))
		replaced_push(&s->paths, n, in, e->name);
	entry_free(s->l, e);
	if (n && n->linked)
		set_aside(s, n);
	else if (n)
		drop(s, n);
}

static void drop_below(struct switching *s)
{
	struct entry *e;
	struct node *n;

	while ((n = s->emptied)) {
		AUTO_FREE char *path = replaced_pop(&s->paths, n);

		s->emptied = n->next_emptied;
		for (size_t pos = 0; (e = map_next(&n->dir.entries, &pos));) {
			if (e->node)
				replaced_add(&s->changes, &(struct replaced_name){
							      .dir = n,
							      .dir_path = path,
							      .name = e->name,
							      .before = e->node,
							      .was = e->node->mode,
							  });
			drop_entry(s, e, path);
		}
	}
}

static void free_dropped(struct switching *s)
{
	struct node *n;

	while ((n = s->dropped)) {
		s->dropped = n->next_dropped;
		n->pins--;
		node_release(s->l, n);
	}
}

/* --- switching -------------------------------------------------------------------------- */

static void become(struct node *dir, const struct tree_entry *to)
{
	dir->mode = to->mode;
	dir->uid = to->uid;
	dir->gid = to->gid;
	dir->ino = to->ino;
	dir->nlink = to->nlink ? to->nlink : 1;
	dir->mtime = (struct timespec){ .tv_sec = to->mtime_s, .tv_nsec = to->mtime_ns };
	dir->ctime = (struct timespec){ .tv_sec = to->ctime_s, .tv_nsec = to->ctime_ns };
	dir->xattrs = to->xattrs;
}

static void set_base(struct node *dir, const struct tree_entry *to)
{
	dir->dir.base = to->id;
	dir->dir.below = to->below;
	dir->dir.version++;
	listing_free(dir->dir.listing);
	dir->dir.listing = NULL;
}

static void switch_dir(struct switching *s, size_t which)
{
	struct different_dir *d = &s->difference->dirs[which];
	struct node *dir = s->nodes[which];
	AUTO_FREE char *path = replaced_dir(s->l, dir);
	struct entry *e;

	s->changes.dirs[s->changes.n_dirs++] = dir->id;
	become(dir, &d->to);
	for (size_t i = 0; i < d->n; i++) {
		struct different_name *name = &d->names[i];

		e = map_get(&dir->dir.entries, name->name);
		replaced_add(&s->changes, &(struct replaced_name){
					      .dir = dir,
					      .dir_path = path,
					      .name = name->name,
					      .before = e ? e->node : NULL,
					      .was = name->was,
					      .is = name->is,
					  });
		if (e)
			drop_entry(s, e, path);
		add_changed_name(s, dir, TAKE_PTR(name->name));
	}
	set_base(dir, &d->to);
}

/* A name that stays, of a file with several that is another now. */
static void drop_link(struct switching *s, struct entry *e)
{
	AUTO_FREE char *path = replaced_dir(s->l, e->dir);

	replaced_add(&s->changes, &(struct replaced_name){
				      .dir = e->dir,
				      .dir_path = path,
				      .name = e->name,
				      .before = e->node,
				      .was = e->node->mode,
				      .is = e->node->mode,
				  });
	entry_free(s->l, e);
}

static void switch_links(struct switching *s)
{
	const struct different_dir *d = &s->difference->dirs[DIFFERENCE_LINKS];
	struct entry *e;
	struct node *n;

	for (size_t i = 0; i < d->n; i++) {
		e = map_get(&s->l->links->dir.entries, d->names[i].name);
		if (!e)
			continue;
		n = e->node;
		while (n->names)
			drop_link(s, n->names);
		entry_free(s->l, e);
		drop(s, n);
	}
	set_base(s->l->links, &d->to);
}

static void switch_all(struct switching *s)
{
	const struct difference *d = s->difference;
	struct layer *l = s->l;

	find_dirs(s);
	for (size_t i = 0; i < d->n; i++)
		if (s->nodes[i] && i != DIFFERENCE_LINKS)
			switch_dir(s, i);
	switch_links(s);
	drop_below(s);
	free_dropped(s);
	release_dirs(s);
	l->grown += d->grown;
	l->meta += d->meta;
	l->inodes += d->inodes;
	l->next_ino = layer_first_ino(l->next_ino);
	l->state.files = d->to.top.below.files;
	l->state.bytes = d->to.top.below.bytes + d->to.in_links.bytes;
}

/* --- the whole -------------------------------------------------------------------------- */

struct naming {
	const struct layer_rebase *how; /* its bases NULL: the clone keeps the one it has */
	struct object_id root;          /* to be shown */
	struct clone record;            /* as it is to be */
	struct layer_state now;
	int64_t rebased,
	    rebased_meta; /* bytes of data, and of all else, that the new base has more */
};

/* What was there gets its names, and the clone its root: both or neither. */
static int commit_names(struct layer *l, struct naming *nm, struct err *err)
{
	CLEANUP(batch_end_p) struct batch *b = NULL;
	int r = batch_begin(layers_store(l->all), &b, err);

	if (r < 0)
		return r;
	if (nm->how->also)
		r = nm->how->also(b, &nm->now, nm->how->ctx, err);
	if (r < 0)
		return r;
	r = clone_put(b, &nm->record, REF_REPLACE, err);
	return r < 0 ? r : batch_commit(b, BATCH_DURABLE, err);
}

/* What to show, and where that differs from what is there; without the lock. */
static int find_target(struct layer *l, struct naming *nm, struct difference *ret, struct err *err)
{
	CLEANUP(difference_done) struct difference bases = { 0 };
	const struct layer_rebase *how = nm->how;
	struct store *s = layers_store(l->all);
	int r = 0;

	if (how->choose)
		r = how->choose(&nm->now, &nm->root, how->ctx, err);
	else
		nm->root = *how->target;
	if (r < 0)
		return r;
	if (how->to)
		r = difference_find(s, &how->from->root, &how->to->root, &bases, err);
	if (r < 0)
		return r;
	nm->rebased = bases.grown;
	nm->rebased_meta = bases.meta;
	return difference_find(s, &nm->now.id, &nm->root, ret, err);
}

/*
 * With the lock, which it lets go of meanwhile; all is persisted and changes wait.  All memory is
 * taken before the commit; the list of changes cannot grow after that, as nothing is loaded.
 */
static int switch_root(struct layer *l, struct naming *nm, struct layer_changes *ret,
		       struct err *err)
{
	CLEANUP(difference_done) struct difference d = { 0 };
	CLEANUP(switching_done) struct switching s = { .l = l, .difference = &d };
	int r;

	nm->now = l->state;
	pthread_mutex_unlock(&l->lock);
	r = find_target(l, nm, &d, err);
	pthread_mutex_lock(&l->lock);
	nm->record = l->record;
	nm->record.root = nm->root;
	nm->record.next_ino = l->next_ino;
	if (nm->how->to) {
		nm->record.base = nm->how->to->id;
		nm->record.start = (struct catalog_id){ 0 };
	}
	if (r < 0)
		return r;
	if (prepare(&s) < 0)
		return err_nomem(err);
	d.grown -= nm->rebased;
	nm->record.grown = l->grown - l->loose + d.grown;
	d.meta -= nm->rebased_meta;
	nm->record.meta = l->meta - l->loose_meta + d.meta;

	l->sealed = true;
	pthread_mutex_unlock(&l->lock);
	r = commit_names(l, nm, err);
	pthread_mutex_lock(&l->lock);
	l->sealed = false;
	if (r < 0)
		return r;
	l->record.root = nm->root;
	l->record.base = nm->record.base;
	l->record.start = nm->record.start;
	l->state.id = nm->root;
	l->switches++;
	switch_all(&s);
	*ret = TAKE_STRUCT(s.changes);
	return 0;
}

/* What was there is pinned until each file that somebody has open is. */
static int switch_pinned(struct layer *l, struct naming *nm, struct layer_changes *ret,
			 struct err *err)
{
	const struct object_id before = l->state.id;
	int r = store_pin(layers_store(l->all), OBJECT_TREE, &before, err);

	if (r < 0)
		return r;
	r = switch_root(l, nm, ret, err);
	store_unpin(layers_store(l->all), OBJECT_TREE, &before);
	return r;
}

static int persist_and_switch(struct layer *l, struct naming *nm, struct layer_changes *ret,
			      struct err *err)
{
	struct persist p = { .l = l, .durability = BATCH_SAFE };
	int r = l->marked ? persist_run(&p, err) : 0;

	halves_release(l);
	return r < 0 ? r : switch_pinned(l, nm, ret, err);
}

int layer_rebase(struct layer *l, const struct layer_rebase *how, struct layer_changes *ret,
		 struct err *err)
{
	struct naming nm = { .how = how };
	int r;

	LOCKED(&l->lock);
	layer_take_turn(l);
	r = partly_keep(l, err);
	if (r >= 0) {
		halves_hold(l);
		l->switching = true;
		r = persist_and_switch(l, &nm, ret, err);
		l->switching = false;
	}
	layer_end_turn(l);
	return r < 0 ? err_wrap(err, r, "clone '%s'", layer_name(l)) : 0;
}
