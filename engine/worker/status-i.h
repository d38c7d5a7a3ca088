/*
 * status-i.h - a worker's description of itself.
 */
#pragma once

#include "base/buf.h"
#include "engine/api/worker.h"

#define STATUS_MAX ((size_t)256 << 10) /* bytes of an answer */

NODISCARD int status_encode(const struct engine_worker_state *s, struct buf *out, struct err *err);
