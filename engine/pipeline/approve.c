#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "base/vec.h"
#include "engine/pipeline/pipeline-i.h"

#define ROOM       16384
#define GROUP_ROOM ((size_t)1 << 20) /* a group may have thousands of members */

/* A user without a name is known by number. */
char *approve_user_name(uid_t uid)
{
	struct passwd pw, *found = NULL;
	char room[ROOM];

	if (getpwuid_r(uid, &pw, room, sizeof(room), &found) == 0 && found && found->pw_name[0])
		return strdup(found->pw_name);
	return text_format("%u", (unsigned)uid);
}

void decider_names_done(struct decider_names *n)
{
	for (size_t i = 0; i < n->n; i++)
		free(n->list[i].name);
	n->n = 0;
}

static bool look_up_group(const struct decider *d, const char *name)
{
	struct group gr, *found = NULL;
	AUTO_FREE char *room = malloc(GROUP_ROOM);

	if (!room || getgrnam_r(name, &gr, room, GROUP_ROOM, &found) != 0 || !found)
		return false;
	return VEC_HAS(it, d->groups, d->n_groups, *it == gr.gr_gid);
}

static bool is_in_group(const struct decider *d, const char *name)
{
	struct decider_names *n = d->names;

	for (size_t i = 0; n && i < n->n; i++)
		if (strcmp(n->list[i].name, name) == 0)
			return n->list[i].theirs;
	if (!n)
		return look_up_group(d, name);
	if (n->n == DECIDER_NAMES_MAX)
		return false;
	n->list[n->n].name = strdup(name);
	if (!n->list[n->n].name)
		return false;
	n->list[n->n].theirs = look_up_group(d, name);
	return n->list[n->n++].theirs;
}

bool approve_is_named(const struct engine_change *c, const struct decider *d, const char *name)
{
	for (size_t i = 0; i < c->n_approvers; i++)
		if (c->approvers[i][0] == '%' ? is_in_group(d, c->approvers[i] + 1)
					      : strcmp(c->approvers[i], name) == 0)
			return true;
	return false;
}

/* The kernel says which user asks; nothing else counts. */
static int may_decide(struct engine *e, const struct engine_change *c, const struct decider *d,
		      const char *me, struct err *err)
{
	struct stat st;

	if (approve_is_named(c, d, me))
		return 0;
	if (c->n_approvers > 0)
		return err_set(err, -ECANCELED, "'%s' may not decide about change %s: '%s'%s may",
			       me, c->id, c->approvers[0], c->n_approvers > 1 ? " and others" : "");
	if (stat(e->store_path, &st) < 0)
		return err_sys(err, "looking at '%s'", e->store_path);
	if (st.st_uid != d->uid)
		return err_set(err, -ECANCELED,
			       "'%s' may not decide about change %s: the store is "
			       "somebody else's",
			       me, c->id);
	return 0;
}

static int decide(struct shipping *s, const struct decision *what, const struct decider *d,
		  const char *me, struct err *err)
{
	struct engine_change *c = s->change;

	if (what->reject) {
		int r = text_set(&c->why, err, "rejected by %s: %s", me, what->reason);

		if (r < 0)
			return r;
		c->state = ENGINE_CHANGE_REJECTED;
		return shipping_save(s, "change-rejected", err);
	}
	free(c->approved_by);
	free(c->reason);
	c->approved_by = strdup(me);
	c->reason = what->reason ? strdup(what->reason) : NULL;
	c->approved_uid = d->uid;
	if (!c->approved_by || (what->reason && !c->reason))
		return err_nomem(err);
	return shipping_save(s, "change-approved", err);
}

/* Is there anything to decide, and is it what the decider saw? */
static int check_open(const struct engine_change *c, const struct decision *what, struct err *err)
{
	if (c->state == ENGINE_CHANGE_LANDING || c->state == ENGINE_CHANGE_UNDOING)
		return err_set(err, -ECANCELED,
			       "change %s is %s: 'ship --continue' settles that first", c->id,
			       engine_change_state_name(c->state));
	if (engine_change_is_over(c->state) ||
	    (!what->reject && (c->state != ENGINE_CHANGE_WAITING || c->approved_by)))
		return err_set(err, -ECANCELED, "change %s is %s: there is nothing to decide",
			       c->id,
			       c->approved_by ? "approved" : engine_change_state_name(c->state));
	if (what->stage && strcmp(what->stage, c->stage ? c->stage : "") != 0)
		return err_set(err, -ECANCELED, "change %s is at stage '%s' now, not at '%s'",
			       c->id, c->stage ? c->stage : "", what->stage);
	if (what->digest && strcmp(what->digest, c->sha256) != 0)
		return err_set(err, -ECANCELED, "change %s has the digest %s, not '%.64s'", c->id,
			       c->sha256, what->digest);
	return 0;
}

int approve_decide(struct engine *e, const char *id, const struct decision *what,
		   const struct decider *d, struct engine_change *ret, struct err *err)
{
	CLEANUP(docket_lock_done) struct docket_lock lock = DOCKET_LOCK_INIT;
	AUTO_FREE char *me = approve_user_name(d->uid);
	struct shipping s = { .engine = e, .change = ret };
	int r = me ? docket_take(e, &change_kind, id, &lock, err) : err_nomem(err);

	if (r < 0)
		return r;
	r = change_load(e, id, &lock, ret, err);
	if (r < 0)
		return r;
	r = check_open(ret, what, err);
	if (r < 0)
		return r;
	r = may_decide(e, ret, d, me, err);
	if (r < 0)
		return r;
	s.lock = lock;
	return decide(&s, what, d, me, err);
}

int engine_approve(struct engine *e, const char *id, const struct engine_decision *d,
		   struct engine_change *ret, struct err *err)
{
	CLEANUP(engine_change_done) struct engine_change found = { 0 };
	const struct decision what = {
		.reject = d->reject, .reason = d->reason, .stage = d->stage, .digest = d->digest
	};
	gid_t groups[DECIDER_GROUPS_MAX];
	struct decider me = { .uid = getuid(), .groups = groups };
	int r = engine_change_find(e, id, &found, err), n;

	if (r < 0)
		return r;
	groups[0] = getgid();
	n = getgroups(DECIDER_GROUPS_MAX - 1, groups + 1);
	me.n_groups = n < 0 ? 1 : (size_t)n + 1;
	return approve_decide(e, found.id, &what, &me, ret, err);
}
