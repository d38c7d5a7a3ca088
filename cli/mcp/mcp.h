/*
 * mcp.h - the Model Context Protocol, which agents speak to `snap mcp`.
 *
 * Two eras of the protocol are served at once, chosen by the client's first message: revision
 * 2026-07-28, in which every request carries its version and capabilities, and the handshake of
 * 2024-11-05 to 2025-11-25. Each call runs in a process of its own. So calls run in parallel, a
 * cancelled one ends like a command whose terminal went away, and none can harm the next.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"
#include "base/json.h"

struct session;
struct pending_call;
struct rpc_message;

/*
 * What another server than `snap mcp` offers through the same protocol: those of the conformance
 * suite's fixtures.  Each is asked before the server's own.
 */
struct mcp_extra {
	void (*describe)(struct json capabilities);

	/* Answer the request, or keep it with pending_keep(): 1; 0: it is none of mine. */
	int (*take)(struct session *s, struct rpc_message *m, bool modern, struct err *err);

	/* The client has answered the question of a request that was kept. */
	int (*answered)(struct session *s, struct pending_call *p, const struct rpc_message *m,
			struct err *err);
};

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
	/*
	 * The number of the last thing that happened in the store; and, in a child process, a line of JSON
	 * with `kind`, `clone`, `run` and `data` for each that comes, until `stop_fd` can be read.  NULL:
	 * no client can subscribe to anything.
	 */
	uint64_t (*newest)(void *ctx);
	void (*follow)(uint64_t since, int stop_fd, FILE *out, void *ctx);

	/* A call has ended: `data` is a JSON object that tells of it; clone and run may be NULL. */
	void (*record)(const char *data, const char *clone, const char *run, void *ctx);
	void *ctx;

	const struct mcp_extra *extra; /* NULL: nothing but snap's own */
};

/* Serve one client on standard input and output until its input ends.  0 or a negative errno. */
NODISCARD int mcp_serve_stdio(const struct mcp_options *options, struct err *err);

/* How a server on HTTP is reached, and what it bears. */
struct mcp_http {
	const char *listen; /* "127.0.0.1:8848"; the port 0 is any that is free */
	const char *token;  /* that every request must bring; NULL: none */
	bool remote;        /* other machines may reach it */
	size_t max_body;    /* bytes of a request */
	size_t max_bodies;  /* of all that are being read at once */
	size_t max_unread;  /* of a stream that a client does not read */
	size_t max_sessions;
	unsigned max_connections;
	unsigned timeout_s; /* that a connection may be silent, unless it waits for an answer */
	uint64_t idle_ms;   /* until a session that nobody uses is forgotten */

	void (*on_ready)(const char *url, void *ctx); /* it can be reached now */
	void *ctx;
};

#define MCP_HTTP_DEFAULTS                                                           \
	.max_body = (size_t)16 << 20, .max_bodies = (size_t)64 << 20,               \
	.max_unread = (size_t)16 << 20, .max_sessions = 64, .max_connections = 128, \
	.timeout_s = 60, .idle_ms = 1800000

/* Serve any number of clients on HTTP until SIGTERM, SIGINT or SIGHUP.  0 or a negative errno. */
NODISCARD int mcp_serve_http(const struct mcp_options *options, const struct mcp_http *how,
			     struct err *err);

/* Each tool that a server with these options offers, as its clients see it, into an array. */
void mcp_list_tools(const struct mcp_options *options, struct json list);
