/*
 * ref-row-i.h - private to the store: a ref as a row of meta.db, and changes of refs that wait in a
 * batch.
 */
#pragma once

#include "cowfs/store/db.h"
#include "cowfs/store/ref.h"

/* No ref but a row of the same table: a chunk (carry-i.h), its id the name and its bytes the value. */
#define REF_CARRIED ((enum ref_kind)255)

/* --- ref-ops.c ---------------------------------------------------------------------------- */

/* One change of a ref, with copies of all it needs.  Name and value follow the struct. */
struct ref_op {
	struct ref_op *next;
	bool delete;
	enum ref_mode mode;
	struct ref ref;
	char bytes[];
};

NODISCARD int ref_op_new(const struct ref *ref, bool delete, enum ref_mode mode,
			 struct ref_op **ret, struct err *err);
void ref_ops_free(struct ref_op *ops); /* the whole list */

/* Write a list of changes in its order, inside the caller's transaction. */
NODISCARD int ref_ops_apply(struct db *meta, const struct ref_op *ops, struct err *err);

/* --- ref-row.c ---------------------------------------------------------------------------- */

/* "tag 'NAME' WHY", with the name made fit for showing; returns `code`. */
int ref_row_err(struct err *err, int code, const struct ref *ref, const char *why);

/* Write one row, inside the caller's transaction; what its root names is not looked for. */
NODISCARD int ref_row_write(struct db *meta, const struct ref *ref, enum ref_mode mode,
			    struct err *err);

/* The row that a query of name, root, value, sum stands on; borrowed from it. */
NODISCARD int ref_row_read(struct db_query *q, enum ref_kind kind, struct ref *ret,
			   struct err *err);

/* A row that cannot be believed.  What it claims may be damaged too. */
struct ref_damage {
	struct err why;
	int64_t kind;
	char name[REF_NAME_MAX + 1]; /* "" if it cannot be read, or is no text */
	bool rootless;               /* its root can be read, and names no tree */
};

/* Every ref there is, or those of one kind (0: all); a damaged one comes as NULL with what is known. */
typedef int (*ref_scan_fn)(const struct ref *ref, const struct ref_damage *damage, void *ctx,
			   struct err *err);
NODISCARD int ref_scan(struct db *meta, enum ref_kind kind, ref_scan_fn fn, void *ctx,
		       struct err *err);
