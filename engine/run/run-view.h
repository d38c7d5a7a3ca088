/*
 * run-view.h - what a run sees: the clone, the host's programs, granted and hidden paths.
 */
#pragma once

#include "engine/api/profile.h"
#include "engine/api/run.h"
#include "engine/find/engine-i.h"
#include "engine/run/run-net.h"
#include "engine/run/run-project.h"
#include "engine/wire/control-i.h"
#include "engine/wire/wire-i.h"
#include "runner/layout.h"

/* A clone that the run sees. */
struct run_open {
	int fd;       /* open during the run, so that the clone is in use */
	int shown_fd; /* of the run's own mount of the clone, or -1 */
};

struct run_view {
	struct layout *system;   /* owned, like the next two: what is the same for every clone */
	struct layout *layout;   /* what comes after it */
	char *cwd;               /* inside */
	struct run_open clone;   /* what the run is for */
	struct run_open project; /* beside a clone that is the run's root */
	uint64_t *
	    hidden; /* owned; of a clone that is the run's root: what it cannot open, by st_ino, rising */
	size_t n_hidden;
	struct control names;   /* open while directories of the clone must stay where they are */
	uint64_t mounted_by_ms; /* of the monotonic clock; by then they do, 0: for ever */
};

#define RUN_VIEW_INIT \
	((struct run_view){ .clone = { -1, -1 }, .project = { -1, -1 }, .names = CONTROL_INIT })

void run_view_done(struct run_view *v);

/* All is mounted: directories may be moved again. */
void run_view_began(struct run_view *v);

/* The run is over: release the clone. */
void run_view_release(struct run_view *v);

/* What a view is made from; all borrowed. */
struct run_sight {
	const struct engine_run_options *options;
	const struct engine_profile *profile;
	const struct run_net *net;
	const char *home;
	const char *git;                   /* as run_git_read() has it; NULL: none */
	const struct run_project *project; /* beside a root; it may have none */
};

/* Check what can be checked without a clone.  `root`: that is all of what the run sees. */
NODISCARD int run_view_begin(struct run_view *v, bool root, struct err *err);

/* -ECANCELED with a sentence for what nobody can grant. */
NODISCARD int run_view_build(struct run_view *v, struct engine *e, const struct run_sight *sight,
			     const struct stage *stage, struct err *err);
