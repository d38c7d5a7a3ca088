/*
 * receipts.h - changes of the project, beside the snapshots that they led to.
 */
#pragma once

#include "cli/out.h"
#include "engine/api/receipts.h"

/* An array `receipts` of those that belong to one of these snapshots. */
void receipts_set(struct json j, const struct engine_receipts *r,
		  const struct engine_snapshot *list, size_t n);

/*
 * "  (9f8e7d6c, make test)" for each that led to this snapshot; of a rollback, which led to an older
 * one, for the snapshot that it kept.
 */
void receipts_print(const struct invocation *inv, const struct engine_receipts *r,
		    const struct engine_snapshot *s);

/* Promotions to directories that are no project, the newest, each on a line. */
void receipts_print_elsewhere(const struct invocation *inv, const struct engine_receipts *r);
