/*
 * session.h - one client: its messages, its pending calls, and the messages to it.
 *
 * It knows no transport. Messages go in one at a time. All output that a message causes goes to the
 * buffer that was the session's `out` when the message came, one line for each message.
 */
#pragma once

#include <poll.h>
#include <stdint.h>

#include "base/strlist.h"
#include "cli/mcp/call.h"
#include "cli/mcp/rpc.h"
#include "cli/mcp/watch.h"

/* What a client wants of a task (task.h). */
enum task_act { TASK_NONE, TASK_GET, TASK_UPDATE, TASK_CANCEL };

/* A request that is not answered yet. */
struct pending_call {
	struct pending_call *next;
	struct rpc_message message; /* owned */
	struct buf *out;            /* where its lines go; borrowed */
	bool modern;
	const struct tool *tool;  /* NULL: it listens for what changes */
	struct json args;         /* of the tool */
	struct json_doc from_uri; /* where `args` are, if they come from an address */
	bool is_resource;         /* its answer is what stands at that address */
	enum task_act task;
	struct call call;
	enum {
		PENDING_PLAN, /* a dry run, to show a person what would change */
		PENDING_ASK,  /* the person is asked, under `ask` */
		PENDING_ACT,
	} state;
	char ask[16];         /* the id of our question */
	uint64_t began_ms;    /* when it came */
	uint64_t progress_ms; /* when the next progress goes to the client; 0: it wants none */
};

/* Who a client says it is. */
struct client_info {
	char name[64], version[32];
};

struct session {
	const struct mcp_options *options;
	bool modern_only;             /* its transport has seen that it is of the newer era */
	bool rejected;                /* the last request was no request of either era */
	const char *legacy;           /* the version that a handshake chose; NULL: there was none */
	bool legacy_can_ask;          /* its client can ask a person */
	struct client_info client;    /* what it said in a handshake */
	struct pending_call *pending; /* owned */
	struct buf *out;              /* lines for the client, for what comes now; borrowed */
	struct buf unheard;           /* lines that nobody waits for any more */
	unsigned asked;               /* questions so far */
	struct watch watch;           /* of the store, once somebody subscribed */
	unsigned revived;             /* how often it was started again since it said something */
	struct strlist subscribed; /* addresses that a client of the older era wants to hear of */
};

void session_init(struct session *s, const struct mcp_options *options, struct buf *out);
void session_done(struct session *s); /* ends its calls */

/* Take one message, without its newline.  -ENOMEM if it cannot even be answered. */
NODISCARD int session_take(struct session *s, const char *line, size_t len, struct err *err);

/* The same for one that was taken apart, which the session may keep: `m` is then empty. */
NODISCARD int session_take_message(struct session *s, struct rpc_message *m, struct err *err);

/* Is there a request that still has to be answered in that buffer?  In any, if it is NULL. */
bool session_owes(const struct session *s, const struct buf *out);

/* Nobody reads that buffer any more: what it still waits for goes on, and ends unheard. */
void session_forget(struct session *s, const struct buf *out);

/* The client has gone, and wants none of what it asked for: as if it had cancelled every call. */
void session_cancel_all(struct session *s);

/* Tell the clients that listen for changes that no more will come. */
NODISCARD int session_end_listening(struct session *s, struct err *err);

/* How many descriptors its calls need, and what they are. */
size_t session_count(const struct session *s);
size_t session_poll(const struct session *s, struct pollfd *fds, size_t max);

/* How many milliseconds there are until session_step() has something to do anyway; -1: forever. */
int session_timeout(const struct session *s);

/* Go on with every call that has something to say. */
NODISCARD int session_step(struct session *s, struct err *err);
