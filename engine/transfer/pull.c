#include <string.h>

#include "base/text.h"
#include "engine/transfer/transfer-i.h"

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

int engine_fetch_for(struct engine *e, const struct engine_fetch_options *options,
		     struct engine_fetched *ret, char ret_since[ENGINE_ID_SIZE], struct err *err)
{
	CLEANUP(engine_fetched_done) struct engine_fetched fetched = { 0 };
	char since[ENGINE_ID_SIZE] = "";
	const int known = find_before(e, options->from, since, err);
	int r = known < 0 ? known : engine_fetch(e, options, &fetched, err);

	if (r < 0)
		return r;
	memcpy(ret_since, known == 1 ? since : fetched.snapshot.id, ENGINE_ID_SIZE);
	*ret = TAKE_STRUCT(fetched);
	return 0;
}
