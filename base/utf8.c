#include "base/utf8.h"

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"

/* One valid sequence (RFC 3629: shortest form, no surrogates, up to U+10FFFF), or 0. */
static size_t decode(const unsigned char *s, size_t len, uint32_t *ret)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	uint32_t c;
	size_t n, i;

	if (len == 0)
		return 0;
	if (s[0] < 0x80) {
		*ret = s[0];
		return 1;
	}
	n = s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : 2;
	if (s[0] < 0xc2 || s[0] > 0xf4 || n > len)
		return 0;
	c = s[0] & (0xffU >> (n + 1));
	for (i = 1; i < n; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (s[i] & 0x3fU);
	}
	if (c < least[n] || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
		return 0;
	*ret = c;
	return n;
}

static bool unsafe(uint32_t c)
{
	return c < 0x20 || (c >= 0x7f && c <= 0x9f) || c == 0x061c ||
	       (c >= 0x200e && c <= 0x200f) || (c >= 0x2028 && c <= 0x202e) ||
	       (c >= 0x2066 && c <= 0x2069);
}

/* Unicode's Default_Ignorable_Code_Point, less those that unsafe() has. */
static bool invisible(uint32_t c)
{
	static const struct {
		uint32_t first, last;
	} ranges[] = {
		{ 0x00ad, 0x00ad },   { 0x034f, 0x034f },   { 0x115f, 0x1160 },
		{ 0x17b4, 0x17b5 },   { 0x180b, 0x180f },   { 0x200b, 0x200d },
		{ 0x2060, 0x206f },   { 0x3164, 0x3164 },   { 0xfe00, 0xfe0f },
		{ 0xfeff, 0xfeff },   { 0xffa0, 0xffa0 },   { 0xfff0, 0xfff8 },
		{ 0x1bca0, 0x1bca3 }, { 0x1d173, 0x1d17a }, { 0xe0000, 0xe0fff },
	};

	return VEC_HAS(it, ranges, ARRAY_LEN(ranges), c >= it->first && c <= it->last);
}

size_t utf8_printable(const char *s, size_t len)
{
	uint32_t c = 0;
	size_t n = decode((const unsigned char *)s, len, &c);

	return n > 0 && !unsafe(c) ? n : 0;
}

size_t utf8_valid(const char *s, size_t len)
{
	uint32_t c = 0;

	return decode((const unsigned char *)s, len, &c);
}

size_t utf8_visible(const char *s, size_t len)
{
	uint32_t c = 0;
	size_t n = decode((const unsigned char *)s, len, &c);

	return n > 0 && !unsafe(c) && !invisible(c) ? n : 0;
}

size_t utf8_decode(const char *s, size_t len, uint32_t *ret)
{
	return decode((const unsigned char *)s, len, ret);
}

bool utf8_is_cut(const char *s, size_t len)
{
	const unsigned char *b = (const unsigned char *)s;
	const size_t whole = len == 0 ? 0 : b[0] >= 0xf0 ? 4 : b[0] >= 0xe0 ? 3 : 2;

	if (len >= whole || b[0] < 0xc2 || b[0] > 0xf4)
		return false;
	for (size_t i = 1; i < len; i++)
		if ((b[i] & 0xc0) != 0x80)
			return false;
	return true;
}
