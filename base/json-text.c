/*
 * json-c gets ASCII only. Where char is signed, its release 0.18 takes every byte of a character
 * beyond ASCII for a control character, and refuses the text if it is strict (x86_64; its `c <=
 * 0x1f`). JSON can write each such character as \uXXXX, which all releases read. The conversion
 * also checks that the UTF-8 is valid.
 */
#include "base/json-text-i.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include <json-c/json.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/utf8.h"
#include "base/vec.h"

#define LAST_OF_ONE_UNIT 0xffffU /* later characters take two of UTF-16, and two escapes */
#define ESCAPE_LEN       6U      /* of \uXXXX */

DEFINE_CLEANUP(struct json_tokener *, json_tokener_free)

static int refuse(struct err *err, size_t at, const char *why)
{
	return err_set(err, -EINVAL, "JSON at byte %zu: %s", at, why);
}

static int append_escaped(struct buf *out, uint32_t c)
{
	if (c <= LAST_OF_ONE_UNIT)
		return buf_printf(out, "\\u%04x", c);
	c -= LAST_OF_ONE_UNIT + 1;
	return buf_printf(out, "\\u%04x\\u%04x", 0xd800 + (c >> 10), 0xdc00 + (c & 0x3ff));
}

/* The same text in ASCII. */
static int escape(const char *text, size_t len, struct buf *out, struct err *err)
{
	bool after_backslash = false;
	uint32_t c = 0;
	size_t n;
	int r;

	for (size_t at = 0; at < len; at += n) {
		n = utf8_decode(text + at, len - at, &c);
		if (n == 0)
			return refuse(err, at, "invalid utf-8 string");
		/* No escape begins like this; an escaped character there would make it one. */
		if (n > 1 && after_backslash)
			return refuse(err, at, "invalid string sequence");
		r = n > 1 ? append_escaped(out, c) : buf_append(out, text + at, 1);
		if (r < 0)
			return err_nomem(err);
		after_backslash = c == '\\' && !after_backslash;
	}
	return 0;
}

/* Where in the text is what escape() put at `place`? */
static size_t place_before_escape(const char *text, size_t len, size_t place)
{
	size_t at = 0, there = 0, n;
	uint32_t c = 0;

	while (at < len && there < place) {
		n = utf8_decode(text + at, len - at, &c);
		there += n == 1 ? 1 : c <= LAST_OF_ONE_UNIT ? ESCAPE_LEN : 2 * ESCAPE_LEN;
		at += n;
	}
	return at;
}

/* -EINVAL if it is not one value, with how far it is and why it is none. */
static int tokenize(const char *ascii, size_t len, struct json_object **ret, size_t *ret_place,
		    const char **ret_why)
{
	CLEANUP(json_tokener_free_p) struct json_tokener *tok = json_tokener_new();
	struct json_object *value;
	enum json_tokener_error rc;

	if (!tok)
		return -ENOMEM;
	json_tokener_set_flags(tok, JSON_TOKENER_STRICT);
	value = json_tokener_parse_ex(tok, ascii, (int)len);
	rc = json_tokener_get_error(tok);
	*ret_place = json_tokener_get_parse_end(tok);
	if (rc == json_tokener_success && *ret_place == len) {
		*ret = value;
		return 0;
	}
	json_object_put(value);
	if (rc == json_tokener_continue)
		*ret_why = "it ends too early";
	else if (rc == json_tokener_success)
		*ret_why = "something follows its end";
	else
		*ret_why = json_tokener_error_desc(rc);
	return -EINVAL;
}

int json_text_parse(const char *text, size_t len, struct json_object **ret, struct err *err)
{
	CLEANUP(buf_done) struct buf ascii = BUF_INIT;
	bool plain = VEC_ALL(it, text, len, (unsigned char)*it < 0x80);
	const char *why = NULL;
	size_t place = 0;
	int r;

	if (!plain) {
		r = escape(text, len, &ascii, err);
		if (r < 0)
			return r;
	}
	if (len > INT_MAX || ascii.len > INT_MAX)
		return err_set(err, -EINVAL, "JSON of %zu bytes is too long", len);
	r = tokenize(plain ? text : (const char *)ascii.data, plain ? len : ascii.len, ret, &place,
		     &why);
	if (r == -ENOMEM)
		return err_nomem(err);
	if (r < 0)
		return refuse(err, plain ? place : place_before_escape(text, len, place), why);
	return 0;
}
