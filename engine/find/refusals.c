#include "engine/find/refusals-i.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"

bool refusal_is_whole(const struct engine_refusal *r)
{
	return r->kind && r->what && r->rule && r->flag && r->message;
}

int refusals_keep(struct engine_refusals *r, struct engine_refusal *one)
{
	if (!refusal_is_whole(one) || !VEC_ONE_MORE(r->list, r->n)) {
		engine_refusal_done(one);
		return -ENOMEM;
	}
	r->list[r->n++] = *one;
	return 0;
}

void refusals_set(struct json j, const struct engine_refusals *r)
{
	const struct json list = json_set_array(j, "refusals");

	for (size_t i = 0; i < r->n; i++) {
		const struct json one = json_add_object(list);

		json_set_text(one, "kind", r->list[i].kind);
		json_set_text(one, "what", r->list[i].what);
		json_set_text(one, "rule", r->list[i].rule);
		json_set_text(one, "flag", r->list[i].flag);
		json_set_text(one, "message", r->list[i].message);
		json_set_uint(one, "count", r->list[i].count);
	}
	json_set_uint(j, "refusals_more", r->more);
}

static char *get(struct json j, const char *key)
{
	const char *text = json_get_text(j, key);

	return text ? strdup(text) : NULL;
}

int refusals_get(struct json j, struct engine_refusals *ret)
{
	struct json list;
	int r = 0;

	/* Older records have no refusals. */
	if (!json_has(j, "refusals"))
		return 0;
	list = json_get_array(j, "refusals");
	for (size_t i = 0; r == 0 && i < json_length(list); i++) {
		const struct json at = json_at_object(list, i);
		struct engine_refusal one = {
			.kind = get(at, "kind"),
			.what = get(at, "what"),
			.rule = get(at, "rule"),
			.flag = get(at, "flag"),
			.message = get(at, "message"),
			.count = json_get_uint(at, "count"),
		};

		r = refusals_keep(ret, &one);
	}
	ret->more = json_get_uint(j, "refusals_more");
	return r;
}
