#include "base/base64.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

int base64_append(struct buf *out, const void *data, size_t len)
{
	const uint8_t *p = data;

	if (len > SIZE_MAX / 2 || buf_reserve(out, (len / 3 + 1) * 4) < 0)
		return -ENOMEM;
	for (size_t n; len > 0; p += n, len -= n) {
		unsigned char *to = out->data + out->len;
		uint32_t v;

		n = len < 3 ? len : 3;
		v = (uint32_t)p[0] << 16 | (n > 1 ? (uint32_t)p[1] << 8 : 0) | (n > 2 ? p[2] : 0);
		to[0] = (unsigned char)digits[v >> 18];
		to[1] = (unsigned char)digits[v >> 12 & 63];
		to[2] = n > 1 ? (unsigned char)digits[v >> 6 & 63] : '=';
		to[3] = n > 2 ? (unsigned char)digits[v & 63] : '=';
		out->len += 4;
	}
	return 0;
}

/* The six bits that a digit stands for, or -1. */
static int digit_value(char c)
{
	const char *at = c ? strchr(digits, c) : NULL;

	return at ? (int)(at - digits) : -1;
}

/* Four characters as up to three bytes: how many, or -EINVAL; only the last group has padding. */
static int decode_group(const char *text, bool last, unsigned char out[3])
{
	const int pads = !last || text[3] != '=' ? 0 : text[2] == '=' ? 2 : 1;
	uint32_t v = 0;

	for (int i = 0; i < 4; i++) {
		const int bits = i < 4 - pads ? digit_value(text[i]) : 0;

		if (bits < 0)
			return -EINVAL;
		v = v << 6 | (uint32_t)bits;
	}
	/* Bits that no byte has: two texts would mean the same. */
	if ((pads == 1 && (v & 0xff)) || (pads == 2 && (v & 0xffff)))
		return -EINVAL;
	out[0] = (unsigned char)(v >> 16);
	out[1] = (unsigned char)(v >> 8);
	out[2] = (unsigned char)v;
	return 3 - pads;
}

int base64_decode(struct buf *out, const char *text, size_t len)
{
	const size_t before = out->len;

	if (len % 4 != 0)
		return -EINVAL;
	if (buf_reserve(out, len / 4 * 3) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < len; i += 4) {
		unsigned char three[3];
		const int n = decode_group(text + i, i + 4 == len, three);

		if (n < 0) {
			out->len = before;
			return n;
		}
		memcpy(out->data + out->len, three, (size_t)n);
		out->len += (size_t)n;
	}
	return 0;
}
