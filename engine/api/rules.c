#include "engine/api/rules.h"

#include <stdlib.h>

#include "base/vec.h"

static void engine_rule_done(struct guard_rule *r)
{
	free((char *)(uintptr_t)r->name);
	free((char *)(uintptr_t)r->patterns);
	free((char *)(uintptr_t)r->why);
}

DEFINE_LIST_DONE(engine_rules_done, struct engine_rules, engine_rule_done)
