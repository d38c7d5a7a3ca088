/*
 * show.h - the content of a state (a snapshot, a clone now, the project now): directories and
 * files.
 */
#pragma once

#include <stddef.h>

#include "engine/api/engine.h"
#include "engine/api/history.h"

/* What a name in a snapshot stands for.  Strings are borrowed for the call that shows it. */
struct engine_entry {
	const char *name; /* the last part of its path; "" for the top */
	uint32_t mode;    /* type and permission bits, as st_mode */
	uint32_t uid, gid;
	uint64_t size;
	int64_t mtime_s; /* since 1970 */
	uint32_t mtime_ns;
	const char *target; /* where a symlink points; else NULL */
	uint64_t files;     /* in a directory and below it, those that are no directories */
};

/*
 * Where the answer goes, in this order: the snapshot, then the entry at the path,
 * then each entry of the directory in the order of names, or the bytes of the
 * regular file.  A negative answer ends it and is returned.
 */
struct engine_show_sink {
	/* Of what is now its id is "", and it was created now. */
	int (*snapshot)(const struct engine_snapshot *s, const char *project, void *ctx,
			struct err *err);
	int (*found)(const struct engine_entry *e, void *ctx, struct err *err);
	int (*entry)(const struct engine_entry *e, void *ctx, struct err *err);
	int (*bytes)(const void *data, size_t len, void *ctx, struct err *err);
	void *ctx;
};

/*
 * `path` counts from the top of the project ("" is the top), or from the engine's
 * directory if it begins with "./" or "../"; NULL: the snapshot alone.  Symlinks on
 * the way are not followed.  -ENOENT with a sentence if there is no such state or
 * path, -EBADMSG naming the path if the store is damaged there.
 */
NODISCARD int engine_show(struct engine *e, const char *state, const char *path,
			  const struct engine_watch *watch, const struct engine_show_sink *sink,
			  struct err *err);
