/*
 * Files that would be left unread if cowfsd ended now. Nobody would hold them then, so they could
 * be lost.
 */
#include <errno.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/lock.h"
#include "base/size.h"
#include "engine/host/host-i.h"
#include "engine/host/promising-i.h"

#define NAMES_MAX 3 /* clones that are named */

struct leaving {
	struct promises *p;
	uint64_t bytes;
	char dir[200];       /* of the project, or of one of them */
	struct buf names;    /* of clones */
	size_t clones, more; /* that wait for it; and beyond those named */
};

static void leaving_done(struct leaving *l)
{
	buf_done(&l->names);
}

/* lock held; what a remote has is fetched later, and of what is not mounted nothing is held anyway */
static bool may_be_lost(const struct promising *c)
{
	return promising_is_open(c) && !c->record.remote && !c->absent;
}

static bool look(struct leaving *l)
{
	bool any = false;
	LOCKED(&l->p->lock);

	for (const struct promising *c = l->p->first; c; c = c->after) {
		const struct engine_capturing now = promising_news(c);

		if (!may_be_lost(c))
			continue;
		any = true;
		l->bytes += engine_capturing_left(&now);
		snprintf(l->dir, sizeof(l->dir), "%s", c->dir ? c->dir : "a project");
	}
	return any;
}

static bool waits(const struct leaving *l, const struct clone *clone)
{
	LOCKED(&l->p->lock);

	for (const struct promising *c = l->p->first; c; c = c->after)
		if (may_be_lost(c) &&
		    (promising_is_of(c, &clone->base) || promising_is_of(c, &clone->start)))
			return true;
	return false;
}

static int note_clone(const struct clone *clone, void *ctx, struct err *err)
{
	struct leaving *l = ctx;

	if (!waits(l, clone))
		return 0;
	if (l->clones++ >= NAMES_MAX) {
		l->more++;
		return 0;
	}
	if (buf_append_str(&l->names, l->clones > 1 ? "', '" : "") < 0 ||
	    buf_append_str(&l->names, clone->name) < 0)
		return err_nomem(err);
	return 0;
}

int promises_may_end(struct promises *p, struct err *err)
{
	CLEANUP(leaving_done) struct leaving l = { .p = p };
	char size[SIZE_TEXT_MAX], more[32] = "";
	int r = 0;

	if (!look(&l))
		return 0;
	r = clone_each(p->host->store, note_clone, &l, err);
	if (r < 0)
		return r;
	if (!buf_str(&l.names))
		return err_nomem(err);
	if (l.more > 0)
		snprintf(more, sizeof(more), " and %zu more", l.more);
	return err_set(err, -EBUSY,
		       "%s of '%s' are still to be read for %s%s%s%s: what changes there while "
		       "cowfsd is stopped would be lost ('status' shows how far it is)",
		       size_format(l.bytes, size), l.dir,
		       l.clones == 0  ? "a snapshot"
		       : l.clones > 1 ? "the clones '"
				      : "the clone '",
		       (const char *)l.names.data, l.clones > 0 ? "'" : "", more);
}
