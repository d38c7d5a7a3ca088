#include "base/sha256.h"

#include <nettle/sha2.h>

#include "base/hex.h"
#include "base/le.h"
#include "base/nettle-i.h"

_Static_assert(sizeof(struct sha256_ctx) <= sizeof(struct sha256), "grow struct sha256");

static struct sha256_ctx *state_of(struct sha256 *s)
{
	return (struct sha256_ctx *)s->state;
}

void sha256_begin(struct sha256 *s)
{
	sha256_init(state_of(s));
}

void sha256_add(struct sha256 *s, const void *data, size_t len)
{
	if (len > 0)
		sha256_update(state_of(s), len, data);
}

void sha256_add_u64(struct sha256 *s, uint64_t n)
{
	uint8_t bytes[8];

	le64_store(bytes, n);
	sha256_add(s, bytes, sizeof(bytes));
}

void sha256_add_text(struct sha256 *s, const char *text, size_t len)
{
	sha256_add_u64(s, len);
	sha256_add(s, text, len);
}

void sha256_end(struct sha256 *s, uint8_t digest[SHA256_SIZE])
{
	NETTLE_END(sha256_digest, state_of(s), digest, SHA256_SIZE);
}

char *sha256_end_hex(struct sha256 *s, char hex[SHA256_HEX_SIZE])
{
	uint8_t digest[SHA256_SIZE];

	sha256_end(s, digest);
	return hex_encode(digest, sizeof(digest), hex);
}

void sha256_of(const void *data, size_t len, uint8_t digest[SHA256_SIZE])
{
	struct sha256 s;

	sha256_begin(&s);
	sha256_add(&s, data, len);
	sha256_end(&s, digest);
}
