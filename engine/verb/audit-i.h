/*
 * audit-i.h - the parts of an audit: chains of lines (audit-log.c), events about runs
 * (audit-runs.c), changes and firings (audit-records.c), and signatures (audit-signature.c).
 */
#pragma once

#include "base/json.h"
#include "engine/api/audit.h"
#include "engine/find/engine-i.h"

/* What is wrong. */
struct audit_problem {
	char *kind, *name, *problem; /* owned */
};

struct auditing {
	struct engine *engine;
	struct audit_problem *problems; /* owned; told at the end, when no lock is held any more */
	size_t n_problems, cap;
	struct engine_audit *result;
	const char **heads; /* owned; of borrowed digests */
	size_t n_heads;
	bool *found; /* owned; for each head */
};

NODISCARD int audit_complain(struct auditing *a, const char *kind, const char *name,
			     const char *problem, struct err *err);

/* A log of event-i.h, whose lines form a chain. */
struct audit_log {
	struct auditing *auditing;
	const char *dir, *noun; /* in the store, and what a line is called */
	/* What a line that can be read says, beyond being part of the chain. */
	int (*line)(struct json j, void *ctx, struct err *err);
	void *ctx;
	uint64_t n, lines; /* the last one; how many */
	char prev[SHA256_HEX_SIZE],
	    before[SHA256_HEX_SIZE]; /* digests of the last line, and the one before */
	bool chained;                /* some line had a digest */
	int fd;                      /* its directory, locked; -1 at first */
};

/*
 * All of it; there may be none.  Until audit_log_done() nobody writes a line, and so nothing changes that
 * has to be told in one first.
 */
NODISCARD int audit_log_check(struct audit_log *l, struct err *err);
void audit_log_done(struct audit_log *l);

/* Records of runs, by the events that tell of their ends and removals. */
struct audit_runs;
struct audit_runs *audit_runs_new(struct auditing *a); /* NULL: out of memory */
void audit_runs_free(struct audit_runs *r);
DEFINE_CLEANUP(struct audit_runs *, audit_runs_free)
int audit_runs_take(struct json event, void *ctx, struct err *err); /* of struct audit_log */
NODISCARD int audit_runs_check(struct audit_runs *r, struct err *err);

/* Changes and firings, by the log of records. */
NODISCARD int audit_records_check(struct auditing *a, struct err *err);

/* 1 and the newest signature of one of the signers; without one, 0 and a problem. */
NODISCARD int audit_signature_find(struct auditing *a, const char *signers,
				   struct engine_audit_signature *ret, struct err *err);
