#include "engine/api/remote.h"
#include "engine/wire/wire-i.h"

static const struct field wire_receive_options_fields[] = {
	FIELD_LIST_OF(FIELD_NAMES, struct engine_receive_options, "packs", packs, n_packs, NULL),
	FIELD(FIELD_NAME_OR_NULL, struct engine_receive_options, root),
	FIELD(FIELD_NAME_OR_NULL, struct engine_receive_options, base),
	FIELD(FIELD_NAME_OR_NULL, struct engine_receive_options, since),
	FIELD(FIELD_NAME_OR_NULL, struct engine_receive_options, message),
	FIELD(FIELD_NAME_OR_NULL, struct engine_receive_options, meta),
	FIELD(FIELD_NAME_OR_NULL, struct engine_receive_options, tag),
};
const struct fields wire_receive_options =
    FIELDS(struct engine_receive_options, wire_receive_options_fields);

static const struct field wire_received_fields[] = {
	FIELD_OF(struct engine_received, "snapshot", snapshot, &wire_snapshot),
	FIELD(FIELD_NAME_OR_NULL, struct engine_received, project),
	FIELD(FIELD_BOOL, struct engine_received, registered),
	FIELD_LIST_OF(FIELD_NAMES, struct engine_received, "wanted", wanted, n_wanted, NULL),
	FIELD(FIELD_UINT, struct engine_received, objects),
};
const struct fields wire_received = FIELDS(struct engine_received, wire_received_fields);
