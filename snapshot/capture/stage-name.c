#include "snapshot/capture/stage-name.h"

#include <string.h>

bool stage_is_id(const char *name)
{
	return strlen(name) == STAGE_ID_SIZE - 1 &&
	       strspn(name, "0123456789abcdef") == STAGE_ID_SIZE - 1;
}

bool stage_is_name(const char *name)
{
	const size_t len = sizeof(STAGE_NAME_PREFIX) - 1;

	return strncmp(name, STAGE_NAME_PREFIX, len) == 0 && stage_is_id(name + len);
}
