#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "engine/api/clone.h"
#include "engine/wire/wire-i.h"

/* Each is a string: the status, '*' if it changed in both places, and the path. */
static void set_paths(struct json j, const char *key, const void *member)
{
	const struct engine_paths *paths = member;
	const struct json object = json_set_object(j, key);
	const struct json list = json_set_array(object, "list");

	json_set_bool(object, "truncated", paths->truncated);
	for (size_t i = 0; i < paths->n; i++) {
		const struct engine_path *p = &paths->list[i];
		AUTO_FREE char *text =
		    text_format("%c%c%s", p->status, p->both ? '*' : ' ', p->path);

		/* Without memory there will be none for the answer either. */
		json_add_name(list, text ? text : "");
	}
}

static int get_paths(struct json j, const char *key, void *member)
{
	struct engine_paths *ret = member;
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

		if (!text || strlen(text) < 2) {
			json_refuse(object, "list", "has a path without a status");
			return 0;
		}
		p->status = text[0];
		p->both = text[1] == '*';
		p->path = strdup(text + 2);
		if (!p->path)
			return -ENOMEM;
	}
	return 0;
}

static void free_paths(void *member)
{
	engine_paths_done(member);
}

const struct field_codec wire_paths = { set_paths, get_paths, free_paths };
