#include "cli/moved.h"

#include "base/cleanup.h"
#include "base/log.h"
#include "engine/api/projects.h"

bool moved_adopt(struct invocation *inv)
{
	CLEANUP(engine_moved_done) struct engine_moved m = { 0 };
	AUTO_FREE char *path = NULL;
	struct err err = { 0 };

	if (!inv->engine || engine_project_moved(inv->engine, &m, NULL) <= 0)
		return false;
	if (!m.certain) {
		cmd_hint_words(inv, "projects mv", (const char *[]){ m.from, m.to, NULL });
		return false;
	}
	if (engine_project_move(inv->engine, m.id, m.to, false, &path, &err) < 0) {
		log_warn("%s", err.msg);
		return false;
	}
	log_warn("project '%s' moved to '%s': its snapshots and clones came along", m.from, path);
	return true;
}
