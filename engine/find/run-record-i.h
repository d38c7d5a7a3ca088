/*
 * run-record-i.h - a run as JSON, as its record holds it.
 */
#pragma once

#include "base/json.h"
#include "engine/find/run-record.h"

void run_record_encode(struct json j, const struct engine_run *r);

/* -EPROTO if the record has another form; json_end() says whether each field was there. */
NODISCARD int run_record_decode(struct json j, struct engine_run *r);
