/*
 * What the walk of a capture has seen is lent to later walks of the project.  The snapshots that come of that name its
 * promises as well: its heirs.  Nothing records them, so after a restart the project's snapshots of that time are
 * taken for heirs, until they were found to name no promise of it.
 */
#include <errno.h>

#include "base/lock.h"
#include "base/log.h"
#include "base/vec.h"
#include "cowfs/store/root.h"
#include "cowfs/store/tree-walk.h"
#include "engine/host/host-i.h"
#include "engine/host/promising-i.h"

/* --- lending ------------------------------------------------------------------------------ */

/* lock held; may others rely on what its walk has seen? */
bool promising_lends(const struct promising *c)
{
	return promising_is_open(c) && !c->closing && !c->record.remote && !c->record.passing &&
	       c->signatures && c->held;
}

/* lock held */
const struct promising *promises_find_closing(const struct promises *p,
					      const struct catalog_id *project)
{
	for (const struct promising *c = p->first; c; c = c->after)
		if (promising_is_open(c) && c->closing && !c->recovered && !c->record.passing &&
		    catalog_id_same(&c->record.project, project))
			return c;
	return NULL;
}

bool promises_lend(struct promises *p, const struct catalog_id *project,
		   const struct signatures **ret)
{
	LOCKED(&p->lock);

	*ret = NULL;
	for (struct promising *c = p->first; c; c = c->after) {
		if (!promising_lends(c) || !catalog_id_same(&c->record.project, project))
			continue;
		c->lent++;
		c->in_use++;
		*ret = c->signatures;
		return true;
	}
	return !promises_find_closing(p, project);
}

/* Without room for it, its promises are kept all the same; only 'status' cannot say how far it is. */
void promises_return(struct promises *p, const struct signatures *lent,
		     const struct catalog_id *heir)
{
	LOCKED(&p->lock);

	for (struct promising *c = p->first; c; c = c->after) {
		if (c->lent == 0 || c->signatures != lent)
			continue;
		if (heir && VEC_ROOM(c->heirs, c->n_heirs, c->cap_heirs))
			c->heirs[c->n_heirs++] = *heir;
		c->lent--;
		c->in_use--;
		break;
	}
	pthread_cond_broadcast(&p->changed);
}

/* --- heirs -------------------------------------------------------------------------------- */

bool promising_may_inherit(const struct lazy *record, const struct snapshot *one)
{
	if (one->clone || record->remote || record->passing || one->created < record->created)
		return false;
	if (record->ended && (uint64_t)one->created > record->ended)
		return false;
	return catalog_id_same(&one->project, &record->project);
}

static int note_heir(const struct snapshot *one, void *ctx, struct err *err)
{
	struct promising *c = ctx;

	if (!promising_may_inherit(&c->record, one) ||
	    catalog_id_same(&one->id, &c->record.snapshot))
		return 0;
	if (!VEC_ROOM(c->heirs, c->n_heirs, c->cap_heirs))
		return err_nomem(err);
	c->heirs[c->n_heirs++] = one->id;
	return 0;
}

void promising_find_heirs(struct promising *c)
{
	struct err err = { 0 };

	if (snapshot_each(c->all->host->store, note_heir, c, &err) < 0)
		log_warn("cannot find the snapshots that share a lazy capture: %s, continuing",
			 err.msg);
}

#define FOUND      (-ECANCELED) /* ends a walk */
#define LOOK_EVERY 64           /* names, between two looks whether the rest is in vain */

struct sifting {
	struct promising *c;
	unsigned names;
};

static bool is_in_vain(struct promising *c)
{
	promises_linger("SNAPCOW_SIFT_PAUSE");
	LOCKED(&c->all->lock);
	return promising_is_over(c);
}

static int look_at(const struct tree_entry *e, const char *path, unsigned depth, void *ctx,
		   struct err *err)
{
	const struct object_ref key = { .id = e->id, .kind = OBJECT_CHUNK };
	struct sifting *s = ctx;

	if (++s->names % LOOK_EVERY == 0 && is_in_vain(s->c))
		return FOUND;
	return e->form == TREE_LAZY && map_get(&s->c->by_id, &key) ? FOUND : 0;
}

/* Of one that cannot be read, or is in vain, it may. */
static bool names_promise(struct promising *c, const struct catalog_id *snapshot)
{
	struct sifting sifting = { .c = c };
	CLEANUP(snapshot_done) struct snapshot s = { 0 };
	struct store *store = c->all->host->store;
	struct err ignored = { 0 };
	struct root root;
	int r = snapshot_get(store, snapshot, &s, &ignored);

	if (r == -ENOENT)
		return false;
	r = r < 0 ? r : root_get(store, &s.root, &root, &ignored);
	r = r < 0 ? r : tree_walk(store, &root.top.id, "", look_at, &sifting, &ignored);
	if (r >= 0 && !object_id_is_zero(&root.links))
		r = tree_walk(store, &root.links, "", look_at, &sifting, &ignored);
	return r < 0;
}

/* By one thread at a time: nobody adds heirs to a capture that another cowfsd began. */
void promising_sift_heirs(struct promising *c)
{
	for (size_t i = c->n_heirs; i-- > 0;) {
		if (is_in_vain(c))
			return;
		if (names_promise(c, &c->heirs[i]))
			continue;
		pthread_mutex_lock(&c->all->lock);
		c->heirs[i] = c->heirs[--c->n_heirs];
		pthread_mutex_unlock(&c->all->lock);
	}
	c->sifted = true;
}

/* --- of captures that have ended -------------------------------------------------------------- */

/* One that has none left to sift stays for what it lost; the caller may use it until give_back(). */
static struct promising *take_unsifted(struct promises *p)
{
	LOCKED(&p->lock);

	for (struct promising *c = p->first; c && !p->ending; c = c->after)
		if (c->ended && !c->sifted) {
			c->in_use++;
			return c;
		}
	return NULL;
}

static void give_back(struct promising *c)
{
	LOCKED(&c->all->lock);

	c->in_use--;
	pthread_cond_broadcast(&c->all->changed);
}

static void *sift_ended(void *arg)
{
	struct promises *p = arg;
	struct promising *c;

	promises_linger("SNAPCOW_ENDED_PAUSE");
	while ((c = take_unsifted(p))) {
		promising_sift_heirs(c);
		give_back(c);
	}
	return NULL;
}

/* Without a thread, all that may be heirs count. */
void promises_begin_sifting(struct promises *p)
{
	p->sifting = spread_start(&p->sifter, 0, sift_ended, p) == 0;
}

void promises_end_sifting(struct promises *p)
{
	if (p->sifting)
		spread_join(&p->sifter);
	p->sifting = false;
}
