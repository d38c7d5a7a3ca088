#include "engine/policy/risk-i.h"

#include <stdlib.h>
#include <string.h>

#include "base/attr.h"
#include "base/vec.h"

#define LARGE_FILES        20
#define LARGE_LINES        500
#define VERY_LARGE_LINES   5000
#define DELETES_MANY_FILES 10
#define LARGE_BYTES        ((uint64_t)1 << 20)
#define VERY_LARGE_BYTES   ((uint64_t)64 << 20)

static const struct {
	enum engine_risk risk;
	const char *name, *why;
} rules[] = {
	[RISK_HELD] = { ENGINE_RISK_HIGH, NULL, NULL },
	[RISK_WARNED] = { ENGINE_RISK_MEDIUM, NULL, NULL },
	[RISK_SECRET] = { ENGINE_RISK_HIGH, "secret", "it may hold keys or passwords" },
	[RISK_TESTS_DELETED] = { ENGINE_RISK_HIGH, "tests-deleted",
				 "a check that no longer runs cannot fail" },
	[RISK_REFUSALS] = { ENGINE_RISK_MEDIUM, "refusals",
			    "runs in this clone tried what they were not allowed" },
	[RISK_VERY_LARGE] = { ENGINE_RISK_HIGH, "very-large", "nobody reads so much in one go" },
	[RISK_LARGE] = { ENGINE_RISK_MEDIUM, "large", "it takes long to read" },
	[RISK_DELETES] = { ENGINE_RISK_MEDIUM, "deletes", "it removes many files" },
	[RISK_BINARY] = { ENGINE_RISK_MEDIUM, "binary", "a person cannot read what changed" },
	[RISK_EXECUTABLE] = { ENGINE_RISK_MEDIUM, "executable", "it can be run from now on" },
	[RISK_DEPENDENCIES] = { ENGINE_RISK_MEDIUM, "dependencies",
				"it decides which code of others is used" },
	[RISK_METADATA] = { ENGINE_RISK_MEDIUM, "metadata",
			    "its mode, owner or attributes change, which a diff does not show" },
	[RISK_FAR] = { ENGINE_RISK_MEDIUM, "far",
		       "it is outside of the paths that the change is meant for" },
	[RISK_CONFLICTS] = { ENGINE_RISK_MEDIUM, "conflicts",
			     "the project changed the same lines" },
};

const char *engine_risk_name(enum engine_risk risk)
{
	static const char *const names[] = { "low", "medium", "high" };

	return names[risk];
}

int risk_add(struct engine_facts *f, enum risk_rule rule, const char *name, const char *why,
	     const char *path, struct err *err)
{
	const enum engine_risk risk = rules[rule].risk;
	struct engine_risk_reason *known, one;

	name = name ? name : rules[rule].name;
	why = why ? why : rules[rule].why;
	known =
	    VEC_FIND(it, f->reasons, f->n_reasons, it->risk == risk && strcmp(it->rule, name) == 0);
	if (known) {
		known->paths += path != NULL;
		return 0;
	}
	if (!VEC_ONE_MORE(f->reasons, f->n_reasons))
		return err_nomem(err);
	one = (struct engine_risk_reason){
		.risk = risk,
		.rule = strdup(name),
		.why = strdup(why),
		.path = path ? strdup(path) : NULL,
		.paths = path != NULL,
	};
	f->reasons[f->n_reasons++] = one;
	return one.rule && one.why && (one.path || !path) ? 0 : err_nomem(err);
}

static int judge_totals(struct engine_facts *f, struct err *err)
{
	const uint64_t lines = f->lines_added + f->lines_removed;
	const bool very =
	    f->files > VERY_LARGE_FILES || lines > VERY_LARGE_LINES || f->bytes > VERY_LARGE_BYTES;
	const struct {
		bool is;
		enum risk_rule rule;
	} totals[] = {
		{ very, RISK_VERY_LARGE },
		{ !very &&
		      (f->files > LARGE_FILES || lines > LARGE_LINES || f->bytes > LARGE_BYTES),
		  RISK_LARGE },
		{ f->deleted > DELETES_MANY_FILES, RISK_DELETES },
		{ f->refusals > 0, RISK_REFUSALS },
		{ f->conflicts > 0, RISK_CONFLICTS },
	};
	int r = 0;

	for (size_t i = 0; i < ARRAY_LEN(totals) && r >= 0; i++)
		if (totals[i].is)
			r = risk_add(f, totals[i].rule, NULL, NULL, NULL, err);
	return r;
}

static int by_gravity(const void *a, const void *b)
{
	const struct engine_risk_reason *x = a, *y = b;

	if (x->risk != y->risk)
		return x->risk > y->risk ? -1 : 1;
	return strcmp(x->rule, y->rule);
}

int risk_conclude(struct engine_facts *f, struct err *err)
{
	int r = judge_totals(f, err);

	if (r < 0)
		return r;
	VEC_SORT(f->reasons, f->n_reasons, by_gravity);
	f->risk = f->n_reasons > 0 ? f->reasons[0].risk : ENGINE_RISK_LOW;
	return 0;
}
