#include "base/visible.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"

#define EMOJI_LOOK 0xfe0f

/* "⚠️" is a symbol and how it looks; behind a letter the same selector would hide. */
static bool is_look_of_symbol(uint32_t c, uint32_t before)
{
	return c == EMOJI_LOOK &&
	       ((before >= 0x2190 && before <= 0x2bff) || (before >= 0x1f000 && before <= 0x1faff));
}

static int append_marked(const struct visible *v, const char *text, struct buf *out)
{
	if ((v->on && buf_append_str(out, v->on) < 0) || buf_append_str(out, text) < 0)
		return -ENOMEM;
	return v->off ? buf_append_str(out, v->off) : 0;
}

/* One character or byte that must not reach a terminal; its length. */
static int append_unsafe(struct visible *v, const char *s, size_t len, struct buf *out, size_t *ret)
{
	const unsigned char byte = (unsigned char)*s;
	uint32_t c = 0;
	char text[16];

	*ret = utf8_decode(s, len, &c);
	if (*ret == 1 && (c < 0x20 || c == 0x7f))
		snprintf(text, sizeof(text), "^%c", (char)(c ^ 0x40));
	else if (*ret > 0)
		snprintf(text, sizeof(text), "<U+%04X>", (unsigned)c);
	else
		snprintf(text, sizeof(text), "<%02X>", byte);
	*ret = *ret > 0 ? *ret : 1;
	return append_marked(v, text, out);
}

static size_t passing(struct visible *v, const char *s, size_t len)
{
	uint32_t c = 0;
	size_t n = utf8_decode(s, len, &c);

	if (n == 0 || !(*s == '\n' || *s == '\t' || utf8_visible(s, len) > 0 ||
			is_look_of_symbol(c, v->last)))
		n = 0;
	v->last = c;
	return n;
}

/* Until the end, or until a character is cut off by it. */
static int append_whole(struct visible *v, const char **s, size_t *len, bool ends, struct buf *out)
{
	int r = 0;
	size_t n;

	while (*len > 0 && r >= 0 && (ends || *len >= 4 || !utf8_is_cut(*s, *len))) {
		n = passing(v, *s, *len);
		if (n > 0)
			r = buf_append(out, *s, n);
		else
			r = append_unsafe(v, *s, *len, out, &n);
		*s += n;
		*len -= n;
	}
	return r;
}

/* Complete what was held, a byte at a time. */
static int append_held(struct visible *v, const char **data, size_t *len, struct buf *out)
{
	int r = 0;

	while (v->n_held > 0 && *len > 0 && r >= 0) {
		const char *s = v->held;
		size_t n;

		v->held[v->n_held++] = *(*data)++;
		--*len;
		n = v->n_held;
		r = append_whole(v, &s, &n, false, out);
		memmove(v->held, s, n);
		v->n_held = n;
	}
	return r;
}

int visible_append(struct visible *v, const void *data, size_t len, struct buf *out)
{
	const char *s = data;
	int r = append_held(v, &s, &len, out);

	if (r < 0)
		return r;
	r = append_whole(v, &s, &len, false, out);
	if (r < 0 || len == 0)
		return r;
	memcpy(v->held, s, len);
	v->n_held = len;
	return 0;
}

int visible_end(struct visible *v, struct buf *out)
{
	const char *s = v->held;
	size_t len = v->n_held;
	int r = append_whole(v, &s, &len, true, out);

	v->n_held = 0;
	v->last = 0;
	return r;
}
