#include "engine/wire/wire-i.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void wire_set_short(struct json j, const char *key, const char *s)
{
	json_set_text(j, key, *s != '\0' ? s : NULL);
}

void wire_get_short(struct json j, const char *key, char *to, size_t size)
{
	const char *s = json_get_text_or_null(j, key);

	snprintf(to, size, "%s", s ? s : "");
}

/* Each is a string: the status, '*' if it changed in both places, and the path. */
void wire_set_paths(struct json j, const char *key, const struct engine_paths *paths)
{
	const struct json object = json_set_object(j, key);
	const struct json list = json_set_array(object, "list");

	json_set_bool(object, "truncated", paths->truncated);
	for (size_t i = 0; i < paths->n; i++) {
		const struct engine_path *p = &paths->list[i];
		AUTO_FREE char *text = NULL;

		if (asprintf(&text, "%c%c%s", p->status, p->both ? '*' : ' ', p->path) < 0)
			text = NULL;
		/* Without memory there will be none for the answer either. */
		json_add_name(list, text ? text : "");
	}
}

int wire_get_paths(struct json j, const char *key, struct engine_paths *ret)
{
	const struct json object = json_get_object(j, key);
	const struct json list = json_get_array(object, "list");
	const size_t n = json_length(list);

	ret->truncated = json_get_bool(object, "truncated");
	ret->list = n > 0 ? calloc(n, sizeof(*ret->list)) : NULL;
	if (n > 0 && !ret->list)
		return -ENOMEM;
	for (; ret->n < n; ret->n++) {
		AUTO_FREE char *text = json_at_name(list, ret->n);
		struct engine_path *p = &ret->list[ret->n];

		if (!text || strlen(text) < 2)
			return -EPROTO;
		p->status = text[0];
		p->both = text[1] == '*';
		p->path = strdup(text + 2);
		if (!p->path)
			return -ENOMEM;
	}
	return 0;
}
