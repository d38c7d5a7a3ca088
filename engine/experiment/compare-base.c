#include <errno.h>
#include <string.h>

#include "engine/ask/ask-i.h"
#include "engine/experiment/compare-i.h"

static int add_state(struct comparing *c, const char *text, struct err *err)
{
	int r = state_find(c->engine, c->store, text, &c->hold.states[c->hold.n], err);

	c->hold.n += r >= 0;
	return r;
}

/* --- the base of one side --------------------------------------------------------------- */

/* A clone's snapshot from before they kept their base: the first of its parents that is the project's. */
static int base_by_parents(struct comparing *c, const struct snapshot *of, struct snapshot *ret,
			   struct err *err)
{
	struct catalog_id at = of->parent;

	for (;;) {
		int r = engine_as_damage(err, snapshot_get(c->store, &at, ret, err));

		if (r < 0 || !ret->clone)
			return r;
		at = ret->parent;
		snapshot_done(ret);
		*ret = (struct snapshot){ 0 };
	}
}

/* Its record; all zero for the project now, which descends from everything. */
static int base_of(struct comparing *c, const struct state *s, struct snapshot *ret,
		   struct err *err)
{
	const struct catalog_id *id = &s->clone.base;

	if (s->kind == STATE_PROJECT)
		return 0;
	if (s->kind == STATE_SNAPSHOT) {
		id = s->snapshot.clone ? &s->snapshot.base : &s->snapshot.id;
		if (catalog_id_is_zero(id))
			return base_by_parents(c, &s->snapshot, ret, err);
	}
	return engine_as_damage(err, snapshot_get(c->store, id, ret, err));
}

/* --- the common one --------------------------------------------------------------------- */

struct bases {
	struct snapshot of[ENGINE_COMPARE_MAX];
	size_t n;
};

static void bases_done(struct bases *b)
{
	for (size_t i = 0; i < b->n; i++)
		snapshot_done(&b->of[i]);
}

/* The oldest; a project's snapshots are one line. */
static const struct snapshot *oldest(const struct bases *b)
{
	const struct snapshot *found = NULL;

	for (size_t i = 0; i < b->n; i++)
		if (!catalog_id_is_zero(&b->of[i].id) &&
		    (!found || b->of[i].created < found->created))
			found = &b->of[i];
	return found;
}

static int check_projects(const struct comparing *c, struct err *err)
{
	const struct state *first = &c->hold.states[0];

	for (size_t i = 1; i < c->n; i++) {
		const struct state *s = &c->hold.states[i];

		if (!catalog_id_same(&first->project.id, &s->project.id))
			return err_set(err, -EINVAL,
				       "'%s' and '%s' are of two projects and share no base",
				       first->text, s->text);
	}
	return 0;
}

/* Only a clone has changes of its own beside what the project did before its base. */
static bool has_own(const struct state *s)
{
	return s->kind == STATE_CLONE || (s->kind == STATE_SNAPSHOT && s->snapshot.clone);
}

static int add_own(struct comparing *c, const struct bases *b, const struct snapshot *common,
		   struct err *err)
{
	char hex[CATALOG_HEX_SIZE];
	int r = 0;

	for (size_t i = 0; i < c->n && r >= 0; i++) {
		struct engine_compare_side *side = &c->result.sides[i];

		if (!catalog_id_is_zero(&b->of[i].id))
			catalog_id_hex(&b->of[i].id, side->base);
		if (!common || !has_own(&c->hold.states[i]) ||
		    catalog_id_same(&b->of[i].id, &common->id))
			continue;
		side->base_differs = true;
		c->own[i] = c->hold.n;
		r = add_state(c, catalog_id_hex(&b->of[i].id, hex), err);
	}
	return r;
}

static int find_bases(struct comparing *c, struct err *err)
{
	CLEANUP(bases_done) struct bases b = { 0 };
	const struct snapshot *common;
	char hex[CATALOG_HEX_SIZE];
	int r = 0;

	for (; b.n < c->n && r >= 0; b.n++)
		r = base_of(c, &c->hold.states[b.n], &b.of[b.n], err);
	if (r < 0)
		return r;
	if (c->options->base) {
		r = add_state(c, c->options->base, err);
		return r < 0 ? r : add_own(c, &b, NULL, err);
	}
	r = check_projects(c, err);
	if (r < 0)
		return r;
	common = oldest(&b);
	r = add_state(c, common ? catalog_id_hex(&common->id, hex) : "@", err);
	return r < 0 ? r : add_own(c, &b, common, err);
}

static int name_all(struct comparing *c, struct err *err)
{
	const struct state *base = &c->hold.states[comparing_base(c)];

	for (size_t i = 0; i < c->n; i++) {
		c->result.sides[i].name = strdup(c->hold.states[i].text);
		c->result.sides[i].time = c->hold.held[i].time;
		if (!c->result.sides[i].name)
			return err_nomem(err);
	}
	c->result.base_name = strdup(base->text);
	c->result.base_time = c->hold.held[comparing_base(c)].time;
	if (base->kind == STATE_SNAPSHOT)
		catalog_id_hex(&base->snapshot.id, c->result.base);
	return c->result.base_name ? 0 : err_nomem(err);
}

/* Pairs are merged by cowfsd in any case; one that runs by now also holds plain snapshots. */
static int start_daemon(struct comparing *c, struct err *err)
{
	CLEANUP(control_done) struct control control = CONTROL_INIT;
	struct control_hello hello;
	bool started;

	return ask_connect(c->engine, ASK_STORE, &control, &hello, &started, err);
}

int comparing_open(struct comparing *c, struct err *err)
{
	int r = 0;

	for (size_t i = 0; i < c->n && r >= 0; i++)
		r = add_state(c, c->options->sides[i], err);
	if (r < 0)
		return r;
	r = find_bases(c, err);
	if (r < 0)
		return r;
	r = start_daemon(c, err);
	if (r < 0)
		return r;
	r = hold_open(c->engine, &c->hold, &c->options->watch, err);
	return r < 0 ? r : name_all(c, err);
}
