/*
 * taking-i.h - shared by the files that take a snapshot.
 */
#pragma once

#include "base/strlist.h"
#include "engine/act/acts-i.h"
#include "engine/act/survey-i.h"
#include "engine/host/promises-i.h"

/* A snapshot being taken. */
struct taking {
	struct task *task;
	const struct engine_take_options *options;
	bool reuse;
	struct store *store;
	struct project project;
	struct clone clone;       /* its name NULL: of the project itself */
	struct snapshot snapshot; /* its strings are borrowed */
	struct snapshot parent;   /* all zero: none */
	struct captured captured; /* of a project */
	struct buf lacks;         /* the text behind snapshot.lacks: what could not be read */
	char *part;               /* owned; behind snapshot.part, with options->part */
	char *owner;              /* owned; behind snapshot.clone, with options->owner */
	struct snapshot base;     /* of a clone: its snapshots lack what its base lacks */
	struct strlist left_out;  /* directories that are no part of the machine's root */
	bool is_new;              /* the project */
	struct lazy lazy;         /* its id zero: nothing is promised */
	struct promises_walk walk;
	bool walking; /* promises_may_begin() has `walk` */
	const struct signatures
	    *lent;    /* of the capture of the project that is under way, or NULL */
	bool early;   /* that capture is about to end; then its signatures serve */
	bool is_same; /* the parent has the same state and is used instead */
};

/* --- taken.c ------------------------------------------------------------------------------- */

/* The project is new and nobody named it: say which folder it is, if another one may be meant, or none. */
void taken_warn_of_choice(struct taking *t);

/* The answer, but for how it differs from the snapshot before. */
NODISCARD int taken_describe(struct taking *t, struct engine_taken *ret, struct err *err);
/* How many paths differ.  The snapshot is taken, so a parent that cannot be read is only a warning. */
void taken_compare(struct taking *t, struct engine_taken *taken);
