/*
 * task.h - the extension io.modelcontextprotocol/tasks: a run that outlasts its call is a task.
 *
 * Only of the newer era, and only for a client that declares the extension with the request.  The id
 * of the task is that of the run, so it outlives the server, and snap_wait takes it too.
 */
#pragma once

#include "cli/mcp/session.h"

#define TASK_EXTENSION "io.modelcontextprotocol/tasks"

/* Is it a method of the extension? */
bool task_method(const char *method);

/*
 * What to do for it: *ret and the arguments of the tool that does it.  1, or 0 after an error was
 * answered.
 */
NODISCARD int task_begin(struct session *s, const struct rpc_message *m, enum task_act *ret,
			 const struct tool **ret_tool, struct json args, struct err *err);

/*
 * A request to hear of tasks: 1 if its client declares the extension, or asks for none; 0 after an error
 * was answered.  None are announced: a client polls.
 */
NODISCARD int task_may_listen(struct session *s, const struct rpc_message *m, struct err *err);

/* Does the call end with a task instead of what the tool answered? */
bool task_is_made(const struct pending_call *p, struct json structured);

/* The members of the task that a run is. */
void task_set(struct json to, struct json structured);

/* Answer a method of the extension; `result` fills an object with the result of the tool. */
NODISCARD int task_answer(struct session *s, const struct pending_call *p, struct json structured,
			  int (*result)(struct json to, void *ctx, struct err *err), void *ctx,
			  struct err *err);
