#include "engine/api/artifact.h"
#include "engine/wire/wire-i.h"

static const struct field wire_artifact_options_fields[] = {
	FIELD(FIELD_NAME_OR_NULL, struct engine_artifact_options, clone),
	FIELD_LIST_OF(FIELD_NAMES, struct engine_artifact_options, "paths", paths, n_paths, NULL),
	FIELD(FIELD_NAME_OR_NULL, struct engine_artifact_options, meta),
	FIELD(FIELD_NAME_OR_NULL, struct engine_artifact_options, run),
	FIELD(FIELD_TEXT_OR_NULL, struct engine_artifact_options, session),
};
const struct fields wire_artifact_options =
    FIELDS(struct engine_artifact_options, wire_artifact_options_fields);

static const struct field wire_artifact_fields[] = {
	FIELD_AS(FIELD_ID, struct engine_artifact, "artifact", id),
	FIELD(FIELD_ID, struct engine_artifact, sha256),
	FIELD(FIELD_NAME, struct engine_artifact, clone),
	FIELD(FIELD_ID, struct engine_artifact, run),
	FIELD_LIST_OF(FIELD_NAMES, struct engine_artifact, "paths", paths, n_paths, NULL),
	FIELD(FIELD_NAME_OR_NULL, struct engine_artifact, meta),
	FIELD(FIELD_INT, struct engine_artifact, created),
	FIELD(FIELD_UINT, struct engine_artifact, files),
	FIELD(FIELD_UINT, struct engine_artifact, bytes),
};
const struct fields wire_artifact = FIELDS(struct engine_artifact, wire_artifact_fields);
