#include "base/fields.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"

_Static_assert(offsetof(struct strlist, list) == 0, "FIELD_STRINGS() gives the place of the list");

/* --- members ---------------------------------------------------------------------------- */

static uint64_t load_uint(const struct field *f, const char *at)
{
	uint64_t wide;
	uint32_t narrow;
	uint16_t narrower;

	switch (f->size) {
	case sizeof(narrower):
		memcpy(&narrower, at, sizeof(narrower));
		return narrower;
	case sizeof(narrow):
		memcpy(&narrow, at, sizeof(narrow));
		return narrow;
	default:
		memcpy(&wide, at, sizeof(wide));
		return wide;
	}
}

static void store_uint(const struct field *f, char *at, uint64_t v)
{
	const uint32_t narrow = v > UINT32_MAX ? UINT32_MAX : (uint32_t)v;
	const uint16_t narrower = v > UINT16_MAX ? UINT16_MAX : (uint16_t)v;

	if (f->size == sizeof(narrower))
		memcpy(at, &narrower, sizeof(narrower));
	else if (f->size == sizeof(narrow))
		memcpy(at, &narrow, sizeof(narrow));
	else
		memcpy(at, &v, sizeof(v));
}

static int64_t load_int(const struct field *f, const char *at)
{
	int64_t wide;
	int32_t narrow;

	if (f->size == sizeof(narrow)) {
		memcpy(&narrow, at, sizeof(narrow));
		return narrow;
	}
	memcpy(&wide, at, sizeof(wide));
	return wide;
}

static void store_int(const struct field *f, char *at, int64_t v)
{
	const int32_t narrow = v > INT32_MAX ? INT32_MAX : v < INT32_MIN ? INT32_MIN : (int32_t)v;

	if (f->size == sizeof(narrow))
		memcpy(at, &narrow, sizeof(narrow));
	else
		memcpy(at, &v, sizeof(v));
}

/* Members that are pointers have types of their own, so they are copied as bytes. */
static void *load_pointer(const char *at)
{
	void *p;

	memcpy(&p, at, sizeof(p));
	return p;
}

static void store_pointer(char *at, const void *p)
{
	memcpy(at, &p, sizeof(p));
}

static size_t load_count(const struct field *f, const char *s)
{
	size_t n;

	memcpy(&n, s + f->count_at, sizeof(n));
	return n;
}

static void store_count(const struct field *f, char *s, size_t n)
{
	memcpy(s + f->count_at, &n, sizeof(n));
}

static enum field_kind kind_of(const struct field *f)
{
	return (enum field_kind)(f->kind & ~FIELD_LATER);
}

/* --- saying ----------------------------------------------------------------------------- */

static void set_list(struct json j, const struct field *f, const char *s)
{
	const char *at = s + f->at;
	const void *list = kind_of(f) == FIELD_ARRAY ? at : load_pointer(at);

	if (f->of)
		fields_set_list(j, f->key, f->of, list, load_count(f, s));
	else
		json_set_names(j, f->key, list, load_count(f, s));
}

static void set_field(struct json j, const struct field *f, const char *s)
{
	const char *at = s + f->at;
	const char letter[2] = { *at, '\0' };

	switch (kind_of(f)) {
	case FIELD_BOOL:
		json_set_bool(j, f->key, *(const bool *)at);
		break;
	case FIELD_INT:
		json_set_int(j, f->key, load_int(f, at));
		break;
	case FIELD_UINT:
		json_set_uint(j, f->key, load_uint(f, at));
		break;
	case FIELD_DOUBLE:
		json_set_exact(j, f->key, *(const double *)at);
		break;
	case FIELD_CHAR:
		json_set_text(j, f->key, letter);
		break;
	case FIELD_ID:
		json_set_text(j, f->key, *at != '\0' ? at : NULL);
		break;
	case FIELD_CHARS:
		json_set_text(j, f->key, at);
		break;
	case FIELD_NAME:
	case FIELD_NAME_OR_NULL:
		json_set_name(j, f->key, load_pointer(at));
		break;
	case FIELD_TEXT:
	case FIELD_TEXT_OR_NULL:
	case FIELD_WORD:
		json_set_text(j, f->key, load_pointer(at));
		break;
	case FIELD_OBJECT:
		fields_set(json_set_object(j, f->key), f->of, at);
		break;
	case FIELD_LIST:
	case FIELD_ARRAY:
	case FIELD_NAMES:
	case FIELD_STRLIST:
		set_list(j, f, s);
		break;
	case FIELD_OTHER:
		f->codec->set(j, f->key, at);
		break;
	}
}

void fields_set(struct json j, const struct fields *f, const void *from)
{
	for (size_t i = 0; i < f->n; i++)
		set_field(j, &f->list[i], from);
}

void fields_set_list(struct json j, const char *key, const struct fields *f, const void *list,
		     size_t n)
{
	const struct json array = json_set_array(j, key);

	for (size_t i = 0; i < n; i++)
		fields_set(json_add_object(array), f, (const char *)list + i * f->size);
}

/* --- reading ---------------------------------------------------------------------------- */

static int get_list(struct json j, const struct field *f, char *s)
{
	const bool inside = kind_of(f) == FIELD_ARRAY;
	const size_t size = f->of ? f->of->size : sizeof(char *);
	struct json array = json_get_array(j, f->key);
	size_t n = json_length(array);
	char *list = inside ? s + f->at : NULL;
	int r = 0;

	if (inside) {
		n = n < f->size / size ? n : f->size / size;
	} else {
		list = n > 0 ? calloc(vec_room(n), size) : NULL; /* it may be grown */
		if (n > 0 && !list)
			return -ENOMEM;
		store_pointer(s + f->at, list);
	}
	for (size_t i = 0; i < n && r >= 0; i++) {
		if (f->of)
			r = fields_get(json_at_object(array, i), f->of, list + i * size);
		else
			store_pointer(list + i * size, json_at_name(array, i));
		store_count(f, s, i + 1);
	}
	return r;
}

static int get_text(char *at, const char *text)
{
	char *copy = text ? strdup(text) : NULL;

	store_pointer(at, copy);
	return text && !copy ? -ENOMEM : 0;
}

static int get_chars(const struct field *f, char *at, const char *text)
{
	snprintf(at, f->size, "%s", text ? text : "");
	return 0;
}

static int get_number(struct json j, const struct field *f, char *at)
{
	if (kind_of(f) == FIELD_INT)
		store_int(f, at, json_get_int(j, f->key));
	else if (kind_of(f) == FIELD_UINT)
		store_uint(f, at, json_get_uint(j, f->key));
	else
		*(double *)at = json_has(j, f->key) ? json_get_double(j, f->key) : 0;
	return 0;
}

static int get_field(struct json j, const struct field *f, char *s)
{
	char *at = s + f->at;
	const char *text;

	switch (kind_of(f)) {
	case FIELD_BOOL:
		*(bool *)at = json_get_bool(j, f->key);
		return 0;
	case FIELD_INT:
	case FIELD_UINT:
	case FIELD_DOUBLE:
		return get_number(j, f, at);
	case FIELD_CHAR:
		text = json_get_text(j, f->key);
		*at = text ? text[0] : '?';
		return 0;
	case FIELD_ID:
		return get_chars(f, at, json_get_text_or_null(j, f->key));
	case FIELD_CHARS:
		return get_chars(f, at, json_get_text(j, f->key));
	case FIELD_NAME:
		store_pointer(at, json_get_name(j, f->key));
		return 0;
	case FIELD_NAME_OR_NULL:
		store_pointer(at, json_get_name_or_null(j, f->key));
		return 0;
	case FIELD_TEXT:
		return get_text(at, json_get_text(j, f->key));
	case FIELD_TEXT_OR_NULL:
		return get_text(at, json_get_text_or_null(j, f->key));
	case FIELD_WORD:
		store_pointer(at, f->word(json_get_text(j, f->key)));
		return 0;
	case FIELD_OBJECT:
		return fields_get(json_get_object(j, f->key), f->of, at);
	case FIELD_LIST:
	case FIELD_ARRAY:
	case FIELD_NAMES:
		return get_list(j, f, s);
	case FIELD_STRLIST:
		return json_get_names(j, f->key, (struct strlist *)at);
	case FIELD_OTHER:
		return f->codec->get(j, f->key, at);
	}
	return 0;
}

int fields_get(struct json j, const struct fields *f, void *to)
{
	int r = 0;

	for (size_t i = 0; i < f->n && r >= 0; i++)
		if (!(f->list[i].kind & FIELD_LATER) || json_has(j, f->list[i].key))
			r = get_field(j, &f->list[i], to);
	return r;
}

int fields_read(struct json j, const struct fields *f, void *to, struct err *err)
{
	return fields_get(j, f, to) < 0 ? err_nomem(err) : json_end(j.doc, err);
}

/* --- freeing ---------------------------------------------------------------------------- */

static void free_list(const struct field *f, char *s)
{
	const bool inside = kind_of(f) == FIELD_ARRAY;
	char *list = inside ? s + f->at : load_pointer(s + f->at);
	const size_t n = load_count(f, s);

	for (size_t i = 0; i < n; i++)
		if (f->of)
			fields_done(f->of, list + i * f->of->size);
		else
			free(load_pointer(list + i * sizeof(char *)));
	store_count(f, s, 0);
	if (inside)
		return;
	free(list);
	store_pointer(s + f->at, NULL);
}

void fields_done(const struct fields *fields, void *s)
{
	for (size_t i = 0; i < fields->n; i++) {
		const struct field *f = &fields->list[i];
		char *at = (char *)s + f->at;

		switch (kind_of(f)) {
		case FIELD_NAME:
		case FIELD_NAME_OR_NULL:
		case FIELD_TEXT:
		case FIELD_TEXT_OR_NULL:
			free(load_pointer(at));
			store_pointer(at, NULL);
			break;
		case FIELD_OBJECT:
			fields_done(f->of, at);
			break;
		case FIELD_LIST:
		case FIELD_ARRAY:
		case FIELD_NAMES:
			free_list(f, s);
			break;
		case FIELD_STRLIST:
			strlist_done((struct strlist *)at);
			break;
		case FIELD_OTHER:
			f->codec->done(at);
			break;
		case FIELD_BOOL:
		case FIELD_INT:
		case FIELD_UINT:
		case FIELD_DOUBLE:
		case FIELD_CHAR:
		case FIELD_ID:
		case FIELD_CHARS:
		case FIELD_WORD:
			break;
		}
	}
}
