/*
 * What the walk of a capture has seen is lent to later walks of the project.  The snapshots that come of that name its
 * promises as well: its heirs.
 */
#include "base/lock.h"
#include "base/vec.h"
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
	return !one->clone && !record->remote && !record->passing &&
	       one->created >= record->created && catalog_id_same(&one->project, &record->project);
}
