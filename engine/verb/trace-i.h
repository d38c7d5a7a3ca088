/*
 * trace-i.h - a walk over the versions of one file, and a report on each.
 */
#pragma once

#include "engine/api/blame.h"
#include "engine/ask/ask-hold-i.h"
#include "engine/verb/trail-i.h"
#include "snapshot/text/hunks.h"

/* Lines of the file that is asked about, and where they are in a version; counted from 0. */
struct span {
	size_t final, here, n;
};

struct spans {
	struct span *list; /* owned */
	size_t n, cap;
};

/* A version that is still to be looked at. */
struct node {
	size_t at;  /* the snapshot that it came into being with; TRAIL_NONE: what is on disk */
	char *path; /* owned */
	struct trail_file file;
	struct spans spans;
};

struct text_kept {
	struct content of;
	bool full;
	struct buf text;
};

/* Where the walk begins, and what it has yet to do. */
struct trace {
	struct engine *engine;
	struct trail trail;
	struct hold hold;
	char *path;      /* owned; from the top */
	size_t start;    /* the snapshot; TRAIL_NONE: none is there */
	bool on_disk;    /* before it comes what is on disk: */
	bool disk_lacks; /* nothing */
	struct buf disk;
	struct node *nodes; /* owned */
	size_t n, cap;
	struct text_kept kept[2];
	size_t last_kept;   /* the one that was wanted last */
	struct hunks hunks; /* of the last comparison */
	struct engine_runs runs;
	bool has_runs;
};

#define TRACE_INIT ((struct trace){ .hold = HOLD_INIT })

void trace_done(struct trace *w);

/* Find the state and the path. */
NODISCARD int trace_open(struct trace *w, const struct engine_blame_options *o, struct err *err);

/* Take over `spans`, and follow the version to where it came into being. */
NODISCARD int trace_add(struct trace *w, size_t at, const char *path, const struct trail_file *file,
			struct spans *spans, bool mode, struct err *err);

/* The newest of those that are left; false: none is.  It is the caller's. */
bool trace_take(struct trace *w, struct node *ret);
void node_done(struct node *n);

NODISCARD int spans_add(struct spans *s, struct span one, struct err *err);

/* The text of a version, borrowed until the next but one is wanted. */
NODISCARD int trace_text(struct trace *w, const struct node *n, const struct buf **ret,
			 struct err *err);

/* What a version follows: the file in each snapshot before that has it. */
struct earlier {
	size_t at;
	char *path; /* owned */
	struct trail_file file;
};

struct earliers {
	struct earlier list[TRAIL_BEFORE_MAX];
	size_t n;
};

void earliers_done(struct earliers *e);
NODISCARD int trace_earlier(struct trace *w, const struct node *n, struct earliers *ret,
			    struct err *err);

/* Compare with one of them: w->hunks. */
NODISCARD int trace_compare(struct trace *w, const struct node *n, const struct earlier *before,
			    struct err *err);

/* Describe the version that `n` is, and who made it. */
NODISCARD int version_fill(struct trace *w, const struct node *n, const struct earliers *before,
			   struct engine_version *ret, struct err *err);
