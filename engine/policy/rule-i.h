/*
 * rule-i.h - one rule of policy.yaml: on which conditions a change may land, by whom, and when.
 */
#pragma once

#include "base/strlist.h"
#include "engine/api/policy.h"
#include "engine/policy/gate-i.h"
#include "snapshot/text/ignore.h"

struct rule {
	char *name; /* owned */
	int line;   /* of the file */
	enum engine_authority then;
	struct ignore *paths;     /* owned; every changed path is one of these; NULL: any */
	struct strlist when;      /* gates, all of which hold */
	struct strlist who;       /* one of which asks; none: anybody */
	struct strlist approvers; /* for `then: approve` */
	int from, until;          /* minutes of the local day; equal: any time */
	uint64_t most;            /* promotions of the project in `span_ms` before; 0: any number */
	uint64_t span_ms;
};

struct rule_file {
	char *name; /* owned; as people call it */
	struct rule *list;
	size_t n;
};

void rule_file_done(struct rule_file *f);

#define RULE_FILE "policy.yaml"

/* -EINVAL with "FILE:LINE:COLUMN: why"; a file that is not there has no rules. */
NODISCARD int rule_file_read_user(const char *path, struct rule_file *ret, struct err *err);
NODISCARD int rule_file_read_project(const char *project, struct rule_file *ret, struct err *err);
