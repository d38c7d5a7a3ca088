/*
 * run-git.h - commits in a run get the name and address from the caller's git settings.
 *
 * A run's home is empty, so it has no git settings. These two settings are passed on as the
 * system's, which every other setting in the run overrides.
 */
#pragma once

#include "engine/api/run.h"
#include "runner/layout.h"

#define RUN_GIT_FILE "/run/snapcow-gitconfig" /* in the run */

/* The file's text, owned; NULL if the caller's git knows neither name nor address. */
NODISCARD int run_git_read(char **ret, struct err *err);

/* The variables that lead git to the file. */
struct engine_list run_git_variables(void);

NODISCARD int run_git_show(struct layout *l, const char *text, struct err *err);
