/*
 * catalog-id.h - the ids of projects, snapshots and receipts.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/err.h"

#define CATALOG_ID_SIZE  8 /* random bytes; shown as 16 hex digits */
#define CATALOG_HEX_SIZE (2 * CATALOG_ID_SIZE + 1)

/* All zero: none. */
struct catalog_id {
	uint8_t b[CATALOG_ID_SIZE];
};

NODISCARD int catalog_id_new(struct catalog_id *ret, struct err *err);
bool catalog_id_is_zero(const struct catalog_id *id);
bool catalog_id_same(const struct catalog_id *a, const struct catalog_id *b);
char *catalog_id_hex(const struct catalog_id *id, char hex[CATALOG_HEX_SIZE]);
