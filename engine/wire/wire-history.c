#include "engine/api/tag.h"
#include "engine/wire/wire-i.h"

static const struct field wire_snapshot_fields[] = {
	FIELD(FIELD_ID, struct engine_snapshot, id),
	FIELD(FIELD_ID, struct engine_snapshot, parent),
	FIELD(FIELD_ID, struct engine_snapshot, project),
	FIELD(FIELD_NAME_OR_NULL, struct engine_snapshot, clone),
	FIELD(FIELD_NAME_OR_NULL, struct engine_snapshot, part),
	FIELD(FIELD_NAME, struct engine_snapshot, message),
	FIELD(FIELD_NAME_OR_NULL, struct engine_snapshot, meta),
	FIELD(FIELD_INT, struct engine_snapshot, created),
	FIELD(FIELD_UINT, struct engine_snapshot, files),
	FIELD(FIELD_UINT, struct engine_snapshot, bytes),
	FIELD(FIELD_BOOL, struct engine_snapshot, automatic),
	FIELD_LIST_OF(FIELD_NAMES, struct engine_snapshot, "tags", tags, n_tags, NULL),
};
const struct fields wire_snapshot = FIELDS(struct engine_snapshot, wire_snapshot_fields);

static const struct field wire_take_options_fields[] = {
	FIELD_AS(FIELD_NAME_OR_NULL, struct engine_take_options, "project", dir),
	FIELD(FIELD_NAME_OR_NULL, struct engine_take_options, clone),
	FIELD(FIELD_NAME_OR_NULL, struct engine_take_options, message),
	FIELD(FIELD_NAME_OR_NULL, struct engine_take_options, tag),
	FIELD(FIELD_NAME_OR_NULL, struct engine_take_options, meta),
	FIELD(FIELD_NAME_OR_NULL, struct engine_take_options, part),
	FIELD(FIELD_BOOL, struct engine_take_options, skip_unreadable),
	FIELD(FIELD_BOOL, struct engine_take_options, lazy),
	FIELD(FIELD_BOOL, struct engine_take_options, automatic),
	FIELD(FIELD_BOOL, struct engine_take_options, passing),
	FIELD_LIST_OF(FIELD_NAMES, struct engine_take_options, "include", include.items, include.n,
		      NULL),
};
const struct fields wire_take_options =
    FIELDS(struct engine_take_options, wire_take_options_fields);

static const struct field skipped_fields[] = {
	FIELD(FIELD_NAME, struct engine_skipped, path),
	FIELD(FIELD_NAME, struct engine_skipped, why),
};
static const struct fields skipped = FIELDS(struct engine_skipped, skipped_fields);

static const struct field capturing_fields[] = {
	FIELD(FIELD_BOOL, struct engine_capturing, open),
	FIELD(FIELD_UINT, struct engine_capturing, files),
	FIELD(FIELD_UINT, struct engine_capturing, bytes),
	FIELD(FIELD_UINT, struct engine_capturing, done),
	FIELD(FIELD_UINT, struct engine_capturing, done_bytes),
	FIELD(FIELD_UINT, struct engine_capturing, lost),
	FIELD(FIELD_BOOL, struct engine_capturing, remote),
};
const struct fields wire_capturing = FIELDS(struct engine_capturing, capturing_fields);

static const struct field wire_taken_fields[] = {
	FIELD(FIELD_NAME, struct engine_taken, project),
	FIELD(FIELD_BOOL, struct engine_taken, registered),
	FIELD(FIELD_UINT, struct engine_taken, dirs),
	FIELD(FIELD_BOOL, struct engine_taken, compared),
	FIELD(FIELD_UINT, struct engine_taken, added),
	FIELD(FIELD_UINT, struct engine_taken, modified),
	FIELD(FIELD_UINT, struct engine_taken, deleted),
	FIELD(FIELD_UINT, struct engine_taken, elapsed_ms),
	FIELD_LIST_OF(FIELD_LIST, struct engine_taken, "skipped", skipped, n_skipped, &skipped),
	FIELD(FIELD_UINT, struct engine_taken, skipped_more),
	FIELD_LIST_OF(FIELD_NAMES, struct engine_taken, "left_out", left_out, n_left_out, NULL),
	FIELD_OF(struct engine_taken, "snapshot", snapshot, &wire_snapshot),
	FIELD_OF(struct engine_taken, "capturing", capturing, &wire_capturing),
};
const struct fields wire_taken = FIELDS(struct engine_taken, wire_taken_fields);

static const struct field wire_tag_fields[] = {
	FIELD_AS(FIELD_NAME, struct engine_tag, "tag", name),
	FIELD(FIELD_ID, struct engine_tag, snapshot),
};
const struct fields wire_tag = FIELDS(struct engine_tag, wire_tag_fields);
