#include "base/sha1-i.h"

bool sha1_take(uint32_t h[5], const uint8_t *data, size_t n)
{
	(void)h;
	(void)data;
	(void)n;
	return false;
}
