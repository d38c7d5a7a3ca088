/*
 * run-root.h - a run whose clone is a whole root file system: its `/`, in which it is root.
 */
#pragma once

#include "engine/api/run.h"
#include "engine/find/engine-i.h"
#include "engine/run/run-terms.h"
#include "runner/layout.h"
#include "runner/sandbox.h"

#define RUN_ROOT_HOME "/root"

/* -EINVAL with a sentence for what does not go with a root of its own, or without one. */
NODISCARD int run_root_check(const struct engine_run_options *o, const struct run_terms *terms,
			     struct err *err);

/* Who the command is in such a root, as run_root_check() has found it right. */
void run_root_user(const struct engine_run_options *o, struct sandbox_spec *spec);

/* The directory that the root is to be a clone of, as it is now; NULL if the options name none.  Owned. */
NODISCARD int run_root_find(struct engine *e, const struct engine_run_options *o, char **ret,
			    struct err *err);

/* What every such run has of its own: /tmp and /run. */
NODISCARD int run_root_system(struct layout *l, struct err *err);

/* Folders of the host that it may read. */
NODISCARD int run_root_grant(struct layout *l, struct engine *e, const struct engine_run_options *o,
			     struct err *err);

/* What it may not see; `hide` is the profile's. */
NODISCARD int run_root_hide(struct layout *l, struct engine *e, const struct engine_run_options *o,
			    const struct strlist *hide, struct err *err);

/* The directory that the root is given if it lacks it: root's home. */
const char *run_root_home(const struct engine_run_options *o);

/* NAME=VALUE that package managers need where the run has but one id. */
struct engine_list run_root_variables(const struct engine_run_options *o);

/* "one", "range", "all"; "": it has no root of its own. */
const char *run_root_ids(const struct engine_run_options *o, enum sandbox_ids ids);
