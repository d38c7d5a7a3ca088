/*
 * queues.h - numbers about queues: actions of `watch`, and tickets of workers.
 */
#pragma once

#include "cli/show/families.h"
#include "engine/api/worker.h"

/* From the records of the store. */
NODISCARD int queues_add_watch(struct families *f, struct err *err);

/* The server is asked.  If it does not answer, `queue_up` is 0, a warning says why, and that is all. */
void queues_add_workers(struct families *f, const struct engine_worker_status_options *of);
