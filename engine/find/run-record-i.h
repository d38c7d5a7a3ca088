/*
 * run-record-i.h - a run as JSON, as its record holds it.
 */
#pragma once

#include "base/fields.h"
#include "engine/find/run-record.h"

extern const struct fields run_limits_fields;  /* struct engine_run_limits */
extern const struct fields run_machine_fields; /* struct engine_machine */

void run_record_encode(struct json j, const struct engine_run *r);

/* -EPROTO if the record has another form; json_end() says whether each field was there. */
NODISCARD int run_record_decode(struct json j, struct engine_run *r);
