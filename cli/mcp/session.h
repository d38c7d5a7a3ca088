/*
 * session.h - one client: its messages, the calls it waits for, what it is sent.
 *
 * Knows no transport.  Messages go in one at a time, answers gather in `out`, each one line.
 */
#pragma once

#include <poll.h>

#include "cli/mcp/call.h"
#include "cli/mcp/rpc.h"

/* A request that is not answered yet. */
struct pending {
	struct pending *next;
	struct rpc_message message; /* owned */
	bool modern;
	const struct tool *tool;  /* NULL: it listens for what changes */
	struct json args;         /* of the tool */
	struct json_doc from_uri; /* where `args` are, if they come from an address */
	bool is_resource;         /* its answer is what stands at that address */
	struct call call;
	enum {
		PENDING_PLAN, /* a dry run, to show a person what would change */
		PENDING_ASK,  /* the person is asked, under `ask` */
		PENDING_ACT,
	} state;
	char ask[16]; /* the id of our question */
};

struct session {
	const struct mcp_options *options;
	const char *legacy;      /* the version that a handshake chose; NULL: there was none */
	bool legacy_can_ask;     /* its client can ask a person */
	struct pending *pending; /* owned */
	struct buf out;          /* lines for the client */
	unsigned asked;          /* questions so far */
};

void session_init(struct session *s, const struct mcp_options *options);
void session_done(struct session *s); /* ends its calls */

/* Take one message, without its newline.  -ENOMEM if it cannot even be answered. */
NODISCARD int session_take(struct session *s, const char *line, size_t len, struct err *err);

/* How many descriptors its calls need, and what they are. */
size_t session_count(const struct session *s);
size_t session_poll(const struct session *s, struct pollfd *fds, size_t max);

/* Go on with every call that has something to say. */
NODISCARD int session_step(struct session *s, struct err *err);
