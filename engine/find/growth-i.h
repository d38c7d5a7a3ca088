/*
 * growth-i.h - the file "growth" of a store: a line for each row, "TIME LOGICAL DISK USED GARBAGE",
 * in which GARBAGE is "-" where it was not counted.
 *
 * Nothing depends on it: malformed lines are skipped, and it may be removed at any time.
 */
#pragma once

#include "engine/api/growth.h"

#define GROWTH_FILE "growth"

NODISCARD int growth_read(const char *store, struct engine_growth *ret, struct err *err);

/* Append a row, unless it tells the same as the last one; one process at a time may. */
NODISCARD int growth_add(const char *store, const struct engine_growth_row *row, struct err *err);
