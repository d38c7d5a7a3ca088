#include "remote/pack/digest.h"

#include <errno.h>
#include <string.h>

#include "base/hex.h"

#define PREFIX "sha256:"

char *digest_text(const struct digest *d, char text[DIGEST_TEXT_SIZE])
{
	memcpy(text, PREFIX, sizeof(PREFIX) - 1);
	hex_encode(d->b, sizeof(d->b), text + sizeof(PREFIX) - 1);
	return text;
}

int digest_parse(const char *text, struct digest *ret)
{
	char again[DIGEST_TEXT_SIZE];
	struct digest d;
	int r;

	if (strncmp(text, PREFIX, sizeof(PREFIX) - 1) != 0)
		return -EINVAL;
	text += sizeof(PREFIX) - 1;
	r = hex_decode(text, strlen(text), d.b, sizeof(d.b));
	if (r < 0)
		return r;
	/* A file name is made of it, and upper case would name another. */
	if (strcmp(digest_text(&d, again) + sizeof(PREFIX) - 1, text) != 0)
		return -EINVAL;
	*ret = d;
	return 0;
}

struct digest digest_of(const void *bytes, size_t len)
{
	struct digest d;

	sha256_of(bytes, len, d.b);
	return d;
}

bool digest_equal(const struct digest *a, const struct digest *b)
{
	return memcmp(a->b, b->b, sizeof(a->b)) == 0;
}
