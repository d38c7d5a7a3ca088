#include "engine/api/watch.h"

const char *engine_then_name(enum engine_then t)
{
	static const char *const names[] = {
		[ENGINE_THEN_REPORT] = "report",
		[ENGINE_THEN_KEEP] = "keep",
		[ENGINE_THEN_SHIP] = "ship",
	};

	return names[t];
}
