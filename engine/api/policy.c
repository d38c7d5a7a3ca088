#include "engine/api/policy.h"

const char *engine_authority_name(enum engine_authority a)
{
	static const char *const names[] = { "land", "approve", "refuse" };

	return names[a];
}
