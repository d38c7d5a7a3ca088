#include "engine/api/upkeep.h"
#include "engine/wire/wire-i.h"

static const struct field wire_gc_options_fields[] = {
	FIELD(FIELD_UINT, struct engine_gc_options, keep_last),
	FIELD(FIELD_UINT, struct engine_gc_options, keep_within_ms),
	FIELD(FIELD_BOOL, struct engine_gc_options, dry_run),
};
const struct fields wire_gc_options = FIELDS(struct engine_gc_options, wire_gc_options_fields);

static const struct field wire_gc_fields[] = {
	FIELD(FIELD_UINT, struct engine_gc, kept),
	FIELD(FIELD_UINT, struct engine_gc, removed),
	FIELD(FIELD_UINT, struct engine_gc, freed),
	FIELD(FIELD_UINT, struct engine_gc, disk_before),
	FIELD(FIELD_UINT, struct engine_gc, disk_after),
	FIELD(FIELD_UINT, struct engine_gc, elapsed_ms),
	FIELD_LIST_OF(FIELD_LIST, struct engine_gc, "forgotten", forgotten.list, forgotten.n,
		      &wire_snapshot),
};
const struct fields wire_gc = FIELDS(struct engine_gc, wire_gc_fields);

static const struct field wire_check_options_fields[] = {
	FIELD(FIELD_BOOL, struct engine_check_options, repair),
};
const struct fields wire_check_options =
    FIELDS(struct engine_check_options, wire_check_options_fields);

static const struct field damage_fields[] = {
	FIELD(FIELD_NAME, struct engine_damage, object),
	FIELD(FIELD_NAME, struct engine_damage, why),
	FIELD(FIELD_NAME_OR_NULL, struct engine_damage, from),
	FIELD(FIELD_UINT, struct engine_damage, n_paths_all),
	FIELD_LIST_OF(FIELD_NAMES, struct engine_damage, "paths", paths, n_paths, NULL),
};
static const struct fields damage = FIELDS(struct engine_damage, damage_fields);

static const struct field wire_check_fields[] = {
	FIELD(FIELD_UINT, struct engine_check, objects),
	FIELD(FIELD_UINT, struct engine_check, bytes),
	FIELD(FIELD_UINT, struct engine_check, refs),
	FIELD(FIELD_UINT, struct engine_check, mended),
	FIELD(FIELD_UINT, struct engine_check, set_aside),
	FIELD(FIELD_UINT, struct engine_check, elapsed_ms),
	FIELD_LIST_OF(FIELD_LIST, struct engine_check, "damage", damage, n_damage, &damage),
	FIELD_LIST_OF(FIELD_LIST, struct engine_check, "restored", restored, n_restored, &damage),
};
const struct fields wire_check = FIELDS(struct engine_check, wire_check_fields);
