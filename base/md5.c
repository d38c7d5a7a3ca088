#include "base/md5.h"

#include <nettle/md5.h>

#include "base/nettle-i.h"

void md5(const void *data, size_t len, uint8_t digest[static MD5_SIZE])
{
	struct md5_ctx state;

	md5_init(&state);
	if (len > 0)
		md5_update(&state, len, data);
	NETTLE_END(md5_digest, &state, digest, MD5_SIZE);
}
