/*
 * blame.h - the history of a file: its versions, and the version that each line came with.
 *
 * A file is followed through the snapshots of the project and, where a promotion brought it,
 * through those of the clone; renames are followed too. Lines are matched as `git blame` matches
 * them. Nothing is written, and no daemon is started unless a clone as it is now must be read.
 */
#pragma once

#include "base/buf.h"
#include "engine/api/history.h"
#include "engine/api/run.h"

/* What made a version. */
enum engine_writer {
	ENGINE_BY_NOBODY,    /* it is on disk or in the clone, and in no snapshot yet */
	ENGINE_BY_SNAPSHOT,  /* all that is known: which snapshot has it first */
	ENGINE_BY_STEP,      /* a step of an agent that has hooks */
	ENGINE_BY_RUN,       /* a command in a sandbox */
	ENGINE_BY_PROMOTION, /* of a clone whose snapshots and runs are not kept any more */
	ENGINE_BY_ROLLBACK,
	ENGINE_BY_UNDO,
};
const char *engine_writer_name(enum engine_writer w); /* "snapshot", "run", ... */

struct engine_version {
	struct engine_snapshot snapshot; /* that has it first; its id is "" of ENGINE_BY_NOBODY */
	enum engine_writer writer;
	char status;                    /* 'A', 'M', 'D', 'R', or 'T': another type of file */
	char *path;                     /* owned; where it was then */
	char *old_path;                 /* owned; where it was before, or NULL */
	uint64_t added, removed;        /* lines */
	char run[ENGINE_RUN_ID_SIZE];   /* or "" */
	char *command;                  /* owned; of the run, in a line; or NULL */
	char promotion[ENGINE_ID_SIZE]; /* or "": the receipt that brought it into the project */
	char *clone;                    /* owned; or NULL */
	char *who;                      /* owned: the agent, or the user */
	char *session;                  /* owned; of a step, or NULL */
	uint64_t turn;                  /* of a step */
};

struct engine_versions {
	char *project;               /* owned; its path */
	char *path;                  /* owned; from the top */
	struct engine_version *list; /* owned; newest first */
	size_t n, cap;
};

void engine_versions_done(struct engine_versions *v);

/* Of which file, and how far back. */
struct engine_blame_options {
	const char *state; /* NULL: the clone here, or the project as it is now */
	const char
	    *path; /* as engine_show() takes it; without a state also from the current directory */
	uint64_t from, to; /* lines of it, counted from 1, both included; 0 and 0: all */
	uint64_t count;    /* versions at most; 0: all */
};

/*
 * Each version of the file; with a range, those that changed one of its lines.  -ENOENT with a sentence
 * if no snapshot has such a file, -EINVAL if it has fewer lines.
 */
NODISCARD int engine_log_path(struct engine *e, const struct engine_blame_options *options,
			      struct engine_versions *ret, struct err *err);

/* A line of the file, and the version that it came with. */
struct engine_blame_line {
	size_t version;   /* in the list */
	size_t line;      /* its number there, from 1 */
	size_t number;    /* its number now, from 1 */
	const char *text; /* borrowed; without its newline */
	size_t len;
};

struct engine_blame {
	struct engine_versions versions; /* that a line came with, newest first */
	struct engine_blame_line *lines; /* owned */
	size_t n;
	struct buf text;
};

void engine_blame_done(struct engine_blame *b);

NODISCARD int engine_blame(struct engine *e, const struct engine_blame_options *options,
			   struct engine_blame *ret, struct err *err);
