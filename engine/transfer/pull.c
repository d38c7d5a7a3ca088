#include <string.h>

#include "base/text.h"
#include "engine/transfer/known-i.h"

/* What the project is known to have of the name; 1 if that is anything. */
static int find_known(struct engine *e, const char *from, struct known *ret, struct err *err)
{
	CLEANUP(target_done) struct target t = { 0 };
	int r = target_find(e, from, &t, err);

	if (r == 0 && !t.name)
		r = text_set(&t.name, err, TRANSFER_NAME);
	return r < 0 ? r : known_load_here(e, &t, ret, err);
}

void engine_fetch_applied(struct engine *e, const struct engine_fetched *fetched, bool landed)
{
	const struct target t = { .url = fetched->remote, .name = fetched->name };
	CLEANUP(snapshot_done) struct snapshot s = { 0 };
	struct err ignored = { 0 };
	struct known k = { 0 };
	struct store *store;

	/* Without the note a later pull sees what landed by its receipt. */
	if (engine_store(e, STORE_READ, &store, &ignored) < 0 ||
	    snapshot_find(store, fetched->snapshot.id, &s, &ignored) < 0 ||
	    known_load(e, &t, &s.project, &k, &ignored) < 0 ||
	    digest_parse(fetched->manifest, &k.manifest) < 0)
		return;
	memcpy(k.snapshot, fetched->snapshot.id, sizeof(k.snapshot));
	if (landed)
		k.from = s.created;
	known_save(e, &t, &s.project, &k);
}

int engine_fetch_for(struct engine *e, const struct engine_fetch_options *options,
		     struct engine_fetched *ret, char ret_since[ENGINE_ID_SIZE], struct err *err)
{
	struct known known = { 0 };
	int r = find_known(e, options->from, &known, err);

	if (r >= 0)
		r = engine_fetch(e, options, ret, err);
	if (r >= 0)
		memcpy(ret_since, known.snapshot, ENGINE_ID_SIZE);
	return r;
}
