#include "base/hex.h"

#include <errno.h>

char *hex_encode(const void *data, size_t len, char *out)
{
	static const char digit[] = "0123456789abcdef";
	const unsigned char *b = data;
	size_t i;

	for (i = 0; i < len; i++) {
		out[2 * i] = digit[b[i] >> 4];
		out[2 * i + 1] = digit[b[i] & 15];
	}
	out[2 * len] = '\0';
	return out;
}

static int digit_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

int hex_decode(const char *digits, size_t n_digits, void *out, size_t len)
{
	unsigned char *b = out;
	size_t i;

	if (n_digits % 2 != 0 || n_digits / 2 != len)
		return -EINVAL;
	/* Outputs are written only on success, so look before the first store. */
	for (i = 0; i < n_digits; i++)
		if (digit_value(digits[i]) < 0)
			return -EINVAL;
	for (i = 0; i < len; i++)
		b[i] = (unsigned char)(digit_value(digits[2 * i]) << 4 |
				       digit_value(digits[2 * i + 1]));
	return 0;
}
