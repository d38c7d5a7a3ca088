/*
 * record.h - the record of a call: the caller, the tool, the arguments, the result.
 */
#pragma once

#include "cli/mcp/session.h"

/* Remember who a client of the older era says it is. */
void record_client(struct session *s, const struct rpc_message *initialize);

/* Whose call it is, for the commands that it starts (base/via.h). */
void record_via(const struct session *s, const struct pending_call *p, char *text, size_t size);

/*
 * Hand a call that has ended to the server's `record`.  `outcome`: NULL, and it is what the command's exit
 * code says; or `refused`, `asked`, `cancelled`.  Contents of files are counted, not kept, and what looks
 * like a secret is masked (mask.h).
 */
void record_call(const struct session *s, const struct pending_call *p, const char *outcome);
