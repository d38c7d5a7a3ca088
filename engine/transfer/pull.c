#include <string.h>

#include "base/text.h"
#include "engine/transfer/transfer-i.h"
#include "snapshot/diff/changes.h"

/* The snapshot that the project was when it was pushed or pulled last; 1 if it is known. */
static int find_before(struct engine *e, const char *from, char ret[ENGINE_ID_SIZE],
		       struct err *err)
{
	CLEANUP(snapshot_done) struct snapshot s = { 0 };
	CLEANUP(target_done) struct target t = { 0 };
	struct err ignored = { 0 };
	struct seen seen = { 0 };
	struct store *store;
	int r = target_find(e, from, &t, err);

	if (r == 0 && !t.name)
		r = text_set(&t.name, err, TRANSFER_NAME);
	if (r == 0)
		r = seen_load(e, &t, &seen, err);
	if (r <= 0)
		return r;
	if (seen.applied[0] == '\0' || engine_store(e, STORE_READ, &store, &ignored) < 0 ||
	    snapshot_find(store, seen.applied, &s, &ignored) < 0)
		return 0;
	memcpy(ret, seen.applied, sizeof(seen.applied));
	return 1;
}

void engine_fetch_applied(struct engine *e, const struct engine_fetched *fetched)
{
	const struct target t = { .url = fetched->remote, .name = fetched->name };
	struct err ignored = { 0 };
	struct seen seen = { 0 };

	/* Without the note a later merge only has an older base. */
	if (seen_load(e, &t, &seen, &ignored) <= 0)
		return;
	memcpy(seen.applied, fetched->snapshot.id, sizeof(seen.applied));
	seen_save(e, &t, &seen);
}

/* 1 if the project, as it was taken, has files that are not those of the snapshot. */
static int has_others(struct engine *e, const struct engine_taken *taken,
		      const struct engine_fetched *fetched, struct err *err)
{
	CLEANUP(snapshot_done) struct snapshot now = { 0 }, then = { 0 };
	struct changes changes = { 0 };
	struct store *store;
	int r = engine_store(e, STORE_READ, &store, err);

	if (r == 0)
		r = snapshot_find(store, taken->snapshot.id, &now, err);
	if (r < 0 || now.files == 0)
		return r;
	r = snapshot_find(store, fetched->snapshot.id, &then, err);
	if (r == 0)
		r = changes_count(store, &then.root, &now.root, &changes, err);
	return r < 0 ? r : changes.added + changes.modified + changes.deleted > 0;
}

int engine_fetch_for(struct engine *e, const struct engine_fetch_options *options,
		     struct engine_fetched *ret, bool *ret_changed, char ret_since[ENGINE_ID_SIZE],
		     struct err *err)
{
	CLEANUP(engine_fetched_done) struct engine_fetched fetched = { 0 };
	CLEANUP(engine_taken_done) struct engine_taken taken = { 0 };
	const struct engine_take_options take = { .automatic = true, .watch = options->watch };
	char since[ENGINE_ID_SIZE] = "";
	int r = find_before(e, options->from, since, err);
	const bool known = r == 1;

	if (r >= 0)
		r = engine_fetch(e, options, &fetched, err);
	/* It registers a new project, and remembers what it read: the change that follows reads little. */
	if (r >= 0)
		r = engine_take(e, &take, &taken, err);
	if (r >= 0 && !known) {
		memcpy(since, taken.snapshot.id, sizeof(since));
		r = has_others(e, &taken, &fetched, err);
	}
	if (r < 0)
		return r;
	*ret_changed = r == 1 && !known;
	memcpy(ret_since, since, sizeof(since));
	*ret = TAKE_STRUCT(fetched);
	return 0;
}
