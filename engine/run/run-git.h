/*
 * run-git.h - who commits in a run: the caller, by the name and address of the caller's own git.
 *
 * The home of a run is empty, and with it git's settings.  Of these two lines are passed on, as
 * the settings of the system, which everything else that git reads in the run overrules.
 */
#pragma once

#include "engine/api/run.h"
#include "runner/layout.h"

#define RUN_GIT_FILE "/run/snapcow-gitconfig" /* in the run */

/* The file's text, owned; NULL and 0 if the caller's git knows of no name and no address. */
NODISCARD int run_git_read(char **ret, struct err *err);

/* What leads git to it. */
struct engine_list run_git_variables(void);

NODISCARD int run_git_show(struct layout *l, const char *text, struct err *err);
