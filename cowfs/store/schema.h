/*
 * schema.h - private to the store: the tables of its two databases, and their version.
 *
 * A database says in its header what it is and which version wrote it. schema.c reads that before
 * anything may write: it refuses another program's database, or a later version, and leaves it as
 * it was.
 */
#pragma once

#include "base/err.h"
#include "cowfs/store/db.h"
#include "cowfs/store/object.h"

#define SCHEMA_VERSION 1

enum schema_file { SCHEMA_META, SCHEMA_CHUNKS };
#define SCHEMA_FILES 2

const char *schema_file_name(enum schema_file f); /* "meta.db", "chunks.db" */

/* What both databases of one store have in common. */
struct schema_identity {
	uint8_t store[16]; /* random; pairs the two files */
	struct object_key key;
};

/*
 * Look at the file's header.  0: a database of ours, of this version or an earlier
 * one.  -ENOENT: no such file.  -EPROTO: a later version.  -EBADMSG: not what it should be.
 *
 * Where a log had to be read too, a connection was opened for it: *ret owns it then, unless
 * `ret` is NULL, and is NULL otherwise.
 */
NODISCARD int schema_probe(const char *path, enum schema_file f, struct db **ret, struct err *err);

/* Make a database at `path`, complete and durable under its name or not there at all. */
NODISCARD int schema_create(const char *path, enum schema_file f,
			    const struct schema_identity *identity, struct err *err);

/* A change of format: what brings a database from version `to` - 1 to `to`. */
struct schema_step {
	int to;
	const char *sql[SCHEMA_FILES]; /* NULL: nothing to do in that file */
};

/*
 * Bring a database to `version` by the steps that it lacks, each in a transaction
 * of its own.  Interrupted, it goes on at the next open.
 */
NODISCARD int schema_migrate(struct db *db, enum schema_file f, const struct schema_step *steps,
			     size_t n_steps, int version, struct err *err);

/* The same with this version's own steps. */
NODISCARD int schema_upgrade(struct db *db, enum schema_file f, struct err *err);

/* Read the identity and verify its checksums. */
NODISCARD int schema_identity(struct db *db, struct schema_identity *ret, struct err *err);
