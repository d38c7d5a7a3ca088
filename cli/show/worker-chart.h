/*
 * worker-chart.h - the work of each worker of a queue since it began, a row for each.
 */
#pragma once

#include "cli/out.h"
#include "engine/api/worker.h"

/* How much of its time all its slots had a ticket, 0 to 1; below 0: a worker of an earlier version does not say. */
double worker_chart_share(const struct engine_worker_state *w);

/* Bars for a terminal of so many columns. */
void worker_chart_print(const struct invocation *inv, const struct engine_worker_status *s,
			size_t columns);
