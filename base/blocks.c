#include "base/blocks.h"

#include <string.h>

void blocks_add(struct blocks *b, const void *data, size_t len, blocks_fn take, void *digest)
{
	const uint8_t *p = data;
	const size_t waiting = b->len % sizeof(b->block);
	const size_t missing = sizeof(b->block) - waiting;
	size_t whole;

	if (len == 0)
		return;
	b->len += len;
	if (waiting > 0) {
		const size_t n = len < missing ? len : missing;

		memcpy(b->block + waiting, p, n);
		if (n < missing)
			return;
		take(digest, b->block, 1);
		p += n;
		len -= n;
	}
	whole = len / sizeof(b->block);
	if (whole > 0)
		take(digest, p, whole);
	if (len % sizeof(b->block) > 0)
		memcpy(b->block, p + whole * sizeof(b->block), len % sizeof(b->block));
}

void blocks_end(struct blocks *b, blocks_fn take, void *digest)
{
	static const uint8_t pad[64] = { 0x80 };
	const size_t waiting = b->len % sizeof(b->block);
	const uint64_t bits = b->len * 8;
	uint8_t length[8];

	for (int i = 0; i < 8; i++)
		length[i] = (uint8_t)(bits >> (56 - 8 * i));
	blocks_add(b, pad, waiting < 56 ? 56 - waiting : 120 - waiting, take, digest);
	blocks_add(b, length, sizeof(length), take, digest);
}
