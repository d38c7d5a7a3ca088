/*
 * stock.h - stores with known things in them, every step checked.
 *
 * stock_fill() puts one of everything into a store.  Block n is CHUNK_SIZE_MAX bytes
 * of stock_block(n); every other file holds its own path.
 *
 *   snapshot one, tag v1      big       blocks 1, 1, and 5 bytes of block 2
 *                             docs:/\001\377
 *                             hard      with src/hard2: blocks 3, 4, and user.hard
 *                             readme    with user.note
 *                             src/hard2  src/lib/deep.c  src/main.c
 *                             sym       a symlink
 *   snapshot two, clone work  the same, but readme holds "changed"
 *   project /p                no root, value "kept"
 */
#pragma once

#include "cowfs/store/batch.h"
#include "cowfs/store/ref.h"
#include "cowfs/store/root.h"
#include "cowfs/store/store.h"
#include "cowfs/store/tree.h"
#include "cowfs/store/upkeep/check.h"
#include "cowfs/store/upkeep/gc.h"
#include "tests/lib/test.h"

#define STOCK_ODD_NAME "\001\377"

struct store *stock_open(const char *path, enum store_mode mode);
struct batch *stock_begin(struct store *s);
void stock_commit(struct batch *b);
struct object_id stock_put(struct batch *b, enum object_kind kind, const void *data, size_t len);
struct object_id stock_put_text(struct batch *b, const char *text); /* a chunk */

/* A root with one file "file" that holds the text: a chunk, a directory, a root. */
struct object_id stock_put_root(struct batch *b, const char *text);

void stock_name(struct batch *b, enum ref_kind kind, const char *name, const struct object_id *root,
		enum ref_mode mode);

/* One batch of its own: stock_put_root() and a snapshot of this name, new or not. */
struct object_id stock_snapshot(struct store *s, const char *name, const char *text);
void stock_drop(struct store *s, const char *name);

bool stock_has_snapshot(struct store *s, const char *name);

/* Are the text, its directory and its root all there and what they should be? */
bool stock_root_is_whole(struct store *s, const struct object_id *root, const char *text);

uint8_t *stock_block(unsigned n);                /* owned by the caller */
void stock_noise(uint8_t *block, uint64_t seed); /* CHUNK_SIZE_MAX bytes that do not compress */
void stock_fill(struct store *s);

/*
 * As little as has a row of every sort: snapshot "s" with the files "big", twice block 1,
 * and "small" with user.note; tag "t" without a root and with the value "v".
 */
void stock_fill_small(struct store *s);

/* The entry at a path of a snapshot of stock_fill(); what it borrows is gone. */
struct tree_entry stock_entry(struct store *s, const char *snapshot, const char *path);
struct object_id stock_root(struct store *s, const char *snapshot);

struct store_sizes stock_sizes(struct store *s);
struct check_report stock_check(struct store *s);
void stock_check_clean(struct store *s); /* nothing was found */
struct gc_progress stock_gc(struct store *s);
uint64_t stock_rows(struct store *s); /* chunks and objects */
