/*
 * run-project.h - the project in which a run with a root of its own was started: a throw-away clone of it.
 *
 * The run sees that clone at the project's own path, as a run without a root does.  The real project
 * is never shown.
 */
#pragma once

#include "engine/api/run.h"
#include "engine/ask/ask-stage-i.h"
#include "engine/find/engine-i.h"

struct run_project {
	char *dir;    /* owned; NULL: the run was started in none */
	char *cwd;    /* owned; the caller's directory in it */
	char *origin; /* owned; the clone of it that the caller is in; NULL: the project itself */
	size_t there; /* so many bytes of `dir` name what is there before the run */
	bool in_root; /* the root has files of its own at that path, and they stay */
	struct control control;
	struct stage stage; /* `clone` is NULL: none was made */
};

#define RUN_PROJECT_INIT ((struct run_project){ .control = CONTROL_INIT })

void run_project_done(struct run_project *p);

/* A registered project, or a work tree of git's.  `root_dir`: what the root is a clone of, or NULL. */
NODISCARD int run_project_find(struct run_project *p, struct engine *e,
			       const struct engine_run_options *o, const char *root_dir,
			       struct err *err);

/* Have its clone made, with the limits that `root`, the clone `of`, was asked for with. */
NODISCARD int run_project_stage(struct run_project *p, struct engine *e,
				const struct stage_options *root, const struct stage *of,
				bool masks, struct err *err);

/* The run is over: its clone goes.  *ret says whether it was full. */
void run_project_end(struct run_project *p, struct engine *e, struct stage_end *ret);

/* Directories that were made for its place are no changes of the command's. */
void run_project_leave_out(const struct run_project *p, struct stage_end *end);
