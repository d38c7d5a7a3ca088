/*
 * hook.h - a client's hook for a step of its agent, and the snapshot taken for it.
 *
 * A client runs `snapcow agents hook CLIENT` when somebody gives the agent a prompt, and before and
 * after each command and edit. The snapshot has labels: `client`, `session`, `turn` (prompts are
 * counted), `step` (prompt, before, after), `tool`, `call`.
 */
#pragma once

#include "base/err.h"
#include "cli/cmd.h"

/* Never fails the client: what could not be done is one line on standard error, and the status is 0. */
int hook_run(struct invocation *inv, const char *client, struct err *err);
