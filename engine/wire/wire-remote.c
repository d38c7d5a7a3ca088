#include "engine/api/remote.h"
#include "engine/wire/wire-i.h"

static const struct field range_fields[] = {
	FIELD(FIELD_ID, struct engine_range, pack),
	FIELD(FIELD_UINT, struct engine_range, at),
	FIELD(FIELD_UINT, struct engine_range, len),
	FIELD(FIELD_UINT, struct engine_range, frame),
	FIELD(FIELD_UINT, struct engine_range, frames),
};
static const struct fields wire_range = FIELDS(struct engine_range, range_fields);

static const struct field wire_receive_options_fields[] = {
	FIELD(FIELD_ID, struct engine_receive_options, lazy),
	FIELD_LIST_OF(FIELD_NAMES, struct engine_receive_options, "packs", packs, n_packs, NULL),
	FIELD(FIELD_NAME_OR_NULL, struct engine_receive_options, root),
	FIELD(FIELD_NAME_OR_NULL, struct engine_receive_options, base),
	FIELD(FIELD_NAME_OR_NULL, struct engine_receive_options, since),
	FIELD(FIELD_NAME_OR_NULL, struct engine_receive_options, message),
	FIELD(FIELD_NAME_OR_NULL, struct engine_receive_options, meta),
	FIELD(FIELD_TEXT_OR_NULL, struct engine_receive_options, hidden),
	FIELD(FIELD_NAME_OR_NULL, struct engine_receive_options, tag),
};
const struct fields wire_receive_options =
    FIELDS(struct engine_receive_options, wire_receive_options_fields);

static const struct field wire_received_fields[] = {
	FIELD_OF(struct engine_received, "snapshot", snapshot, &wire_snapshot),
	FIELD(FIELD_NAME_OR_NULL, struct engine_received, project),
	FIELD(FIELD_BOOL, struct engine_received, registered),
	FIELD_LIST_OF(FIELD_NAMES, struct engine_received, "wanted", wanted, n_wanted, NULL),
	FIELD_LIST_OF(FIELD_LIST, struct engine_received, "ranges", ranges, n_ranges, &wire_range),
	FIELD(FIELD_BOOL, struct engine_received, promised),
	FIELD(FIELD_UINT, struct engine_received, objects),
};
const struct fields wire_received = FIELDS(struct engine_received, wire_received_fields);

static const struct field wire_supply_options_fields[] = {
	FIELD(FIELD_ID, struct engine_supply_options, id),
	FIELD(FIELD_UINT, struct engine_supply_options, process),
	FIELD(FIELD_BOOL, struct engine_supply_options, first),
	FIELD(FIELD_BOOL, struct engine_supply_options, idle),
	FIELD(FIELD_BOOL, struct engine_supply_options, wanted_only),
	FIELD(FIELD_UINT, struct engine_supply_options, most),
	FIELD_OF(struct engine_supply_options, "done", done, &wire_range),
	FIELD(FIELD_TEXT_OR_NULL, struct engine_supply_options, why),
};
const struct fields wire_supply_options =
    FIELDS(struct engine_supply_options, wire_supply_options_fields);

static const struct field wire_supply_fields[] = {
	FIELD(FIELD_BOOL, struct engine_supply, over),
	FIELD(FIELD_BOOL, struct engine_supply, ended),
	FIELD_OF(struct engine_supply, "range", range, &wire_range),
};
const struct fields wire_supply = FIELDS(struct engine_supply, wire_supply_fields);
