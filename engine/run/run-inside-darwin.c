#include "engine/api/run.h"

/* There are no runs here. */
bool engine_is_inside(void)
{
	return false;
}

int engine_inside_snapshot(char id[static ENGINE_ID_SIZE], struct err *err)
{
	return 0;
}
