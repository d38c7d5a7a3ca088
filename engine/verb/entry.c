#include "engine/verb/entry-i.h"

#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"

int entry_report(const struct tree_entry *e, const char *name, size_t name_len,
		 int (*fn)(const struct engine_entry *, void *, struct err *), void *ctx,
		 struct err *err)
{
	AUTO_FREE char *own = strndup(name, name_len);
	AUTO_FREE char *target = S_ISLNK(e->mode) ? strndup(e->target, e->target_len) : NULL;
	const struct engine_entry entry = {
		.name = own,
		.mode = e->mode,
		.uid = e->uid,
		.gid = e->gid,
		.size = e->form == TREE_DIR ? e->below.bytes : e->size,
		.mtime_s = e->mtime_s,
		.mtime_ns = e->mtime_ns,
		.target = target,
		.files = e->below.files,
	};

	if (!own || (S_ISLNK(e->mode) && !target))
		return err_nomem(err);
	return fn(&entry, ctx, err);
}
