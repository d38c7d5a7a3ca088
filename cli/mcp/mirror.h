/*
 * mirror.h - headers of an HTTP request that repeat its body.
 *
 * In revision 2026-07-28 a client repeats the version, the method and the name in headers, for
 * proxies in between; a server must refuse a request whose headers differ from its body.
 */
#pragma once

#include "cli/mcp/rpc.h"

/* NULL: there is no such header. */
struct mirror {
	const char *version; /* MCP-Protocol-Version */
	const char *method;  /* Mcp-Method */
	const char *name;    /* Mcp-Name */
};

/* Does the request say, in its headers or in its body, that it is of 2026-07-28 or later? */
bool mirror_is_modern(const struct mirror *h, const struct rpc_message *m);

/* 0, or RPC_HEADER_MISMATCH with the sentence in `err`, for a request of that revision. */
NODISCARD int mirror_check(const struct mirror *h, const struct rpc_message *m, struct err *err);
