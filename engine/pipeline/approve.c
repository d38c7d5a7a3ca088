#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/pipeline/pipeline-i.h"

#define ROOM       16384
#define GROUPS_MAX 1024

/* A user without a name is known by number. */
static char *user_name(uid_t uid)
{
	struct passwd pw, *found = NULL;
	char room[ROOM], *text = NULL;

	if (getpwuid_r(uid, &pw, room, sizeof(room), &found) == 0 && found && found->pw_name[0])
		return strdup(found->pw_name);
	return asprintf(&text, "%u", (unsigned)uid) < 0 ? NULL : text;
}

static bool is_in_group(const char *name)
{
	struct group gr, *found = NULL;
	gid_t groups[GROUPS_MAX];
	char room[ROOM];
	int n;

	if (getgrnam_r(name, &gr, room, sizeof(room), &found) != 0 || !found)
		return false;
	n = getgroups(GROUPS_MAX, groups);
	for (int i = 0; i < n; i++)
		if (groups[i] == gr.gr_gid)
			return true;
	return getgid() == gr.gr_gid;
}

/* The kernel says who runs this process; nothing else counts. */
static int may_decide(struct engine *e, const struct engine_change *c, const char *me,
		      struct err *err)
{
	struct stat st;

	for (size_t i = 0; i < c->n_approvers; i++)
		if (c->approvers[i][0] == '%' ? is_in_group(c->approvers[i] + 1)
					      : strcmp(c->approvers[i], me) == 0)
			return 0;
	if (c->n_approvers > 0)
		return err_set(err, -ECANCELED, "'%s' may not decide about change %s: '%s'%s may",
			       me, c->id, c->approvers[0], c->n_approvers > 1 ? " and others" : "");
	if (stat(e->store_path, &st) < 0)
		return err_sys(err, "looking at '%s'", e->store_path);
	if (st.st_uid != getuid())
		return err_set(err, -ECANCELED,
			       "'%s' may not decide about change %s: the store is "
			       "somebody else's",
			       me, c->id);
	return 0;
}

static int decide(struct shipping *s, bool reject, const char *reason, char *me, struct err *err)
{
	struct engine_change *c = s->change;

	if (reject) {
		int r = text_set(&c->why, err, "rejected by %s: %s", me, reason);

		if (r < 0)
			return r;
		c->state = ENGINE_CHANGE_REJECTED;
		return shipping_save(s, "change-rejected", err);
	}
	free(c->approved_by);
	free(c->reason);
	c->approved_by = strdup(me);
	c->reason = reason ? strdup(reason) : NULL;
	c->approved_uid = getuid();
	if (!c->approved_by || (reason && !c->reason))
		return err_nomem(err);
	return shipping_save(s, "change-approved", err);
}

int engine_approve(struct engine *e, const char *id, bool reject, const char *reason,
		   struct engine_change *ret, struct err *err)
{
	CLEANUP(engine_change_done) struct engine_change found = { 0 };
	CLEANUP(docket_lock_done) struct docket_lock lock = DOCKET_LOCK_INIT;
	AUTO_FREE char *me = user_name(getuid());
	struct shipping s = { .engine = e, .change = ret };
	int r = me ? engine_change_find(e, id, &found, err) : err_nomem(err);

	if (r >= 0)
		r = docket_take(e, &change_kind, found.id, &lock, err);
	if (r >= 0)
		r = change_load(e, found.id, &lock, ret, err);
	if (r < 0)
		return r;
	if (ret->state == ENGINE_CHANGE_LANDING || ret->state == ENGINE_CHANGE_UNDOING)
		return err_set(err, -ECANCELED,
			       "change %s is %s: 'ship --continue' settles that first", ret->id,
			       engine_change_state_name(ret->state));
	if (engine_change_is_over(ret->state) ||
	    (!reject && (ret->state != ENGINE_CHANGE_WAITING || ret->approved_by)))
		return err_set(
		    err, -ECANCELED, "change %s is %s: there is nothing to decide", ret->id,
		    ret->approved_by ? "approved" : engine_change_state_name(ret->state));
	r = may_decide(e, ret, me, err);
	if (r < 0)
		return r;
	s.lock = lock;
	r = decide(&s, reject, reason, me, err);
	return r;
}
