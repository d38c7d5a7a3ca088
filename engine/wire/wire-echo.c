#include "engine/wire/wire-i.h"

DEFINE_FIELDS_DONE(echo_page_done, struct echo_page, wire_echo_page)

static const struct field wire_echo_path_fields[] = {
	FIELD(FIELD_NAME, struct echo_path, path),
	FIELD(FIELD_CHAR, struct echo_path, was),
	FIELD(FIELD_CHAR, struct echo_path, is),
};
static const struct fields wire_echo_path = FIELDS(struct echo_path, wire_echo_path_fields);

static const struct field wire_echo_page_fields[] = {
	FIELD(FIELD_NAME_OR_NULL, struct echo_page, path),
	FIELD(FIELD_TEXT_OR_NULL, struct echo_page, token),
	FIELD_LIST_OF(FIELD_LIST, struct echo_page, "names", names, n_names, &wire_echo_path),
};
const struct fields wire_echo_page = FIELDS(struct echo_page, wire_echo_page_fields);
