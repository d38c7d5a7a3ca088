/*
 * policy.h - how risky the changes of a clone are, and what may land without a person.
 *
 * The facts of a change give its risk, with reasons. Rules decide by the facts, the risk and the
 * asker: policy.yaml in the user's configuration, then the project's own '.snap/policy.yaml' (never
 * a clone's). In each file the first rule that fits decides, and of the two answers the stricter
 * one counts, so a project can only narrow what its user allows. If no rule of the user's file
 * fits, a person must approve. docs/reference/policy.md has the syntax.
 */
#pragma once

#include "engine/api/engine.h"
#include "engine/api/promote.h"
#include "engine/api/run.h"

enum engine_risk { ENGINE_RISK_LOW, ENGINE_RISK_MEDIUM, ENGINE_RISK_HIGH };
const char *engine_risk_name(enum engine_risk risk); /* "low", "medium", "high" */

struct engine_risk_reason {
	enum engine_risk risk;
	char *rule;     /* owned; of the guard, the name of its rule */
	char *why;      /* owned */
	char *path;     /* owned; the first that it is about, or NULL */
	uint64_t paths; /* how many */
};

/* What a change is, counted. */
struct engine_facts {
	char *project;                       /* owned; its path */
	uint64_t files, added, deleted;      /* paths */
	uint64_t lines_added, lines_removed; /* of texts */
	uint64_t bytes;                      /* in the files that are new or changed */
	uint64_t binaries;                   /* files that are no text */
	uint64_t executables;                /* files that became executable */
	uint64_t tests_deleted;              /* test files */
	uint64_t held, warned, conflicts;    /* paths, by the guard and by the merge */
	uint64_t refusals;                   /* of all runs in the clone that are on record */
	const char *experiment; /* "won", "tie", "lost", "none": how it did as an arm */
	bool scored;
	double score;
	const char *kind; /* "docs", "test", "lock", "secret", "code", "mixed", "none" */
	enum engine_risk risk;
	struct engine_risk_reason *reasons; /* owned; the gravest first */
	size_t n_reasons;
};

void engine_facts_done(struct engine_facts *f);

struct engine_facts_options {
	const char *clone;          /* NULL: the one that holds the engine's directory */
	const char *ran_in;         /* the clone whose runs' refusals count; NULL: the same */
	const char *ran_state;      /* a snapshot of that one, which counts; NULL: as it is now */
	struct engine_list subject; /* patterns: a path that none names is far from the subject */
	/* A dry run of promoting all of the clone, if the caller has one; NULL: it is made. */
	const struct engine_promotion *promotion;
	bool landed; /* that promotion was no dry run: what it has changed counts */
	struct engine_watch watch;
};

NODISCARD int engine_facts(struct engine *e, const struct engine_facts_options *options,
			   struct engine_facts *ret, struct err *err);

/* The mildest first. */
enum engine_authority { ENGINE_MAY_LAND, ENGINE_MUST_ASK, ENGINE_MAY_NOT };
const char *engine_authority_name(enum engine_authority a); /* "land", "approve", "refuse" */

/* One rule that was looked at. */
struct engine_policy_step {
	char *file;                 /* owned */
	int line;                   /* of the file, from 1; 0: no rule of it fits */
	char *rule;                 /* owned; its name, or NULL */
	enum engine_authority then; /* if it fits */
	bool fits;
	char *because; /* owned; what does not fit, or NULL */
};

struct engine_policy_options {
	struct engine_facts_options facts;
	const char *who;   /* asks: "person", "agent", "watch", "agent:NAME" ...; NULL: "watch" */
	const char *tests; /* "pass", "fail"; NULL: "unknown" */
	int64_t now;       /* in nanoseconds since 1970; 0: the clock's */
};

struct engine_verdict {
	enum engine_authority then;
	struct engine_facts facts;
	struct engine_policy_step *steps; /* owned; as they were looked at */
	size_t n_steps;
	char *
	    *approvers; /* owned, NULL at the end, or NULL: any person who may write the project */
};

void engine_verdict_done(struct engine_verdict *v);

/* The rule that decided; NULL: the default or the guard did. */
const struct engine_policy_step *engine_verdict_step(const struct engine_verdict *v);

/* -EINVAL with "FILE:LINE:COLUMN: why" if a file of rules cannot be understood: nothing may land then. */
NODISCARD int engine_policy_explain(struct engine *e, const struct engine_policy_options *options,
				    struct engine_verdict *ret, struct err *err);
