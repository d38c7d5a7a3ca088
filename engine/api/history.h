/*
 * history.h - the snapshots of a project: taking one, and listing them.
 */
#pragma once

#include "engine/api/engine.h"
#include "engine/api/meta.h"

struct engine_snapshot {
	char id[ENGINE_ID_SIZE];
	char parent[ENGINE_ID_SIZE]; /* the one before it of the same origin, or "" */
	char project[ENGINE_ID_SIZE];
	char *clone;   /* owned; the clone it was taken of, or NULL: of the project */
	char *part;    /* owned; the directory of the project that it has alone, or NULL: all */
	char *message; /* owned; may be empty */
	char *meta;    /* owned; labels (meta.h), or NULL: none */
	char **tags;   /* owned, and each of them */
	size_t n_tags;
	int64_t created; /* nanoseconds since 1970 */
	uint64_t files, bytes;
	bool automatic; /* nobody asked for it: taken before a rollback, a run, for a clone, ... */
};

void engine_snapshot_done(struct engine_snapshot *s);

/* --- taking ----------------------------------------------------------------------------- */

struct engine_take_options {
	const char *dir;   /* the project, named; NULL: the one that holds the engine's directory */
	const char *clone; /* take it of that instead; NULL: of the project */
	const char *message;  /* NULL: none */
	const char *tag;      /* NULL: none */
	const char *meta;     /* labels (meta.h); NULL: none */
	bool skip_unreadable; /* of a project: leave out what cannot be read, and tell it */
	bool lazy;            /* files may be read later (docs/design/lazy.md) */
	bool unasked;         /* the same, but only if there is much to be read; in cowfsd alone */
	/* Nobody asked for it.  The newest serves if it shows the same, in the same session and turn. */
	bool automatic;
	bool
	    passing; /* with `lazy`: when the last clone of it goes, nobody needs what is not read yet */
	/* Of `/`: mounts below it that belong to it, each with all below; others are left out. */
	struct engine_list include;
	const char *part; /* of a project: this directory alone; NULL: all of it */
	bool git;         /* `dir` is git's own (gitdir-i.h); in cowfsd alone, as is what follows */
	const char *owner; /* with `part`: the clone that the snapshot belongs to; NULL: none */
	struct engine_watch watch;
};

/* What was left out of a snapshot since it could not be read. */
struct engine_skipped {
	char *path; /* owned; from the top of the project */
	char *why;  /* owned */
};

/* A file `.git` in a project, of a worktree or a submodule, that leads out of it. */
struct engine_stray {
	char *path; /* owned; from the top of the project */
	char *to;   /* owned; where git works with it */
};

void engine_strays_free(struct engine_stray *list, size_t n);

/* Files of a snapshot that were not read when it was taken (docs/design/lazy.md). */
struct engine_capturing {
	bool open;                 /* some are still to be read */
	uint64_t files, bytes;     /* all; 0: there were none, or nothing is left to tell */
	uint64_t done, done_bytes; /* read, or lost */
	uint64_t lost;             /* changed in the project before they were read */
	bool remote;               /* a remote has them */
};

uint64_t engine_capturing_left(const struct engine_capturing *c);   /* bytes to be read */
unsigned engine_captured_percent(const struct engine_capturing *c); /* 100 only at the end */

struct engine_taken {
	struct engine_snapshot snapshot;
	struct engine_capturing capturing;
	char *project;   /* owned; its path */
	bool registered; /* the project is new to the store */
	uint64_t dirs;   /* of a project */
	/*
	 * Against the parent.  Counts names of what is no directory; a directory counts
	 * if its own attributes changed, or if it came or went with no files in it.
	 */
	uint64_t added, modified, deleted;
	bool compared;                  /* those are known: there is a parent, and it can be read */
	struct engine_skipped *skipped; /* owned; in the order of paths */
	size_t n_skipped;
	uint64_t skipped_more; /* beyond those listed */
	char **left_out;       /* owned; directories that are no part of `/`, by path */
	size_t n_left_out;
	struct engine_stray *strays; /* owned; of a project, in cowfsd alone */
	size_t n_strays;
	uint64_t elapsed_ms;
};

/*
 * Capture a project, which needs no preparation, or take a clone as it is now, and keep
 * that as a snapshot.  Once this returns 0 the snapshot survives power loss, but for what a lazy
 * one has not read yet; on failure there is none.  -EEXIST if the project has such a tag already.
 */
NODISCARD int engine_take(struct engine *e, const struct engine_take_options *options,
			  struct engine_taken *ret, struct err *err);

/*
 * Wait until every file of every lazy snapshot is read, or lost: of the project that holds the engine's
 * directory, and of the one that `state` (may be NULL) is of.
 */
NODISCARD int engine_settle(struct engine *e, const char *state, const struct engine_watch *watch,
			    struct err *err);
void engine_taken_done(struct engine_taken *t);

/* --- listing ---------------------------------------------------------------------------- */

struct engine_history {
	char *project; /* owned; its path */
	struct engine_snapshot *list;
	size_t n;
};

/* Newest first, automatic ones too.  `clone` NULL: the snapshots of the project itself. */
NODISCARD int engine_log(struct engine *e, const char *clone, struct engine_history *ret,
			 struct err *err);

/* The same of the project and of all its clones together. */
NODISCARD int engine_log_all(struct engine *e, struct engine_history *ret, struct err *err);
void engine_history_done(struct engine_history *h);

/*
 * The path of the project that has the oldest automatic snapshot with this label, `KEY=VALUE`; owned,
 * NULL: there is none.
 */
char *engine_project_labelled(struct engine *e, const char *label);

/* --- removing --------------------------------------------------------------------------- */

/*
 * The snapshot that `state` means goes, with the tag if that is how it was named; gc frees the space.
 * -EBUSY if a clone needs it, -ECANCELED if it has a tag or, without `force`, if something could no
 * longer be undone.  An id needs eight digits here.
 */
NODISCARD int engine_remove_snapshot(struct engine *e, const char *state, bool force,
				     char ret_id[ENGINE_ID_SIZE], struct err *err);
