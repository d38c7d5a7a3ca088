#include <stdlib.h>

#include "engine/wire/wire-i.h"

void stage_done(struct stage *s)
{
	free(s->clone);
	free(s->path);
	free(s->view);
	free(s->project);
	*s = (struct stage){ 0 };
}

void stage_end_done(struct stage_end *s)
{
	engine_paths_done(&s->changed);
	*s = (struct stage_end){ 0 };
}

static const struct field wire_stage_options_fields[] = {
	FIELD(FIELD_TEXT, struct stage_options, run),
	FIELD(FIELD_BOOL, struct stage_options, beside),
	FIELD(FIELD_NAME_OR_NULL, struct stage_options, clone),
	FIELD(FIELD_NAME_OR_NULL, struct stage_options, from),
	FIELD(FIELD_NAME_OR_NULL, struct stage_options, root),
	FIELD(FIELD_BOOL, struct stage_options, lazy),
	FIELD(FIELD_BOOL, struct stage_options, eager),
	FIELD(FIELD_BOOL, struct stage_options, skip_unreadable),
	FIELD(FIELD_NAME_OR_NULL, struct stage_options, part),
	FIELD(FIELD_NAME_OR_NULL, struct stage_options, via),
	FIELD(FIELD_BOOL, struct stage_options, keep),
	FIELD(FIELD_BOOL, struct stage_options, strict),
	FIELD(FIELD_BOOL, struct stage_options, passing),
	FIELD(FIELD_BOOL, struct stage_options, wait),
	FIELD(FIELD_BOOL, struct stage_options, remove),
	FIELD(FIELD_BOOL, struct stage_options, no_snapshot),
	FIELD(FIELD_BOOL, struct stage_options, masks),
	FIELD(FIELD_UINT, struct stage_options, disk),
	FIELD(FIELD_UINT, struct stage_options, inodes),
	FIELD(FIELD_UINT, struct stage_options, ttl_ms),
	FIELD(FIELD_UINT, struct stage_options, first_id),
	FIELD(FIELD_UINT, struct stage_options, ids),
};
const struct fields wire_stage_options = FIELDS(struct stage_options, wire_stage_options_fields);

static const struct field wire_stage_fields[] = {
	FIELD(FIELD_NAME, struct stage, clone),        FIELD(FIELD_NAME, struct stage, path),
	FIELD(FIELD_NAME_OR_NULL, struct stage, view), FIELD(FIELD_NAME, struct stage, project),
	FIELD(FIELD_ID, struct stage, project_id),     FIELD(FIELD_ID, struct stage, before),
	FIELD(FIELD_UINT, struct stage, unread),
};
const struct fields wire_stage = FIELDS(struct stage, wire_stage_fields);

static const struct field wire_stage_end_fields[] = {
	FIELD(FIELD_BOOL, struct stage_end, compared),
	FIELD(FIELD_UINT, struct stage_end, added),
	FIELD(FIELD_UINT, struct stage_end, modified),
	FIELD(FIELD_UINT, struct stage_end, deleted),
	FIELD_BY(struct stage_end, "changed", changed, &wire_paths),
	FIELD(FIELD_BOOL, struct stage_end, full),
	FIELD(FIELD_BOOL, struct stage_end, no_inodes),
	FIELD(FIELD_BOOL, struct stage_end, removed),
};
const struct fields wire_stage_end = FIELDS(struct stage_end, wire_stage_end_fields);
