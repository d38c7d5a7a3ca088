/*
 * settings.h - the user's settings for the command line, from config.yaml.
 */
#pragma once

#include "base/strlist.h"
#include "engine/api/engine.h"

/*
 * Checks that every promotion of an agent must pass: `promote.checks`.  -EINVAL with the place in the file
 * that cannot be understood, and then nothing may be promoted.
 */
NODISCARD int engine_agent_checks(const struct engine *e, struct strlist *ret, struct err *err);

#define ENGINE_STEPS_KEPT 1000
#define ENGINE_STEPS_MAX  100000

/* How many steps of agents (`agents add --hooks`) a project keeps: `agents.steps`.  Likewise. */
NODISCARD int engine_agent_steps(const struct engine *e, uint64_t *ret, struct err *err);

/* The user's own tasks, `tasks`: names, and the line for the shell of each.  Likewise. */
NODISCARD int engine_tasks(const struct engine *e, struct strlist *ret_names,
			   struct strlist *ret_lines, struct err *err);
