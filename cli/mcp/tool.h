/*
 * tool.h - the tools that an agent can call: each is a command of the command line with a schema.
 *
 * One table (tools.c) holds name, description, parameters and annotations of every tool. The schema
 * for clients and the command line of a call are both made from it, so neither can drift from the
 * other. A tool's answer is the command's output with --json.
 */
#pragma once

#include "base/json.h"
#include "base/traceparent.h"
#include "base/via.h"

enum param_kind {
	PARAM_TEXT,    /* a string: --option=VALUE, or a word if it has no option */
	PARAM_CLONE,   /* the same, that names a clone of this project */
	PARAM_STATE,   /* the same, that names a clone or a snapshot of it, or is "." */
	PARAM_NET,     /* a network for a run: any but the host's */
	PARAM_PATH,    /* a path in the state before it: STATE:PATH is one word */
	PARAM_FLAG,    /* a boolean: --option if it is true */
	PARAM_NUMBER,  /* an integer from 0 on */
	PARAM_LIST,    /* strings: --option=VALUE for each */
	PARAM_STATES,  /* several states, each a word */
	PARAM_WORDS,   /* strings, each a word */
	PARAM_COMMAND, /* a string for the shell, or the words themselves: all behind "--" */
	PARAM_SECONDS, /* how long the call may wait for a run */
	PARAM_RUN,     /* the id of a run of this project, or the name of an experiment */
	PARAM_SINCE,   /* where in the output of a run to begin */
};

struct tool_param {
	const char *name;
	enum param_kind kind;
	const char *option; /* without "--"; NULL: a word, or the server's own */
	bool required;
	const char *choices; /* "a|b|c"; NULL: any */
	const char *help;
};

#define TOOL_PARAMS_MAX 28
#define TOOL_STATES_MAX 20

/* What one value of the parameter `act` needs and takes besides. */
struct tool_act {
	const char *name;
	const char *needs; /* "a|b" */
	const char *takes; /* "c|d": any other parameter is refused */
};

#define TOOL_ACTS_MAX 4

/* Whether a call needs a person's yes, because it writes the project. */
enum tool_gate {
	GATE_NONE,
	GATE_PROJECT,  /* unless it is a dry run */
	GATE_NO_CLONE, /* the same, if no clone is named */
	GATE_PERSON,   /* it is a person's decision: no option of the server stands for one */
	GATE_POLICY,   /* no: policy.yaml and pipeline.yaml say what it may do */
};

struct tool {
	const char *name, *title;
	const char *description; /* the first sentence says what it does: clients search it */
	const char *command;     /* of the command line */
	const char *fixed[3];    /* arguments that are always given */
	const char *schema; /* of docs/schema, for what it answers; NULL: the one of `command` */
	const char *page;   /* that shows what it answers (app.h); NULL: none */
	enum tool_gate gate;
	bool job; /* it is about a run or an experiment, which goes on without the call (job.h) */
	bool read_only, destructive, idempotent, open_world;
	struct tool_act acts[TOOL_ACTS_MAX];       /* a NULL name ends; none: all go together */
	struct tool_param params[TOOL_PARAMS_MAX]; /* a NULL name ends */
};

extern const struct tool tools[]; /* a NULL name ends */

/* The one of that name, or NULL. */
const struct tool *tool_find(const char *name);

struct mcp_options;

/* Is this tool among those that the server was started with? */
bool tool_is_offered(const struct mcp_options *o, const struct tool *t);

/* Does it have the parameter? */
const struct tool_param *tool_param(const struct tool *t, const char *name);

/* Its entry in the list of tools. */
void tool_describe(const struct tool *t, struct json j);

/* A command line that a call becomes; a NULL ends argv.  tool_line_done() frees it. */
struct tool_line {
	char **argv; /* owned, with its strings */
	int argc;
	size_t room;
	struct {
		char *text;        /* owned */
		bool is_clone;     /* and no other state */
	} states[TOOL_STATES_MAX]; /* that must belong to this project */
	size_t n_states;
	bool is_job;     /* of a tool about a run: */
	char *job;       /* owned; which one, or NULL: the one that this starts */
	char *since;     /* owned, or NULL */
	uint64_t wait_s; /* how long to wait for it */
	char
	    trace[TRACEPARENT_SIZE]; /* that the call belongs to; "": of the server's environment */
	char via[VIA_MAX + 1];       /* whose call it is: "agent:NAME" */
};

void tool_line_done(struct tool_line *line);

/*
 * The command line for these arguments.  -EINVAL with a sentence for the model if one is missing,
 * unknown or of the wrong type.
 */
NODISCARD int tool_line(const struct tool *t, struct json args, struct tool_line *ret,
			struct err *err);

/* One more argument behind the command's name. */
NODISCARD int tool_line_add(struct tool_line *line, const char *word, struct err *err);

/* Would this call write the project? */
bool tool_writes_project(const struct tool *t, struct json args);
