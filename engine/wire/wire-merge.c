#include "engine/wire/wire-i.h"

void merge_told_done(struct merge_told *t)
{
	engine_conflicts_free(t->conflicts, t->n_conflicts);
	*t = (struct merge_told){ 0 };
}

void wire_set_merge(struct json j, const struct merge_ask *a)
{
	wire_set_held(json_set_object(j, "base"), &a->base);
	wire_set_held(json_set_object(j, "ours"), &a->ours);
	wire_set_held(json_set_object(j, "theirs"), &a->theirs);
	json_set_text(j, "base_name", a->base_name);
	json_set_text(j, "our_name", a->our_name);
	json_set_text(j, "their_name", a->their_name);
}

int wire_get_merge(struct json j, struct merge_ask *ret)
{
	int r = wire_get_held(json_get_object(j, "base"), &ret->base);

	if (r < 0)
		return r;
	r = wire_get_held(json_get_object(j, "ours"), &ret->ours);
	if (r < 0)
		return r;
	ret->base_name = json_get_text(j, "base_name");
	ret->our_name = json_get_text(j, "our_name");
	ret->their_name = json_get_text(j, "their_name");
	return wire_get_held(json_get_object(j, "theirs"), &ret->theirs);
}

static const struct field wire_merge_told_fields[] = {
	FIELD(FIELD_UINT, struct merge_told, merged),
	FIELD_LIST_OF(FIELD_LIST, struct merge_told, "conflicts", conflicts, n_conflicts,
		      &wire_conflict),
};
const struct fields wire_merge_told = FIELDS(struct merge_told, wire_merge_told_fields);
