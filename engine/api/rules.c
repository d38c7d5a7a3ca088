#include "engine/api/rules.h"

#include <stdlib.h>

static void engine_rule_done(struct guard_rule *r)
{
	free((char *)(uintptr_t)r->name);
	free((char *)(uintptr_t)r->patterns);
	free((char *)(uintptr_t)r->why);
}

void engine_rules_done(struct engine_rules *r)
{
	for (size_t i = 0; i < r->n; i++)
		engine_rule_done(&r->list[i]);
	free(r->list);
	*r = (struct engine_rules){ 0 };
}
