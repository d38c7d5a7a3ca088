/*
 * response.h - the frame of every answer: the beginning of a result, and the two kinds of failure.
 */
#pragma once

#include "cli/mcp/session.h"

void response_server_info(const struct session *s, struct json j);

/* Begin the result of a request in the manner of its era. */
struct json response_begin(const struct session *s, struct rpc_answer *a, struct json request,
			   bool modern);

NODISCARD int response_error(struct session *s, struct json request, int code, const char *sentence,
			     struct err *err);

/* A request names an address where nothing stands. */
NODISCARD int response_no_resource(struct session *s, const struct rpc_message *m, bool modern,
				   const char *sentence, struct err *err);
