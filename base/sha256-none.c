#include "base/sha256-i.h"

bool sha256_take(uint32_t h[8], const uint8_t *data, size_t n)
{
	(void)h;
	(void)data;
	(void)n;
	return false;
}
