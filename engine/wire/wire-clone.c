#include "engine/api/since.h"
#include "engine/wire/wire-i.h"

static const struct field wire_clone_options_fields[] = {
	FIELD(FIELD_NAME_OR_NULL, struct engine_clone_options, name),
	FIELD(FIELD_NAME_OR_NULL, struct engine_clone_options, from),
	FIELD(FIELD_UINT, struct engine_clone_options, count),
	FIELD(FIELD_UINT, struct engine_clone_options, ttl_ms),
	FIELD(FIELD_UINT, struct engine_clone_options, quota),
	FIELD(FIELD_BOOL, struct engine_clone_options, strict),
	FIELD(FIELD_BOOL, struct engine_clone_options, private),
	FIELD(FIELD_BOOL, struct engine_clone_options, no_xattrs),
	FIELD(FIELD_BOOL, struct engine_clone_options, skip_unreadable),
	FIELD(FIELD_BOOL, struct engine_clone_options, lazy),
	FIELD(FIELD_BOOL, struct engine_clone_options, eager),
	FIELD(FIELD_NAME_OR_NULL, struct engine_clone_options, part),
	FIELD(FIELD_NAME_OR_NULL, struct engine_clone_options, via),
	FIELD(FIELD_UINT, struct engine_clone_options, owner),
	FIELD(FIELD_BOOL, struct engine_clone_options, carry),
	FIELD(FIELD_UINT, struct engine_clone_options, expect),
	FIELD(FIELD_BOOL, struct engine_clone_options, last),
};
const struct fields wire_clone_options =
    FIELDS(struct engine_clone_options, wire_clone_options_fields);

static const struct field stale_fields[] = {
	FIELD(FIELD_BOOL, struct engine_stale, known),
	FIELD(FIELD_UINT, struct engine_stale, behind_ms),
	FIELD(FIELD_UINT, struct engine_stale, paths),
	FIELD(FIELD_INT, struct engine_stale, as_of),
};
static const struct fields stale = FIELDS(struct engine_stale, stale_fields);

static const struct field wire_clone_fields[] = {
	FIELD(FIELD_NAME, struct engine_clone, name),
	FIELD(FIELD_NAME, struct engine_clone, path),
	FIELD(FIELD_NAME, struct engine_clone, project),
	FIELD(FIELD_NAME_OR_NULL, struct engine_clone, part),
	FIELD(FIELD_ID, struct engine_clone, base),
	FIELD(FIELD_NAME_OR_NULL, struct engine_clone, who),
	FIELD(FIELD_NAME_OR_NULL, struct engine_clone, via),
	FIELD(FIELD_INT, struct engine_clone, created),
	FIELD(FIELD_INT, struct engine_clone, expires),
	FIELD(FIELD_UINT, struct engine_clone, quota),
	FIELD(FIELD_BOOL, struct engine_clone, strict),
	FIELD(FIELD_BOOL, struct engine_clone, private),
	FIELD(FIELD_BOOL, struct engine_clone, no_xattrs),
	FIELD(FIELD_UINT, struct engine_clone, used),
	FIELD(FIELD_UINT, struct engine_clone, own),
	FIELD(FIELD_NAME_OR_NULL, struct engine_clone, allow),
	FIELD(FIELD_BOOL, struct engine_clone, mounted),
	FIELD(FIELD_BOOL, struct engine_clone, compared),
	FIELD(FIELD_UINT, struct engine_clone, added),
	FIELD(FIELD_UINT, struct engine_clone, modified),
	FIELD(FIELD_UINT, struct engine_clone, deleted),
	FIELD_OF(struct engine_clone, "stale", stale, &stale),
	FIELD_OF(struct engine_clone, "capturing", capturing, &wire_capturing),
};
const struct fields wire_clone = FIELDS(struct engine_clone, wire_clone_fields);

static const struct field wire_clone_more_fields[] = {
	FIELD_AS(FIELD_UINT, struct engine_clone, "both", stale.both),
	FIELD_BY(struct engine_clone, "changed_paths", changed, &wire_paths),
	FIELD_BY(struct engine_clone, "project_paths", stale.in_project, &wire_paths),
	FIELD_BY(struct engine_clone, "lost_paths", lost, &wire_paths),
	FIELD_BY(struct engine_clone, "unread_paths", unread, &wire_paths),
	FIELD(FIELD_TEXT_OR_NULL, struct engine_clone, stuck),
};
const struct fields wire_clone_more = FIELDS(struct engine_clone, wire_clone_more_fields);

static const struct field stray_fields[] = {
	FIELD(FIELD_NAME, struct engine_stray, path),
	FIELD(FIELD_NAME, struct engine_stray, to),
};
static const struct fields stray = FIELDS(struct engine_stray, stray_fields);

static const struct field wire_clones_fields[] = {
	FIELD_LIST_OF(FIELD_LIST, struct engine_clones, "clones", list, n, &wire_clone),
	FIELD(FIELD_NAME_OR_NULL, struct engine_clones, project),
	FIELD(FIELD_NAME_OR_NULL, struct engine_clones, git_dir),
	FIELD_LIST_OF(FIELD_LIST, struct engine_clones, "strays", strays, n_strays, &stray),
	FIELD_LIST_OF(FIELD_LIST, struct engine_clones, "links", links, n_links, &stray),
	FIELD(FIELD_UINT, struct engine_clones, elapsed_ms),
};
const struct fields wire_clones = FIELDS(struct engine_clones, wire_clones_fields);

static const struct field wire_overview_fields[] = {
	FIELD(FIELD_NAME, struct engine_overview, path),
	FIELD(FIELD_ID, struct engine_overview, newest),
	FIELD(FIELD_INT, struct engine_overview, newest_time),
	FIELD(FIELD_UINT, struct engine_overview, snapshots),
	FIELD(FIELD_UINT, struct engine_overview, clones),
	FIELD(FIELD_UINT, struct engine_overview, mounted),
	FIELD_OF(struct engine_overview, "capturing", capturing, &wire_capturing),
	FIELD(FIELD_BOOL, struct engine_overview, compared),
	FIELD(FIELD_UINT, struct engine_overview, added),
	FIELD(FIELD_UINT, struct engine_overview, modified),
	FIELD(FIELD_UINT, struct engine_overview, deleted),
	FIELD_BY(struct engine_overview, "changed_paths", changed, &wire_paths),
};
const struct fields wire_overview = FIELDS(struct engine_overview, wire_overview_fields);

static const struct field wire_announced_fields[] = {
	FIELD(FIELD_ID, struct engine_announced, snapshot),
};
const struct fields wire_announced = FIELDS(struct engine_announced, wire_announced_fields);

static const struct field wire_removed_fields[] = {
	FIELD(FIELD_UINT, struct engine_removed, snapshots),
};
const struct fields wire_removed = FIELDS(struct engine_removed, wire_removed_fields);

static const struct field wire_since_fields[] = {
	FIELD(FIELD_NAME, struct engine_since, token),
	FIELD(FIELD_BOOL, struct engine_since, all),
	FIELD_STRINGS(FIELD_STRLIST, struct engine_since, "paths", paths),
};
const struct fields wire_since = FIELDS(struct engine_since, wire_since_fields);
