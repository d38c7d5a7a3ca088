#include "engine/api/rollback.h"
#include "engine/wire/wire-i.h"

static const struct field wire_note_fields[] = {
	FIELD(FIELD_NAME, struct engine_rolled_path, path),
	FIELD(FIELD_CHAR, struct engine_rolled_path, status),
	FIELD(FIELD_TEXT_OR_NULL, struct engine_rolled_path, why),
	FIELD(FIELD_NAME_OR_NULL, struct engine_rolled_path, detail),
};
const struct fields wire_note = FIELDS(struct engine_rolled_path, wire_note_fields);

static const struct field wire_rollback_options_fields[] = {
	FIELD(FIELD_NAME_OR_NULL, struct engine_rollback_options, first),
	FIELD(FIELD_NAME_OR_NULL, struct engine_rollback_options, second),
	FIELD(FIELD_BOOL, struct engine_rollback_options, no_git),
	FIELD(FIELD_BOOL, struct engine_rollback_options, skip_unreadable),
	FIELD(FIELD_BOOL, struct engine_rollback_options, dry_run),
	FIELD(FIELD_BOOL, struct engine_rollback_options, clone_only),
	FIELD(FIELD_BOOL, struct engine_rollback_options, own_only),
	FIELD(FIELD_NAME_OR_NULL, struct engine_rollback_options, since),
	FIELD(FIELD_BOOL, struct engine_rollback_options, remember),
	FIELD(FIELD_NAME_OR_NULL, struct engine_rollback_options, rules),
	FIELD_LIST_OF(FIELD_NAMES, struct engine_rollback_options, "paths", paths.items, paths.n,
		      NULL),
	FIELD_LIST_OF(FIELD_NAMES, struct engine_rollback_options, "allow", allow.items, allow.n,
		      NULL),
};
const struct fields wire_rollback_options =
    FIELDS(struct engine_rollback_options, wire_rollback_options_fields);

static const struct field wire_rolled_fields[] = {
	FIELD(FIELD_NAME_OR_NULL, struct engine_rolled, clone),
	FIELD(FIELD_NAME, struct engine_rolled, project),
	FIELD(FIELD_ID, struct engine_rolled, to),
	FIELD(FIELD_ID, struct engine_rolled, saved),
	FIELD(FIELD_ID, struct engine_rolled, receipt),
	FIELD(FIELD_BOOL, struct engine_rolled, dry_run),
	FIELD(FIELD_BOOL, struct engine_rolled, edited),
	FIELD(FIELD_UINT, struct engine_rolled, changed),
	FIELD(FIELD_UINT, struct engine_rolled, elapsed_ms),
	FIELD_LIST_OF(FIELD_LIST, struct engine_rolled, "paths", paths, n_paths, &wire_note),
	FIELD_LIST_OF(FIELD_LIST, struct engine_rolled, "conflicts", conflicts, n_conflicts,
		      &wire_note),
	FIELD_LIST_OF(FIELD_LIST, struct engine_rolled, "held", held, n_held, &wire_note),
	FIELD_LIST_OF(FIELD_LIST, struct engine_rolled, "warned", warned, n_warned, &wire_note),
};
const struct fields wire_rolled = FIELDS(struct engine_rolled, wire_rolled_fields);
