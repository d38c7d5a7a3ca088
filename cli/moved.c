#include "cli/moved.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "engine/api/projects.h"

static bool adopt(struct invocation *inv, struct engine_moved *m)
{
	AUTO_FREE char *path = NULL;
	struct err err = { 0 };

	if (!inv->engine || engine_project_moved(inv->engine, m, NULL) <= 0)
		return false;
	if (!m->certain) {
		cmd_hint_words(inv, "projects mv", (const char *[]){ m->from, m->to, NULL });
		return false;
	}
	if (engine_project_move(inv->engine, m->id, m->to, false, &path, &err) < 0) {
		log_warn("%s", err.msg);
		return false;
	}
	return true;
}

bool moved_adopt(struct invocation *inv)
{
	CLEANUP(engine_moved_done) struct engine_moved m = { 0 };

	if (!adopt(inv, &m))
		return false;
	log_warn("project '%s' moved to '%s': its snapshots and clones came along", m.from, m.to);
	return true;
}

int moved_tell(struct invocation *inv, int r, struct err *err)
{
	CLEANUP(engine_moved_done) struct engine_moved m = { 0 };

	if (!adopt(inv, &m))
		return r;
	while (inv->n_hints > 0)
		free(inv->hints[--inv->n_hints]);
	cmd_hint_again(inv, &(struct hint_again){ 0 });
	return err_set(err, -ECANCELED,
		       "project '%s' moved to '%s': its snapshots and clones came along; if that "
		       "is the one you mean, give the command again",
		       m.from, m.to);
}
