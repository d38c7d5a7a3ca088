/*
 * record-i.h - records (project, snapshot, tag, clone, receipt) to refs, and back.
 */
#pragma once

#include "base/buf.h"
#include "cowfs/store/record.h"
#include "cowfs/store/ref.h"

/* Room for a struct of any kind. */
union record {
	struct project project;
	struct snapshot snapshot;
	struct tag tag;
	struct clone clone;
	struct receipt receipt;
	struct resolutions resolutions;
	struct artifact artifact;
	struct allowance allowance;
	struct audit audit;
	struct lazy lazy;
	struct hidden hidden;
};

/* A ref made of a struct, and what it points into besides that struct. */
struct record_ref {
	struct ref ref;
	char hex[CATALOG_HEX_SIZE];
	struct buf value;
};

/* `record` is a struct of that kind; *ret begins all zero, and lives no longer than it. */
NODISCARD int record_write(enum ref_kind kind, const void *record, struct record_ref *ret,
			   struct err *err);
void record_ref_done(struct record_ref *r);

/* *ret is a struct of the ref's kind.  -EBADMSG if the ref is none of it. */
NODISCARD int record_read(const struct ref *ref, void *ret, struct err *err);

/* Frees what the struct owns. */
void record_done(enum ref_kind kind, void *record);
