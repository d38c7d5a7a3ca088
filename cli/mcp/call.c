#include "cli/mcp/call.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/via.h"
#include "cli/mcp/failure.h"

/* --- in the child ----------------------------------------------------------------------- */

static int check_states(const struct mcp_options *o, const struct tool_line *line, struct err *err)
{
	int r = 0;

	for (size_t i = 0; r >= 0 && i < line->n_states; i++)
		r = o->check_state(line->states[i].text, line->states[i].is_clone, o->ctx, err);
	return r;
}

struct task {
	const struct mcp_options *options;
	struct tool_line *line;
};

static int run_call(FILE *out, void *ctx)
{
	const struct task *t = ctx;
	const struct mcp_options *o = t->options;
	struct err err = { 0 };

	if ((*t->line->trace != '\0' && setenv(TRACEPARENT_VARIABLE, t->line->trace, 1) < 0) ||
	    setenv(VIA_VARIABLE, t->line->via, 1) < 0)
		return failure_print(out, "E_FAILED", "out of memory");
	if (check_states(o, t->line, &err) < 0)
		return failure_print(out, err.code == -ENOENT ? "E_NOT_FOUND" : "E_FAILED",
				     err.msg);
	if (t->line->is_job)
		return job_run(o, t->line, out);
	return o->run_line(t->line->argc, t->line->argv, out, o->ctx);
}

/* --- in the server ---------------------------------------------------------------------- */

int call_start(struct call *c, const struct mcp_options *options, struct tool_line *line,
	       struct err *err)
{
	struct task task = { .options = options, .line = line };
	int r;

	*c = (struct call){ 0 };
	r = child_start(&c->child, run_call, &task, err);
	tool_line_done(line);
	return r;
}

size_t call_poll(const struct call *c, struct pollfd fds[2])
{
	return child_poll(&c->child, fds);
}

/* The id of a run comes first, as a line of its own. */
static void take_run(struct call *c)
{
	const char *data = (const char *)c->child.out.data, *end;
	size_t len;

	if (c->child.out.len == 0 || *data != JOB_ID_MARK)
		return;
	end = memchr(data, '\n', c->child.out.len);
	if (!end)
		return;
	len = (size_t)(end - data) + 1;
	snprintf(c->run, sizeof(c->run), "%.*s", (int)len - 2, data + 1);
	memmove(c->child.out.data, c->child.out.data + len, c->child.out.len - len);
	c->child.out.len -= len;
}

bool call_read(struct call *c)
{
	bool ended = child_read(&c->child);

	take_run(c);
	return ended;
}

void call_stop(struct call *c)
{
	child_stop(&c->child);
	take_run(c);
}

void call_done(struct call *c)
{
	child_done(&c->child);
}
