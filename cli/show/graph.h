/*
 * graph.h - snapshots and their parents as lines that run down the page.
 */
#pragma once

#include "cli/out.h"
#include "engine/api/history.h"

typedef void (*graph_row_fn)(const struct engine_snapshot *s, void *ctx);

/*
 * Draw `list`, in which every snapshot stands before its parent: each on a line of its own, whose
 * rest `row` prints with the newline.  A line that runs to one that is not in the list ends.
 */
NODISCARD int graph_print(const struct invocation *inv, const struct engine_snapshot *list,
			  size_t n, graph_row_fn row, void *ctx, struct err *err);
