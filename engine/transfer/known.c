#include "engine/transfer/known-i.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "engine/find/descent-i.h"
#include "engine/transfer/note-i.h"

#define KNOWN_DIR "remote/known"

/* --- the note ----------------------------------------------------------------------------- */

static char *key_of(const struct target *t, const struct catalog_id *project)
{
	char hex[CATALOG_HEX_SIZE];

	return text_format("%s %s %s", t->url, t->name, catalog_id_hex(project, hex));
}

/* 1 if there is such a note, else 0. */
static int load(struct engine *e, const char *key, struct known *ret, struct err *err)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	const char *manifest, *snapshot;
	struct json j;
	int r = note_load(e, KNOWN_DIR, key, &doc, &j, err);

	if (r <= 0)
		return r;
	manifest = json_text_if(j, "manifest");
	snapshot = json_text_if(j, "snapshot");
	if (!manifest || digest_parse(manifest, &ret->manifest) < 0 || !snapshot ||
	    strlen(snapshot) >= sizeof(ret->snapshot))
		return 0;
	snprintf(ret->snapshot, sizeof(ret->snapshot), "%s", snapshot);
	ret->from = json_kind(j, "from") == JSON_INT ? json_get_int(j, "from") : 0;
	return 1;
}

void known_save(struct engine *e, const struct target *t, const struct catalog_id *project,
		const struct known *known)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	AUTO_FREE char *key = key_of(t, project);
	struct json j = json_begin(&doc);
	char digest[DIGEST_TEXT_SIZE], hex[CATALOG_HEX_SIZE];

	json_set_text(j, "remote", t->url);
	json_set_text(j, "name", t->name);
	json_set_text(j, "project", catalog_id_hex(project, hex));
	json_set_text(j, "manifest", digest_text(&known->manifest, digest));
	json_set_text(j, "snapshot", known->snapshot);
	json_set_int(j, "from", known->from);
	if (key)
		note_save(e, KNOWN_DIR, key, &doc);
}

/* --- what landed -------------------------------------------------------------------------- */

struct landed {
	const struct catalog_id *project, *after;
	int64_t created;
};

static int on_receipt(const struct receipt *r, void *ctx, struct err *err)
{
	struct landed *l = ctx;

	if (r->kind != RECEIPT_ROLLBACK || r->state != RECEIPT_DONE ||
	    !catalog_id_same(&r->project, l->project) || !catalog_id_same(&r->after, l->after))
		return 0;
	l->created = r->created;
	return 1;
}

/* 1, and when, if the project was made that snapshot as a whole. */
static int has_landed(struct store *s, const struct catalog_id *project,
		      const struct catalog_id *snapshot, int64_t *ret, struct err *err)
{
	struct landed l = { project, snapshot, 0 };
	int r = receipt_each(s, on_receipt, &l, err);

	*ret = l.created;
	return r;
}

/* A pull that was killed after it landed left no note. */
static int adopt(struct engine *e, struct store *s, const struct target *t,
		 const struct catalog_id *project, struct known *k, struct err *err)
{
	CLEANUP(snapshot_done) struct snapshot fetched = { 0 };
	struct err gone = { 0 };
	struct seen seen;
	int64_t when;
	int r = seen_load(e, t, &seen, err);

	if (r <= 0 || digest_equal(&seen.manifest, &k->manifest))
		return r < 0 ? r : 0;
	if (snapshot_find(s, seen.snapshot, &fetched, &gone) < 0)
		return 0;
	r = has_landed(s, project, &fetched.id, &when, err);
	if (r <= 0)
		return r;
	k->manifest = seen.manifest;
	memcpy(k->snapshot, seen.snapshot, sizeof(k->snapshot));
	k->from = when;
	known_save(e, t, project, k);
	return 1;
}

int known_load(struct engine *e, const struct target *t, const struct catalog_id *project,
	       struct known *ret, struct err *err)
{
	CLEANUP(snapshot_done) struct snapshot still = { 0 };
	AUTO_FREE char *key = key_of(t, project);
	struct err gone = { 0 };
	struct known k = { 0 };
	struct store *s;
	int r, adopted;

	if (!engine_has_store(e))
		return 0;
	r = engine_store(e, STORE_READ, &s, err);
	if (r == 0)
		r = key ? load(e, key, &k, err) : err_nomem(err);
	if (r < 0)
		return r;
	adopted = adopt(e, s, t, project, &k, err);
	if (adopted < 0 || r + adopted == 0)
		return adopted;
	if (k.snapshot[0] != '\0' && snapshot_find(s, k.snapshot, &still, &gone) < 0)
		k.snapshot[0] = '\0';
	*ret = k;
	return 1;
}

int known_load_here(struct engine *e, const struct target *t, struct known *ret, struct err *err)
{
	CLEANUP(project_done) struct project here = { 0 };
	struct err ignored = { 0 };
	struct store *s;

	/* What is wrong with the directory, the command says itself. */
	if (!engine_has_store(e) || engine_store(e, STORE_READ, &s, &ignored) < 0 ||
	    project_choose(e, s, NULL, &here, &ignored) < 0 || catalog_id_is_zero(&here.id))
		return 0;
	return known_load(e, t, &here.id, ret, err);
}

/* --- a push ------------------------------------------------------------------------------- */

/* 1 if the project has looked like that: it is its own, or it was pulled. */
static int was_project(struct store *s, const struct snapshot *at, struct err *err)
{
	int64_t unused;

	return at->clone ? has_landed(s, &at->project, &at->id, &unused, err) : 1;
}

/*
 * The base of a clone that got repositories of its own is that clone's, and follows the project's state.  One
 * that started as a fetched snapshot may have nothing in common with the project: "".
 */
static int find_common(struct store *s, const struct snapshot *state, char ret[ENGINE_ID_SIZE],
		       struct err *err)
{
	CLEANUP(snapshot_done) struct snapshot at = { 0 };
	struct catalog_id next;
	struct err gone = { 0 };
	int r = descent_base(s, state, &next, err);

	ret[0] = '\0';
	for (int i = 0; i < 2 && r >= 0 && !catalog_id_is_zero(&next); i++) {
		snapshot_done(&at);
		at = (struct snapshot){ 0 };
		if (snapshot_get(s, &next, &at, &gone) < 0)
			return 0;
		r = was_project(s, &at, err);
		if (r == 1) {
			catalog_id_hex(&at.id, ret);
			return 0;
		}
		next = at.parent;
	}
	return r < 0 ? r : 0;
}

int known_push(struct engine *e, const struct target *t, const struct snapshot *state,
	       const struct digest *manifest, struct err *err)
{
	struct known k = { 0 };
	struct store *s;
	int r = known_load(e, t, &state->project, &k, err);

	if (r >= 0)
		r = engine_store(e, STORE_READ, &s, err);
	if (r >= 0)
		r = find_common(s, state, k.snapshot, err);
	if (r < 0)
		return r;
	k.manifest = *manifest;
	known_save(e, t, &state->project, &k);
	return 0;
}

/* A clone, or an older state, may have begun before the project got what others pushed. */
static int is_later(struct store *s, const struct snapshot *state, int64_t from, struct err *err)
{
	CLEANUP(snapshot_done) struct snapshot base = { 0 };
	struct catalog_id id;
	int r = descent_base(s, state, &id, err);

	if (r >= 0)
		r = snapshot_get(s, &id, &base, err);
	return r < 0 ? r : base.created >= from;
}

int known_covers(struct engine *e, const struct target *t, const struct snapshot *state,
		 const struct digest *manifest, struct err *err)
{
	CLEANUP(snapshot_done) struct snapshot fetched = { 0 };
	struct err gone = { 0 };
	struct known k = { 0 };
	struct seen seen;
	struct store *s;
	int r = engine_store(e, STORE_READ, &s, err);

	if (r >= 0)
		r = known_load(e, t, &state->project, &k, err);
	if (r > 0 && digest_equal(&k.manifest, manifest))
		r = is_later(s, state, k.from, err);
	else if (r > 0)
		r = 0;
	if (r != 0)
		return r;
	r = seen_load(e, t, &seen, err);
	if (r <= 0 || !digest_equal(&seen.manifest, manifest) ||
	    snapshot_find(s, seen.snapshot, &fetched, &gone) < 0)
		return r < 0 ? r : 0;
	return descent_has(s, state, &fetched.id, err);
}

/* --- a promotion -------------------------------------------------------------------------- */

/* Did a clone of it bring what others pushed as changes?  One without a base of the project's own had none. */
static bool brings_all(struct store *s, const struct catalog_id *start)
{
	CLEANUP(snapshot_done) struct snapshot at = { 0 };
	struct err ignored = { 0 };
	struct catalog_id base;

	return snapshot_get(s, start, &at, &ignored) >= 0 &&
	       descent_base(s, &at, &base, &ignored) >= 0 && !catalog_id_same(&base, start);
}

struct merged {
	struct engine *e;
	const struct catalog_id *project;
	char start[CATALOG_HEX_SIZE];
	int64_t from; /* 0: as before */
};

static int on_seen(const char *url, const char *name, const struct seen *seen, void *ctx)
{
	const struct merged *m = ctx;
	char *const of = (char *)(uintptr_t)name, *const at = (char *)(uintptr_t)url;
	const struct target t = { .url = at, .name = of };
	struct err ignored = { 0 };
	struct known k = { 0 };

	/* Without the note, the next push or pull only asks for a merge that is there already. */
	if (strcmp(seen->snapshot, m->start) != 0 ||
	    known_load(m->e, &t, m->project, &k, &ignored) < 0)
		return 0;
	k.manifest = seen->manifest;
	memcpy(k.snapshot, seen->snapshot, sizeof(k.snapshot));
	k.from = m->from > 0 ? m->from : k.from;
	known_save(m->e, &t, m->project, &k);
	return 0;
}

void known_merge(struct engine *e, const struct catalog_id *project, const struct catalog_id *start,
		 const char *after)
{
	CLEANUP(snapshot_done) struct snapshot landed = { 0 };
	struct merged m = { .e = e, .project = project };
	struct err ignored = { 0 };
	struct store *s;

	catalog_id_hex(start, m.start);
	if (engine_store(e, STORE_READ, &s, &ignored) < 0 || !brings_all(s, start))
		return;
	if (after[0] != '\0' && snapshot_find(s, after, &landed, &ignored) >= 0)
		m.from = landed.created;
	IGNORE_RESULT(seen_each(e, on_seen, &m, &ignored), "as above");
}
