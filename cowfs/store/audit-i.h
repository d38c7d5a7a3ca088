/*
 * audit-i.h - private to the store: the transaction that writes a receipt also adds a link to the
 * chain.
 */
#pragma once

#include "cowfs/store/audit.h"
#include "cowfs/store/db.h"

#define AUDIT_NAME_SIZE  17
#define AUDIT_NUMBER_MAX (UINT64_C(1) << 62)

/* Of an entry's name; 0 if it is none, as no entry has that number. */
uint64_t audit_number(const char *name, size_t len);

/* What an entry says of the value of its subject, and the digest that the next entry has. */
void audit_sum(const struct ref *ref, char hex[SHA256_HEX_SIZE]);
void audit_digest(const struct audit *a, char hex[SHA256_HEX_SIZE]);

/* Inside the caller's transaction. */
NODISCARD int audit_append(struct db *meta, const struct ref *subject, bool gone, struct err *err);
