#include <assert.h>
#include <errno.h>
#include <string.h>

#include <json-c/json.h>

#include "base/cleanup.h"
#include "base/hex.h"
#include "base/json-text-i.h"
#include "base/json.h"

int json_parse(struct json_doc *doc, const char *text, size_t len, struct json *ret,
	       struct err *err)
{
	struct json_object *root = NULL;
	int r = json_text_parse(text, len, &root, err);

	if (r < 0)
		return r;
	if (!json_object_is_type(root, json_type_object)) {
		json_object_put(root);
		return err_set(err, -EINVAL, "JSON at byte %zu: this is no object", len);
	}
	*doc = (struct json_doc){ .root = root };
	*ret = (struct json){ .doc = doc, .node = root };
	return 0;
}

int json_end(const struct json_doc *doc, struct err *err)
{
	if (doc->wrong.code == 0)
		return 0;
	return err_set(err, doc->wrong.code, "%s", doc->wrong.msg);
}

/* --- finding ---------------------------------------------------------------------------- */

/* What is asked for, for the sentence should it be wrong. */
struct place {
	struct json in;
	const char *key; /* NULL: the element `at` */
	size_t at;
};

static void complain(const struct place *p, int code, const char *what)
{
	if (p->in.doc->wrong.code != 0)
		return;
	if (p->key)
		err_set(&p->in.doc->wrong, code, "'%s' %s", p->key, what);
	else
		err_set(&p->in.doc->wrong, code, "element %zu %s", p->at, what);
}

/* 1 if there is something that is not null. */
static int find_member(const struct place *p, struct json_object **ret)
{
	*ret = NULL;
	if (!p->in.node)
		return 0;
	if (p->key)
		json_object_object_get_ex(p->in.node, p->key, ret);
	else
		*ret = json_object_array_get_idx(p->in.node, p->at);
	return *ret != NULL;
}

static struct json_object *require(const struct place *p, enum json_type type)
{
	static const char *const wanted[] = {
		[json_type_boolean] = "is not true or false", [json_type_int] = "is no number",
		[json_type_object] = "is no object",          [json_type_array] = "is no list",
		[json_type_string] = "is no string",
	};
	struct json_object *v;

	if (!find_member(p, &v)) {
		/* Inside of what is missing everything is; that was said already. */
		if (p->in.node)
			complain(p, -EINVAL, "is missing");
		return NULL;
	}
	if (json_object_is_type(v, type))
		return v;
	complain(p, -EINVAL, wanted[type]);
	return NULL;
}

static struct place member(struct json j, const char *key)
{
	return (struct place){ .in = j, .key = key };
}

void json_refuse(struct json j, const char *key, const char *why)
{
	const struct place p = member(j, key);

	complain(&p, -EINVAL, why);
}

enum json_kind json_kind(struct json j, const char *key)
{
	const struct place p = member(j, key);
	struct json_object *v;

	if (!find_member(&p, &v))
		return JSON_MISSING;
	switch (json_object_get_type(v)) {
	case json_type_boolean:
		return JSON_BOOL;
	case json_type_int:
		return JSON_INT;
	case json_type_double:
		return JSON_DOUBLE;
	case json_type_string:
		return JSON_TEXT;
	case json_type_object:
		return JSON_OBJECT;
	case json_type_array:
		return JSON_ARRAY;
	case json_type_null:
		break;
	}
	return JSON_MISSING;
}

bool json_equal(struct json a, const char *a_key, struct json b, const char *b_key)
{
	const struct place in_a = member(a, a_key), in_b = member(b, b_key);
	struct json_object *one, *other;

	return find_member(&in_a, &one) && find_member(&in_b, &other) &&
	       json_object_equal(one, other) == 1;
}

const char *json_unknown_key(struct json j, bool (*known)(const char *key, const void *ctx),
			     const void *ctx)
{
	if (!j.node)
		return NULL;
	json_object_object_foreach(j.node, key, v)
	{
		(void)v;
		if (!known(key, ctx))
			return key;
	}
	return NULL;
}

bool json_has(struct json j, const char *key)
{
	const struct place p = member(j, key);
	struct json_object *v;

	return find_member(&p, &v);
}

/* --- values ----------------------------------------------------------------------------- */

bool json_get_bool(struct json j, const char *key)
{
	const struct place p = member(j, key);

	return json_object_get_boolean(require(&p, json_type_boolean));
}

/* json-c cuts a number to what fits; one that was cut reads as the limit of the other type. */
int64_t json_get_int(struct json j, const char *key)
{
	const struct place p = member(j, key);
	struct json_object *v = require(&p, json_type_int);
	const int64_t n = json_object_get_int64(v);

	if (n != INT64_MAX || json_object_get_uint64(v) == INT64_MAX)
		return n;
	complain(&p, -EINVAL, "is too large");
	return 0;
}

uint64_t json_get_uint(struct json j, const char *key)
{
	const struct place p = member(j, key);
	struct json_object *v = require(&p, json_type_int);

	if (json_object_get_int64(v) >= 0)
		return json_object_get_uint64(v);
	complain(&p, -EINVAL, "is negative");
	return 0;
}

double json_get_double(struct json j, const char *key)
{
	const struct place p = member(j, key);
	struct json_object *v;

	if (find_member(&p, &v) &&
	    (json_object_is_type(v, json_type_double) || json_object_is_type(v, json_type_int)))
		return json_object_get_double(v);
	if (p.in.node)
		complain(&p, -EINVAL, "is no number");
	return 0;
}

static const char *text_at(const struct place *p)
{
	struct json_object *v = require(p, json_type_string);
	const char *s = v ? json_object_get_string(v) : NULL;

	if (!s || strlen(s) == (size_t)json_object_get_string_len(v))
		return s;
	complain(p, -EINVAL, "has a zero byte in it");
	return NULL;
}

/* Each \xNN becomes its byte; nothing else begins with a backslash. */
static char *name_at(const struct place *p)
{
	const char *s = text_at(p);
	AUTO_FREE char *name = s ? strdup(s) : NULL;
	char *to = name;

	if (s && !name)
		complain(p, -ENOMEM, "finds no memory");
	if (!name)
		return NULL;
	while (*s != '\0') {
		if (*s != '\\') {
			*to++ = *s++;
			continue;
		}
		if (s[1] != 'x' || strlen(s) < 4 || hex_decode(s + 2, 2, to, 1) < 0 ||
		    *to == '\0') {
			complain(p, -EINVAL, "is no name: a backslash begins no byte in it");
			return NULL;
		}
		to++;
		s += 4;
	}
	*to = '\0';
	return TAKE_PTR(name);
}

const char *json_get_text(struct json j, const char *key)
{
	const struct place p = member(j, key);

	return text_at(&p);
}

char *json_get_name(struct json j, const char *key)
{
	const struct place p = member(j, key);

	return name_at(&p);
}

const char *json_get_text_or_null(struct json j, const char *key)
{
	return json_has(j, key) ? json_get_text(j, key) : NULL;
}

char *json_get_name_or_null(struct json j, const char *key)
{
	return json_has(j, key) ? json_get_name(j, key) : NULL;
}

const char *json_text_if(struct json j, const char *key)
{
	return json_kind(j, key) == JSON_TEXT ? json_get_text(j, key) : NULL;
}

/* --- containers ------------------------------------------------------------------------- */

struct json json_get_object(struct json j, const char *key)
{
	const struct place p = member(j, key);

	return (struct json){ .doc = j.doc, .node = require(&p, json_type_object) };
}

struct json json_object_if(struct json j, const char *key)
{
	return json_kind(j, key) == JSON_OBJECT ? json_get_object(j, key)
						: (struct json){ .doc = j.doc };
}

struct json json_get_array(struct json j, const char *key)
{
	const struct place p = member(j, key);

	return (struct json){ .doc = j.doc, .node = require(&p, json_type_array) };
}

size_t json_length(struct json array)
{
	return array.node ? json_object_array_length(array.node) : 0;
}

struct json json_at_object(struct json array, size_t i)
{
	const struct place p = { .in = array, .at = i };

	assert(i < json_length(array));
	return (struct json){ .doc = array.doc, .node = require(&p, json_type_object) };
}

const char *json_at_text(struct json array, size_t i)
{
	const struct place p = { .in = array, .at = i };
	struct json_object *v;

	if (!find_member(&p, &v) || !json_object_is_type(v, json_type_string) ||
	    strlen(json_object_get_string(v)) != (size_t)json_object_get_string_len(v))
		return NULL;
	return json_object_get_string(v);
}

char *json_at_name(struct json array, size_t i)
{
	const struct place p = { .in = array, .at = i };

	assert(i < json_length(array));
	return name_at(&p);
}

int json_get_names(struct json j, const char *key, struct strlist *ret)
{
	const struct json array = json_get_array(j, key);
	int r = 0;

	for (size_t i = 0; i < json_length(array) && r >= 0; i++) {
		char *name = json_at_name(array, i);

		/* json_end() reports what is none. */
		r = name ? strlist_take(ret, name) : 0;
	}
	return r;
}

int json_each_text(struct json j, int (*fn)(const char *key, const char *text, void *ctx),
		   void *ctx)
{
	struct json_object_iterator it, end;
	int r = 0;

	if (!j.node)
		return 0;
	it = json_object_iter_begin(j.node);
	end = json_object_iter_end(j.node);
	for (; r >= 0 && !json_object_iter_equal(&it, &end); json_object_iter_next(&it)) {
		struct json_object *v = json_object_iter_peek_value(&it);

		if (json_object_is_type(v, json_type_string))
			r = fn(json_object_iter_peek_name(&it), json_object_get_string(v), ctx);
	}
	return r < 0 ? r : 0;
}
