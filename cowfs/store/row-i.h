/*
 * row-i.h - private to the store: the row of an object in the databases.
 */
#pragma once

#include <stdint.h>

#include "cowfs/store/object.h"
#include "cowfs/store/schema.h"

/* Which of the two tables of objects, one in each database; rows are numbered in each by itself. */
enum table { TABLE_META = SCHEMA_META, TABLE_CHUNKS = SCHEMA_CHUNKS };
#define TABLES SCHEMA_FILES

static inline enum table table_of(enum object_kind kind)
{
	return kind == OBJECT_CHUNK ? TABLE_CHUNKS : TABLE_META;
}

/* A row of either table, found. */
struct row {
	enum table table;
	int64_t seq;
};
