#include "engine/find/answers-i.h"

#include <errno.h>
#include <stdio.h>

#include "base/vec.h"

void answers_set(struct json j, const struct engine_answers *a)
{
	const struct json list = json_set_array(j, "answers");

	for (size_t i = 0; i < a->n; i++) {
		const struct engine_answered *one = &a->list[i];
		const struct json at = json_add_object(list);

		json_set_text(at, "id", one->id);
		json_set_text(at, "kind", one->kind);
		json_set_name(at, "what", one->what);
		json_set_bool(at, "allowed", one->allowed);
		json_set_bool(at, "remembered", one->remembered);
		json_set_text(at, "by", one->by);
		json_set_uint(at, "waited_ms", one->waited_ms);
	}
	json_set_uint(j, "unasked", a->unasked);
}

static int get_one(struct json j, struct engine_answers *ret)
{
	const char *id = json_get_text(j, "id"), *by = json_get_text(j, "by");
	struct engine_answered one = {
		.kind = json_get_name(j, "kind"),
		.what = json_get_name(j, "what"),
		.allowed = json_get_bool(j, "allowed"),
		.remembered = json_get_bool(j, "remembered"),
		.by = by ? engine_answered_by(by) : NULL,
		.waited_ms = json_get_uint(j, "waited_ms"),
	};

	snprintf(one.id, sizeof(one.id), "%s", id ? id : "");
	one.by = one.by ? one.by : "end";
	if (!VEC_ONE_MORE(ret->list, ret->n)) {
		free(one.kind);
		free(one.what);
		return -ENOMEM;
	}
	ret->list[ret->n++] = one;
	return 0;
}

int answers_get(struct json j, struct engine_answers *ret)
{
	struct json list;
	int r = 0;

	/* Older records have none. */
	if (!json_has(j, "answers"))
		return 0;
	list = json_get_array(j, "answers");
	for (size_t i = 0; r == 0 && i < json_length(list); i++)
		r = get_one(json_at_object(list, i), ret);
	ret->unasked = json_get_uint(j, "unasked");
	return r;
}
