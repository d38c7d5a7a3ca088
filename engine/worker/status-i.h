/*
 * status-i.h - a worker's description of itself.
 */
#pragma once

#include "base/buf.h"
#include "engine/api/worker.h"

#define STATUS_MAX ((size_t)256 << 10) /* bytes of an answer */

void status_done(struct engine_worker_state *s);
/* -EINVAL if it is none: anybody may send one. */
NODISCARD int status_decode(const char *text, size_t len, struct engine_worker_state *ret,
			    struct err *err);
NODISCARD int status_encode(const struct engine_worker_state *s, struct buf *out, struct err *err);
