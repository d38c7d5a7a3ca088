#include "base/sha1.h"

#include <nettle/sha1.h>

#include "base/nettle-i.h"

_Static_assert(sizeof(struct sha1_ctx) <= sizeof(struct sha1), "grow struct sha1");

static struct sha1_ctx *state_of(struct sha1 *s)
{
	return (struct sha1_ctx *)s->state;
}

void sha1_begin(struct sha1 *s)
{
	sha1_init(state_of(s));
}

void sha1_add(struct sha1 *s, const void *data, size_t len)
{
	if (len > 0)
		sha1_update(state_of(s), len, data);
}

void sha1_end(struct sha1 *s, uint8_t digest[SHA1_SIZE])
{
	NETTLE_END(sha1_digest, state_of(s), digest, SHA1_SIZE);
}
