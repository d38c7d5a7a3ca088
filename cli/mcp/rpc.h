/*
 * rpc.h - JSON-RPC 2.0 messages: take one apart, build the answer to it.
 */
#pragma once

#include "base/buf.h"
#include "base/json.h"

enum rpc_code {
	RPC_PARSE_ERROR = -32700,
	RPC_INVALID_REQUEST = -32600,
	RPC_NO_METHOD = -32601,
	RPC_INVALID_PARAMS = -32602,
	RPC_INTERNAL = -32603,
	RPC_NO_RESOURCE = -32002, /* of the handshake's era */
	/* Of the protocol's revision 2026-07-28. */
	RPC_HEADER_MISMATCH = -32020,
	RPC_NO_CAPABILITY = -32021,
	RPC_NO_VERSION = -32022,
};

enum rpc_kind {
	RPC_REQUEST,
	RPC_NOTIFICATION,
	RPC_RESPONSE,
};

/* Begins as { 0 }; rpc_done() frees it. */
struct rpc_message {
	enum rpc_kind kind;
	struct json_doc doc;
	struct json top;
	struct json params; /* empty if there are none */
	const char *method; /* borrowed; NULL in a response */
};

void rpc_done(struct rpc_message *m);

/*
 * Take a message of one line apart.  0, or the rpc_code that answers it with the sentence in `err`;
 * m->top then still has the id if it could be read.
 */
NODISCARD int rpc_parse(struct rpc_message *m, const char *text, size_t len, struct err *err);

/* What a message says about itself; an empty place if it says nothing. */
struct json rpc_meta(const struct rpc_message *m);

/* An answer being built.  Begins as { 0 }; rpc_answer_done() frees it. */
struct rpc_answer {
	struct json_doc doc;
	struct json top;
};

void rpc_answer_done(struct rpc_answer *a);

/* Start one to the request whose id `request` holds; it has a "result", which is returned. */
struct json rpc_result(struct rpc_answer *a, struct json request);

/* Start one that fails; returns its "error", for "data". */
struct json rpc_error(struct rpc_answer *a, struct json request, int code, const char *sentence);

/* Start a notification; returns its "params". */
struct json rpc_notify(struct rpc_answer *a, const char *method);

/* Start a request of ours under an id of ours; returns its "params". */
struct json rpc_request(struct rpc_answer *a, const char *id, const char *method);

/* The answer as one line with its newline, appended to `out`. */
NODISCARD int rpc_append(const struct rpc_answer *a, struct buf *out, struct err *err);
