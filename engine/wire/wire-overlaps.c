#include "engine/api/overlaps.h"
#include "engine/wire/wire-i.h"

static const struct field met_fields[] = {
	FIELD(FIELD_NAME, struct engine_met, path),
	FIELD(FIELD_UINT, struct engine_met, overlap),
};
static const struct fields met = FIELDS(struct engine_met, met_fields);

static const struct field meeting_fields[] = {
	FIELD(FIELD_NAME, struct engine_meeting, clone),
	FIELD(FIELD_NAME, struct engine_meeting, with),
	FIELD(FIELD_ID, struct engine_meeting, base),
	FIELD(FIELD_BOOL, struct engine_meeting, bases_differ),
	FIELD(FIELD_UINT, struct engine_meeting, same),
	FIELD(FIELD_UINT, struct engine_meeting, apart),
	FIELD(FIELD_UINT, struct engine_meeting, overlap),
	FIELD_LIST_OF(FIELD_LIST, struct engine_meeting, "met", met, n, &met),
};
static const struct fields meeting = FIELDS(struct engine_meeting, meeting_fields);

static const struct field wire_overlaps_fields[] = {
	FIELD(FIELD_UINT, struct engine_overlaps, looked_at),
	FIELD_LIST_OF(FIELD_LIST, struct engine_overlaps, "list", list, n, &meeting),
};
const struct fields wire_overlaps = FIELDS(struct engine_overlaps, wire_overlaps_fields);
