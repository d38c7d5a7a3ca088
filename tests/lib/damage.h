/*
 * damage.h - change a store behind its back, as a bad disk or another program would.
 *
 * `store` is the store's directory, `file` "meta.db" or "chunks.db".
 */
#pragma once

#include <stdint.h>

#include "base/attr.h"
#include "base/buf.h"
#include "cowfs/store/object.h"

/* Run SQL on a connection of its own; when it returns the change is committed. */
void damage_sql(const char *store, const char *file, const char *fmt, ...) PRINTF_LIKE(3, 4);

/* The same with ?1 bound to a blob. */
void damage_sql_blob(const char *store, const char *file, const char *sql, const void *data,
		     size_t len);

/* One integer, or one blob appended to `out`. */
int64_t damage_ask(const char *store, const char *file, const char *fmt, ...) PRINTF_LIKE(3, 4);
void damage_ask_blob(const char *store, const char *file, const char *sql, struct buf *out);

/* Change the last byte of the packed bytes of an object; or remove its row. */
void damage_object(const char *store, enum object_kind kind, const struct object_id *id);
void damage_remove(const char *store, enum object_kind kind, const struct object_id *id);

/* The files themselves; not while this process has the store open. */
void damage_read(const char *store, const char *file, struct buf *out);
void damage_write(const char *store, const char *file, const void *data, size_t len);
void damage_poke(const char *store, const char *file, uint64_t off, uint8_t byte);

/* Names and bytes of all files in a directory but `except` (or NULL), in the order of names. */
void damage_survey(const char *dir, const char *except, struct buf *out);
