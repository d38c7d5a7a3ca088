#include "engine/api/image.h"
#include "engine/wire/wire-i.h"

static const struct field wire_import_fields[] = {
	FIELD(FIELD_NAME, struct import_ask, name),
	FIELD(FIELD_NAME, struct import_ask, about),
	FIELD(FIELD_NAME, struct import_ask, message),
	FIELD(FIELD_BOOL, struct import_ask, replace),
	FIELD(FIELD_UINT, struct import_ask, max_bytes),
	FIELD(FIELD_UINT, struct import_ask, max_names),
};
const struct fields wire_import = FIELDS(struct import_ask, wire_import_fields);

static const struct field wire_image_fields[] = {
	FIELD_AS(FIELD_NAME, struct engine_image, "image", name),
	FIELD_AS(FIELD_ID, struct engine_image, "snapshot", id),
	FIELD(FIELD_INT, struct engine_image, created),
	FIELD(FIELD_UINT, struct engine_image, files),
	FIELD(FIELD_UINT, struct engine_image, bytes),
	FIELD(FIELD_UINT, struct engine_image, clones),
	FIELD(FIELD_NAME, struct engine_image, about),
};
const struct fields wire_image = FIELDS(struct engine_image, wire_image_fields);

static const struct field wire_imported_fields[] = {
	FIELD_OF(struct engine_imported, "image", image, &wire_image),
	FIELD(FIELD_UINT, struct engine_imported, entries),
	FIELD(FIELD_BOOL, struct engine_imported, replaced),
};
const struct fields wire_imported = FIELDS(struct engine_imported, wire_imported_fields);
