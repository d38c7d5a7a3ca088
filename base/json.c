#include "base/json.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <string.h>

#include <json-c/json.h>

#include "base/base64.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/hex.h"
#include "base/json-text-i.h"
#include "base/path.h"
#include "base/utf8.h"

struct json json_begin(struct json_doc *doc)
{
	doc->root = json_object_new_object();
	doc->failed = !doc->root;
	return (struct json){ .doc = doc, .node = doc->root };
}

void json_done(struct json_doc *doc)
{
	json_object_put(doc->root);
	*doc = (struct json_doc){ 0 };
}

/* --- placing ---------------------------------------------------------------------------- */

/* Takes `v`; `null` says that NULL is a value and not memory that ran out. */
static void place(struct json j, const char *key, struct json_object *v, bool null)
{
	int rc = -1;

	assert(!j.node || json_object_is_type(j.node, key ? json_type_object : json_type_array));
	if (j.node && (v || null))
		rc =
		    key ? json_object_object_add(j.node, key, v) : json_object_array_add(j.node, v);
	if (rc == 0)
		return;
	json_object_put(v);
	j.doc->failed = true;
}

static struct json place_container(struct json j, const char *key, struct json_object *v)
{
	place(j, key, v, false);
	return (struct json){ .doc = j.doc, .node = j.doc->failed ? NULL : v };
}

void json_set_null(struct json j, const char *key)
{
	place(j, key, NULL, true);
}

void json_set_bool(struct json j, const char *key, bool v)
{
	place(j, key, json_object_new_boolean(v), false);
}

void json_set_int(struct json j, const char *key, int64_t v)
{
	place(j, key, json_object_new_int64(v), false);
}

void json_set_uint(struct json j, const char *key, uint64_t v)
{
	place(j, key, json_object_new_uint64(v), false);
}

void json_set_bool_if(struct json j, const char *key, bool known, bool v)
{
	place(j, key, known ? json_object_new_boolean(v) : NULL, !known);
}

void json_set_int_if(struct json j, const char *key, bool known, int64_t v)
{
	place(j, key, known ? json_object_new_int64(v) : NULL, !known);
}

void json_set_uint_if(struct json j, const char *key, bool known, uint64_t v)
{
	place(j, key, known ? json_object_new_uint64(v) : NULL, !known);
}

void json_set_names(struct json j, const char *key, char *const *names, size_t n)
{
	const struct json array = json_set_array(j, key);

	for (size_t i = 0; i < n; i++)
		json_add_name(array, names[i]);
}

void json_set_double(struct json j, const char *key, double v, int decimals)
{
	char digits[64];

	snprintf(digits, sizeof(digits), "%.*f", decimals, v);
	place(j, key, json_object_new_double_s(v, digits), false);
}

void json_set_exact(struct json j, const char *key, double v)
{
	char digits[64];

	if (!isfinite(v)) {
		json_set_null(j, key);
		return;
	}
	snprintf(digits, sizeof(digits), "%.17g", v);
	place(j, key, json_object_new_double_s(v, digits), false);
}

struct json json_set_object(struct json j, const char *key)
{
	return place_container(j, key, json_object_new_object());
}

struct json json_set_array(struct json j, const char *key)
{
	return place_container(j, key, json_object_new_array());
}

void json_set_value(struct json j, const char *key, struct json from, const char *from_key)
{
	struct json_object *v = NULL;

	if (from.node && json_object_object_get_ex(from.node, from_key, &v))
		place(j, key, json_object_get(v), true);
}

void json_set_root(struct json j, const char *key, const struct json_doc *doc)
{
	place(j, key, json_object_get(doc->root), false);
}

bool json_set_parsed(struct json j, const char *key, const char *text, size_t len)
{
	struct json_object *v = NULL;

	if (json_text_parse(text, len, &v, NULL) < 0)
		return false;
	place(j, key, v, true);
	return true;
}

struct json json_add_object(struct json j)
{
	return place_container(j, NULL, json_object_new_object());
}

/* --- strings ---------------------------------------------------------------------------- */

static struct json_object *new_string(const char *s, size_t len)
{
	return len <= INT_MAX ? json_object_new_string_len(s, (int)len) : NULL;
}

static size_t valid_prefix(const char *s, size_t len)
{
	size_t at = 0, n;

	while (at < len && (n = utf8_valid(s + at, len - at)) > 0)
		at += n;
	return at;
}

static struct json_object *new_text(const char *s, size_t len)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	char escaped[5] = "\\x";
	size_t n;

	if (valid_prefix(s, len) == len)
		return new_string(s, len);
	while (len > 0) {
		n = valid_prefix(s, len);
		if (buf_append(&text, s, n) < 0)
			return NULL;
		s += n;
		len -= n;
		if (len == 0)
			break;
		hex_encode(s, 1, escaped + 2);
		if (buf_append_str(&text, escaped) < 0)
			return NULL;
		s++;
		len--;
	}
	return new_string((const char *)text.data, text.len);
}

static struct json_object *new_name(const char *s, size_t len)
{
	CLEANUP(buf_done) struct buf shown = BUF_INIT;

	if (path_append_escaped(&shown, s, len) < 0)
		return NULL;
	return new_string(shown.len > 0 ? (const char *)shown.data : "", shown.len);
}

static struct json_object *new_raw(const void *data, size_t len)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT;

	if (base64_append(&text, data, len) < 0)
		return NULL;
	return new_string(text.data ? (const char *)text.data : "", text.len);
}

void json_set_text_len(struct json j, const char *key, const char *s, size_t len)
{
	place(j, key, new_text(s, len), false);
}

void json_set_text(struct json j, const char *key, const char *s)
{
	place(j, key, s ? new_text(s, strlen(s)) : NULL, !s);
}

void json_set_name(struct json j, const char *key, const char *s)
{
	place(j, key, s ? new_name(s, strlen(s)) : NULL, !s);
}

void json_set_raw(struct json j, const char *key, const void *data, size_t len)
{
	place(j, key, new_raw(data, len), false);
}

void json_add_text_len(struct json j, const char *s, size_t len)
{
	place(j, NULL, new_text(s, len), false);
}

void json_add_text(struct json j, const char *s)
{
	place(j, NULL, new_text(s, strlen(s)), false);
}

void json_add_name(struct json j, const char *s)
{
	place(j, NULL, new_name(s, strlen(s)), false);
}

static const char *as_text(const struct json_doc *doc, size_t *ret_len)
{
	if (doc->failed)
		return NULL;
	return json_object_to_json_string_length(
	    doc->root, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE, ret_len);
}

int json_print(const struct json_doc *doc, FILE *out, struct err *err)
{
	size_t len = 0;
	const char *text = as_text(doc, &len);

	if (!text)
		return err_nomem(err);
	if (fwrite(text, 1, len, out) != len || fputc('\n', out) == EOF)
		return err_sys(err, "writing JSON");
	return 0;
}

const char *json_text_of(struct json j)
{
	return j.node ? json_object_to_json_string_ext(j.node, JSON_C_TO_STRING_PLAIN |
								   JSON_C_TO_STRING_NOSLASHESCAPE)
		      : NULL;
}

int json_append(const struct json_doc *doc, struct buf *out, struct err *err)
{
	size_t len = 0;
	const char *text = as_text(doc, &len);
	char *to = text ? buf_extend(out, len + 1) : NULL;

	if (!to)
		return err_nomem(err);
	memcpy(to, text, len);
	to[len] = '\n';
	return 0;
}
