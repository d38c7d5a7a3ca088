/*
 * run-view.h - what a run sees: the clone, the host's programs, what was granted and hidden.
 */
#pragma once

#include "engine/engine-i.h"
#include "engine/run-net.h"
#include "engine/run.h"
#include "engine/stage-i.h"
#include "runner/layout.h"

struct run_view {
	struct layout *layout; /* owned, as is the next */
	char *cwd;             /* inside */
	int clone_fd; /* open as long as the run: who unmounts the clone is told that it is in use */
};

#define RUN_VIEW_INIT ((struct run_view){ .clone_fd = -1 })

void run_view_done(struct run_view *v);

/* -ECANCELED with a sentence for what no option can grant. */
NODISCARD int run_view_build(struct run_view *v, struct engine *e,
			     const struct engine_run_options *o, const char *home,
			     const struct run_net *net, const struct stage *stage, struct err *err);
