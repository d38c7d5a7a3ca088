#include <string.h>

#include "engine/api/rebase.h"
#include "engine/api/resolve.h"
#include "engine/wire/wire-i.h"

/* The kinds are ours: a text of theirs would have to be owned. */
static const char *kind_of(const char *name)
{
	for (int k = 0; name && k <= MERGE_XATTRS; k++)
		if (strcmp(name, merge_kind_name((enum merge_kind)k)) == 0)
			return merge_kind_name((enum merge_kind)k);
	return "unknown";
}

static const struct field hunk_fields[] = {
	FIELD(FIELD_UINT, struct engine_hunk, line),
	FIELD_AS(FIELD_NAME, struct engine_hunk, "base", text[0]),
	FIELD_AS(FIELD_NAME, struct engine_hunk, "ours", text[1]),
	FIELD_AS(FIELD_NAME, struct engine_hunk, "theirs", text[2]),
};
static const struct fields hunk = FIELDS(struct engine_hunk, hunk_fields);

static const struct field conflict_fields[] = {
	FIELD(FIELD_NAME, struct engine_conflict, path),
	FIELD_WORD_OF(struct engine_conflict, kind, kind_of),
	FIELD(FIELD_UINT, struct engine_conflict, hunks),
	FIELD(FIELD_BOOL, struct engine_conflict, settled),
	FIELD(FIELD_BOOL, struct engine_conflict, is_marked),
	FIELD(FIELD_UINT, struct engine_conflict, take),
	FIELD(FIELD_BOOL, struct engine_conflict, stale),
	FIELD(FIELD_ID, struct engine_conflict, versions),
	FIELD(FIELD_BOOL, struct engine_conflict, file),
	FIELD_AS(FIELD_NAME_OR_NULL, struct engine_conflict, "base_text", texts[0]),
	FIELD_AS(FIELD_NAME_OR_NULL, struct engine_conflict, "our_text", texts[1]),
	FIELD_AS(FIELD_NAME_OR_NULL, struct engine_conflict, "their_text", texts[2]),
	FIELD(FIELD_NAME_OR_NULL, struct engine_conflict, marked),
	FIELD_LIST_OF(FIELD_LIST, struct engine_conflict, "places", places, n_places, &hunk),
	FIELD_AS(FIELD_NAME_OR_NULL, struct engine_conflict, "base", sides[0]),
	FIELD_AS(FIELD_NAME_OR_NULL, struct engine_conflict, "ours", sides[1]),
	FIELD_AS(FIELD_NAME_OR_NULL, struct engine_conflict, "theirs", sides[2]),
};
const struct fields wire_conflict = FIELDS(struct engine_conflict, conflict_fields);

static const struct field wire_promote_options_fields[] = {
	FIELD(FIELD_BOOL, struct promote_options, undo),
	FIELD(FIELD_NAME_OR_NULL, struct promote_options, receipt),
	FIELD(FIELD_NAME_OR_NULL, struct promote_options, rules),
	FIELD(FIELD_BOOL, struct promote_options, check),
	FIELD(FIELD_TEXT_OR_NULL, struct promote_options, checked),
	FIELD(FIELD_TEXT_OR_NULL, struct promote_options, checks),
	FIELD(FIELD_INT, struct promote_options, now),
	FIELD(FIELD_TEXT_OR_NULL, struct promote_options, remember),
};
const struct fields wire_promote_options =
    FIELDS(struct promote_options, wire_promote_options_fields);

static const struct field wire_promote_asked_fields[] = {
	FIELD(FIELD_NAME_OR_NULL, struct engine_promote_options, clone),
	FIELD(FIELD_NAME_OR_NULL, struct engine_promote_options, state),
	FIELD(FIELD_NAME_OR_NULL, struct engine_promote_options, to),
	FIELD(FIELD_TEXT_OR_NULL, struct engine_promote_options, plan),
	FIELD(FIELD_UINT, struct engine_promote_options, on_conflict),
	FIELD(FIELD_UINT, struct engine_promote_options, style),
	FIELD(FIELD_BOOL, struct engine_promote_options, root),
	FIELD(FIELD_BOOL, struct engine_promote_options, skip_unreadable),
	FIELD(FIELD_BOOL, struct engine_promote_options, dry_run),
	FIELD(FIELD_BOOL, struct engine_promote_options, with_hunks),
	FIELD_LIST_OF(FIELD_NAMES, struct engine_promote_options, "paths", paths.items, paths.n,
		      NULL),
	FIELD_LIST_OF(FIELD_NAMES, struct engine_promote_options, "excludes", excludes.items,
		      excludes.n, NULL),
	FIELD_LIST_OF(FIELD_NAMES, struct engine_promote_options, "allow", allow.items, allow.n,
		      NULL),
};
const struct fields wire_promote_asked =
    FIELDS(struct engine_promote_options, wire_promote_asked_fields);

static const struct field wire_promotion_fields[] = {
	FIELD(FIELD_UINT, struct engine_promotion, end),
	FIELD(FIELD_NAME_OR_NULL, struct engine_promotion, clone),
	FIELD(FIELD_NAME, struct engine_promotion, project),
	FIELD(FIELD_NAME_OR_NULL, struct engine_promotion, to),
	FIELD(FIELD_ID, struct engine_promotion, id),
	FIELD(FIELD_ID, struct engine_promotion, undone),
	FIELD(FIELD_ID, struct engine_promotion, before),
	FIELD(FIELD_ID, struct engine_promotion, after),
	FIELD(FIELD_ID, struct engine_promotion, sha256),
	FIELD(FIELD_ID, struct engine_promotion, plan),
	FIELD(FIELD_BOOL, struct engine_promotion, dry_run),
	FIELD(FIELD_UINT, struct engine_promotion, changed),
	FIELD(FIELD_UINT, struct engine_promotion, merged),
	FIELD(FIELD_UINT, struct engine_promotion, elapsed_ms),
	FIELD_LIST_OF(FIELD_LIST, struct engine_promotion, "conflicts", conflicts, n_conflicts,
		      &wire_conflict),
	FIELD_LIST_OF(FIELD_LIST, struct engine_promotion, "paths", paths, n_paths, &wire_note),
	FIELD_LIST_OF(FIELD_LIST, struct engine_promotion, "held", held, n_held, &wire_note),
	FIELD_LIST_OF(FIELD_LIST, struct engine_promotion, "warned", warned, n_warned, &wire_note),
	FIELD_LIST_OF(FIELD_LIST, struct engine_promotion, "meanwhile", meanwhile, n_meanwhile,
		      &wire_note),
	FIELD_LIST_OF(FIELD_LIST, struct engine_promotion, "left", left, n_left, &wire_note),
};
const struct fields wire_promotion = FIELDS(struct engine_promotion, wire_promotion_fields);

static const struct field wire_resolve_options_fields[] = {
	FIELD(FIELD_NAME_OR_NULL, struct engine_resolve_options, clone),
	FIELD(FIELD_NAME, struct engine_resolve_options, path),
	FIELD(FIELD_UINT, struct engine_resolve_options, take),
	FIELD(FIELD_NAME_OR_NULL, struct engine_resolve_options, file),
	FIELD(FIELD_TEXT_OR_NULL, struct engine_resolve_options, versions),
};
const struct fields wire_resolve_options =
    FIELDS(struct engine_resolve_options, wire_resolve_options_fields);

static const struct field wire_rebase_options_fields[] = {
	FIELD(FIELD_NAME_OR_NULL, struct engine_rebase_options, clone),
	FIELD(FIELD_UINT, struct engine_rebase_options, on_conflict),
	FIELD(FIELD_UINT, struct engine_rebase_options, style),
	FIELD(FIELD_BOOL, struct engine_rebase_options, skip_unreadable),
	FIELD(FIELD_BOOL, struct engine_rebase_options, dry_run),
};
const struct fields wire_rebase_options =
    FIELDS(struct engine_rebase_options, wire_rebase_options_fields);

static const struct field wire_rebased_fields[] = {
	FIELD(FIELD_BOOL, struct engine_rebased, conflicted),
	FIELD(FIELD_NAME, struct engine_rebased, clone),
	FIELD(FIELD_NAME, struct engine_rebased, project),
	FIELD(FIELD_ID, struct engine_rebased, from),
	FIELD(FIELD_ID, struct engine_rebased, onto),
	FIELD(FIELD_ID, struct engine_rebased, saved),
	FIELD(FIELD_BOOL, struct engine_rebased, dry_run),
	FIELD(FIELD_UINT, struct engine_rebased, changed),
	FIELD(FIELD_UINT, struct engine_rebased, merged),
	FIELD(FIELD_UINT, struct engine_rebased, elapsed_ms),
	FIELD_LIST_OF(FIELD_LIST, struct engine_rebased, "conflicts", conflicts, n_conflicts,
		      &wire_conflict),
	FIELD_LIST_OF(FIELD_LIST, struct engine_rebased, "paths", paths, n_paths, &wire_note),
	FIELD_LIST_OF(FIELD_LIST, struct engine_rebased, "left", left, n_left, &wire_note),
};
const struct fields wire_rebased = FIELDS(struct engine_rebased, wire_rebased_fields);
