/*
 * era.h - which of the two eras of the protocol a request belongs to, and the handshake of the older.
 */
#pragma once

#include "cli/mcp/session.h"

#define META_VERSION "io.modelcontextprotocol/protocolVersion"

/* Is it one of those that begin with a handshake, which this server speaks? */
bool era_is_legacy(const char *version);

/* Which era the request belongs to: 1 modern, 0 legacy; or an answer was given: -ECANCELED. */
NODISCARD int era_choose(struct session *s, const struct rpc_message *m, struct err *err);

/* The handshake. */
NODISCARD int era_initialize(struct session *s, const struct rpc_message *m, struct err *err);
