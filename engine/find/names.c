#include "engine/api/names.h"
#include "base/text.h"

#include <errno.h>
#include <stdio.h>

#include "engine/api/receipts.h"
#include "engine/find/engine-i.h"

#define ID_SHOWN 8 /* digits of an id, as lists show it */

struct naming {
	const struct project *project; /* NULL: no project here */
	engine_name_fn fn;
	void *ctx;
};

static int on_clone(const struct clone *c, void *ctx, struct err *err)
{
	const struct naming *n = ctx;

	if (!n->project || catalog_id_same(&c->project, &n->project->id))
		n->fn(c->name, "clone", n->ctx);
	return 0;
}

static void offer_snapshot(const struct naming *n, const struct engine_snapshot *s)
{
	char id[ID_SHOWN + 1];

	for (size_t i = 0; i < s->n_tags; i++)
		n->fn(s->tags[i], *s->message != '\0' ? s->message : "tag", n->ctx);
	snprintf(id, sizeof(id), "%.*s", ID_SHOWN, s->id);
	n->fn(id, *s->message != '\0' ? s->message : "snapshot", n->ctx);
}

static void offer_newest(const struct naming *n, const struct clone *c)
{
	AUTO_FREE char *name = NULL, *about = NULL;

	if (!c)
		n->fn("@", "the newest snapshot", n->ctx);
	else if (asprintf(&name, "%s@", c->name) >= 0 &&
		 asprintf(&about, "the newest snapshot of %s", c->name) >= 0)
		n->fn(name, about, n->ctx);
}

/* Of the project, or of a clone. */
static int offer_snapshots(struct store *s, const struct naming *n, const struct clone *c,
			   struct err *err)
{
	CLEANUP(engine_history_done) struct engine_history h = { 0 };
	int r = history_load(s, &n->project->id, c, &h, err);

	if (r < 0)
		return r;
	r = tag_fill(s, h.list, h.n, err);
	if (r < 0)
		return r;
	if (h.n > 0)
		offer_newest(n, c);
	for (size_t i = 0; i < h.n; i++)
		offer_snapshot(n, &h.list[i]);
	return r;
}

static int offer_clone(struct store *s, const struct naming *n, const char *name, struct err *err)
{
	CLEANUP(clone_done) struct clone c = { 0 };
	int r = clone_get(s, name, &c, err);

	if (r == -ENOENT || r == -EINVAL)
		return 0;
	if (r < 0 || !catalog_id_same(&c.project, &n->project->id))
		return r;
	return offer_snapshots(s, n, &c, err);
}

static int offer_promotions(struct engine *e, const struct naming *n, struct err *err)
{
	CLEANUP(engine_receipts_done) struct engine_receipts all = { 0 };
	int r = engine_receipts(e, &all, err);

	for (size_t i = 0; i < all.n && r >= 0; i++) {
		AUTO_FREE char *about = NULL;
		const struct engine_receipt *one = &all.list[i];
		char id[ID_SHOWN + 1];

		if (one->undone)
			continue;
		snprintf(id, sizeof(id), "%.*s", ID_SHOWN, one->id);
		about = text_format("%s%s%s", engine_receipt_kind_name(one->kind),
				    one->clone ? " of " : "", one->clone ? one->clone : "");
		n->fn(id, about ? about : "", n->ctx);
	}
	return r;
}

int engine_names(struct engine *e, enum engine_names what, const char *of, engine_name_fn fn,
		 void *ctx, struct err *err)
{
	CLEANUP(project_done) struct project project = { 0 };
	struct naming n = { .fn = fn, .ctx = ctx };
	struct store *s;
	int r = engine_store(e, STORE_READ, &s, err);

	if (r < 0)
		return r;
	r = project_around(e, s, &project, err);
	if (r < 0 && r != -ENXIO)
		return r;
	n.project = r >= 0 ? &project : NULL;
	if (what == ENGINE_NAMES_PROMOTIONS)
		return n.project ? offer_promotions(e, &n, err) : 0;
	if (what != ENGINE_NAMES_STATES || !n.project)
		return clone_each(s, on_clone, &n, err);
	r = of ? offer_clone(s, &n, of, err) : 0;
	if (r < 0)
		return r;
	r = clone_each(s, on_clone, &n, err);
	return r < 0 ? r : offer_snapshots(s, &n, NULL, err);
}
