/*
 * risk-i.h - the rules by which changes are risky, as data, and the reasons they give.
 */
#pragma once

#include "engine/api/policy.h"

#define VERY_LARGE_FILES 200 /* more of them are of high risk */

enum risk_rule {
	RISK_HELD,   /* by the guard; the reason has the name of its rule */
	RISK_WARNED, /* likewise */
	RISK_SECRET,
	RISK_TESTS_DELETED,
	RISK_REFUSALS,
	RISK_VERY_LARGE,
	RISK_LARGE,
	RISK_DELETES,
	RISK_BINARY,
	RISK_EXECUTABLE,
	RISK_DEPENDENCIES,
	RISK_METADATA,
	RISK_FAR,
	RISK_CONFLICTS,
};

/*
 * One more path (or NULL) for which the rule is a reason.  `name` and `why` of RISK_HELD and
 * RISK_WARNED are the guard's; for all others they are NULL.
 */
NODISCARD int risk_add(struct engine_facts *f, enum risk_rule rule, const char *name,
		       const char *why, const char *path, struct err *err);

/* After all paths: the reasons that the totals give, the gravest first, and the risk of it all. */
NODISCARD int risk_conclude(struct engine_facts *f, struct err *err);
