/*
 * mcp.h - the Model Context Protocol: what agents speak to `snap mcp`.
 *
 * Two eras of the protocol are served at once, chosen by how a client opens: revision 2026-07-28,
 * in which every request carries its version and capabilities, and the handshake of 2024-11-05 to
 * 2025-11-25.  Each call runs in a process of its own, so that calls run beside each other, one
 * that is cancelled ends like a command whose terminal went away, and none can harm the next.
 */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "base/err.h"
#include "base/json.h"

struct mcp_options {
	const char *program; /* for command lines that a person is to type */
	const char *version; /* of this program */
	bool read_only;      /* offer no tool that writes anything */
	bool no_promote;     /* offer none that writes the project */
	bool allow_promote;  /* nobody needs to be asked before the project is written */

	/*
	 * Run a command line as if it were typed with --json in the project, printing to `out`.
	 * Called in a child process.  Returns the exit code.
	 */
	int (*run_line)(int argc, char **argv, FILE *out, void *ctx);

	/* Is this a clone, or any state, of the project?  -ENOENT with a sentence if not.  Likewise. */
	int (*check_state)(const char *text, bool is_clone, void *ctx, struct err *err);
	void *ctx;
};

/* Serve one client on standard input and output until its input ends.  0 or a negative errno. */
NODISCARD int mcp_serve_stdio(const struct mcp_options *options, struct err *err);

/* Each tool that a server with these options offers, as its clients see it, into an array. */
void mcp_list_tools(const struct mcp_options *options, struct json list);
