/*
 * audit-i.h - private to the store: a link is added to the chain by the transaction that writes its subject.
 */
#pragma once

#include "cowfs/store/audit.h"
#include "cowfs/store/db.h"

/* Inside the caller's transaction. */
NODISCARD int audit_append(struct db *meta, const struct ref *subject, bool gone, struct err *err);
