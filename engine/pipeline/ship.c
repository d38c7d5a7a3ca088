#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "base/vec.h"
#include "engine/api/clone.h"
#include "engine/api/settings.h"
#include "engine/api/tag.h"
#include "engine/find/digest-i.h"
#include "engine/pipeline/pipeline-i.h"

static void shipping_done(struct shipping *s)
{
	docket_lock_done(&s->lock);
	engine_pipeline_done(&s->pipeline);
}

/* --- going on ------------------------------------------------------------------------------ */

static bool is_far_enough(const struct engine_change *c)
{
	return c->to && change_passed(c, c->to);
}

/* Content that was found sick does not get a second night; content on its way goes on as the change it is. */
static int look_for_same(struct engine *e, const struct engine_change *c,
			 char ret_id[ENGINE_ID_SIZE], struct err *err)
{
	CLEANUP(engine_changes_done) struct engine_changes all = { 0 };
	int r = engine_changes(e, true, &all, err);

	*ret_id = '\0';
	for (size_t i = 0; r >= 0 && i < all.n; i++) {
		const struct engine_change *one = &all.list[i];

		if (strcmp(one->sha256, c->sha256) != 0 || strcmp(one->project, c->project) != 0 ||
		    strcmp(one->id, c->id) == 0)
			continue;
		if (one->state == ENGINE_CHANGE_SICK || one->state == ENGINE_CHANGE_REJECTED)
			return err_set(err, -ECANCELED, "the same change is barred: %s was %s (%s)",
				       one->id,
				       one->state == ENGINE_CHANGE_SICK ? "found sick" : "rejected",
				       one->why ? one->why : "no reason was given");
		if (!engine_change_is_over(one->state) && strcmp(one->clone, c->clone) == 0)
			memcpy(ret_id, one->id, ENGINE_ID_SIZE);
	}
	return r;
}

/* A stage is entered with the receipts of all stages before it, for the same content. */
static int check_chain(struct shipping *s, struct err *err)
{
	AUTO_FREE char *why = NULL;
	int r = engine_change_verify(s->engine, s->change, &why, err);

	if (r <= 0)
		return r < 0 ? r : 1;
	return shipping_hold(s, "receipt", why, err);
}

/* Those that the configuration wants before anything of an agent lands. */
static int add_agent_checks(const struct shipping *s, struct engine_stage *stage, struct err *err)
{
	CLEANUP(strlist_done) struct strlist more = { 0 };
	int r = 0;

	if (!stage->target || strncmp(s->who, "agent", 5) != 0)
		return 0;
	r = engine_agent_checks(s->engine, &more, err);
	return r < 0 ? r : texts_add_all(&stage->checks, &stage->n_checks, more.list, more.n, err);
}

static int settle(struct shipping *s, const struct engine_stage *stage, struct err *err)
{
	CLEANUP(pipeline_stage_done) struct engine_stage now = { 0 };
	struct engine_change *c = s->change;
	int r = pipeline_stage_copy(stage, &now, err);

	if (r < 0)
		return r;
	r = add_agent_checks(s, &now, err);
	if (r < 0)
		return r;
	/* An approval is for a stage with these checks and this target, and for no other. */
	if (c->n_settings == 0 || !change_stage_same(&c->settings[0], &now))
		change_unapprove(c);
	change_unsettle(c);
	if (!VEC_ONE_MORE(c->settings, c->n_settings))
		return err_nomem(err);
	c->settings[c->n_settings++] = TAKE_STRUCT(now);
	return 0;
}

/* The stage counts as it was when the change came there. */
static int arrive(struct shipping *s, const struct engine_stage **stage, struct err *err)
{
	struct engine_change *c = s->change;
	int r = 0;

	if (s->anew || c->n_settings == 0 || strcmp(c->settings[0].name, (*stage)->name) != 0)
		r = settle(s, *stage, err);
	if (r < 0)
		return r;
	s->anew = false;
	*stage = &c->settings[0];
	return 0;
}

static int enter(struct shipping *s, const struct engine_stage *stage, struct err *err)
{
	struct engine_change *c = s->change;
	char same[ENGINE_ID_SIZE];
	struct err why = { 0 };
	int r = arrive(s, &stage, err);

	if (r < 0)
		return r;
	/* An approval is for the stage that it was given for. */
	if (c->stage && strcmp(c->stage, stage->name) != 0)
		change_unapprove(c);
	r = text_set(&c->stage, err, "%s", stage->name);
	if (r < 0)
		return r;
	if (look_for_same(s->engine, c, same, &why) == -ECANCELED)
		return shipping_hold(s, "rule", why.msg, err);
	r = check_chain(s, err);
	if (r > 0)
		r = stage_may_enter(s, stage, err);
	return r > 0 ? stage_pass(s, stage, err) : r;
}

static int finish(struct shipping *s, struct err *err)
{
	free(s->change->stage);
	s->change->stage = NULL;
	s->change->state = ENGINE_CHANGE_SHIPPED;
	return shipping_save(s, "change-shipped", err);
}

static int check_to(const struct engine_pipeline *p, const char *to, struct err *err)
{
	for (size_t i = 0; to && i < p->n; i++)
		if (strcmp(p->list[i].name, to) == 0)
			return 0;
	return to ? err_set(err, -EINVAL, "'%s' has no stage '%.60s'", p->file, to) : 0;
}

static int step_ready(struct shipping *s, struct err *err)
{
	const struct engine_stage *next =
	    VEC_FIND(it, s->pipeline.list, s->pipeline.n, !change_passed(s->change, it->name));
	int r = check_to(&s->pipeline, s->change->to, err);

	if (r < 0)
		return r;
	if (!next)
		return finish(s, err);
	return is_far_enough(s->change) ? 0 : enter(s, next, err);
}

/* A record of version 1 does not say how its stage watches it: as that is configured now. */
static int find_health(struct shipping *s, struct engine_passed *p, struct err *err)
{
	const struct engine_stage *stage = pipeline_stage(&s->pipeline, p->stage);
	const int64_t until = p->soak_until;
	int r;

	if (!stage)
		return err_set(err, -EINVAL,
			       "change %s soaks on stage '%s', which '%s' has no more",
			       s->change->id, p->stage, s->pipeline.file);
	r = soak_begin(p, stage, err);
	p->soak_ms = until > p->seen ? (uint64_t)(until - p->seen) / 1000000 : 0;
	return r;
}

static int step_soaking(struct shipping *s, struct err *err)
{
	struct engine_passed *last = &s->change->passed[s->change->n_passed - 1];
	int r = last->every_ms == 0 ? find_health(s, last, err) : 0;

	return r < 0 ? r : soak_watch(s, err);
}

/* One step.  1: there is more to do now; 0: it stands still. */
static int step(struct shipping *s, struct err *err)
{
	int r;

	switch (s->change->state) {
	case ENGINE_CHANGE_LANDING:
		r = stage_recover(s, err);
		return r < 0 ? r : 1;
	case ENGINE_CHANGE_UNDOING:
		return soak_undo(s, err);
	case ENGINE_CHANGE_SOAKING:
		return step_soaking(s, err);
	case ENGINE_CHANGE_READY:
		return step_ready(s, err);
	case ENGINE_CHANGE_WAITING:
	case ENGINE_CHANGE_HELD:
	case ENGINE_CHANGE_SHIPPED:
	case ENGINE_CHANGE_REJECTED:
	case ENGINE_CHANGE_SICK:
		break;
	}
	return 0;
}

/* True when the next round of health is due. */
static bool wait_for_time(const struct shipping *s)
{
	const int64_t next = engine_change_due_ms(s->change);

	if (next < 0)
		return false;
	if (next > 0)
		IGNORE_RESULT(poll(NULL, 0, next > 60000 ? 60000 : (int)next + 1),
			      "it looks again");
	return true;
}

static int go_on(struct shipping *s, struct err *err)
{
	int r;

	/* It arrives at its stage anew, as that is configured now; one that was approved is there already. */
	if (s->change->state == ENGINE_CHANGE_HELD || s->change->state == ENGINE_CHANGE_READY)
		s->anew = true;
	/* What held it may be over, and an approval may have come. */
	if (s->change->state == ENGINE_CHANGE_HELD ||
	    (s->change->state == ENGINE_CHANGE_WAITING && s->change->approved_by))
		s->change->state = ENGINE_CHANGE_READY;
	do
		r = step(s, err);
	while ((r > 0 && !(s->options->lands_nothing && s->change->state == ENGINE_CHANGE_READY)) ||
	       (r == 0 && s->options->wait && wait_for_time(s)));
	return r;
}

/* Keep both states for as long as the record lives.  Done again, it does no harm. */
static int keep(struct engine *e, const struct engine_change *c, struct err *err)
{
	const char *const states[] = { c->base, c->state_id };
	char tag[64];
	int r = 0;

	for (size_t i = 0; i < ARRAY_LEN(states) && r >= 0; i++) {
		CLEANUP(engine_tags_done) struct engine_tags tags = { 0 };

		snprintf(tag, sizeof(tag), "ship-%s%s", c->id, i == 0 ? "-base" : "");
		r = engine_tag_add(e, tag, states[i], &tags, err);
		if (r == -EEXIST)
			r = 0;
	}
	return r;
}

/* In whose name it goes on: a person's change that an agent takes further is judged as the agent's. */
static const char *asker(const struct engine_change *c, const struct engine_ship_options *o)
{
	return o->who && strcmp(c->who, "person") == 0 ? o->who : c->who;
}

static int keep_there(struct engine *e, const struct engine_change *c, struct err *err)
{
	CLEANUP(engine_close_p) struct engine *there = NULL;
	int r = pipeline_engine(e, c->project, &there, err);

	return r < 0 ? r : keep(there, c, err);
}

int engine_ship_on(struct engine *e, const char *id, const struct engine_ship_options *options,
		   struct engine_change *ret, struct engine_promotion *promotion, struct err *err)
{
	CLEANUP(engine_change_done) struct engine_change found = { 0 };
	CLEANUP(shipping_done) struct shipping s = {
		.engine = e,
		.options = options,
		.change = ret,
		.promotion = promotion,
		.lock = DOCKET_LOCK_INIT,
	};
	int r = engine_change_find(e, id, &found, err);

	if (r < 0)
		return r;
	r = docket_take(e, &change_kind, found.id, &s.lock, err);
	if (r < 0)
		return r;
	r = change_load(e, found.id, &s.lock, ret, err);
	if (r < 0)
		return r;
	if (engine_change_is_over(ret->state))
		return 0;
	r = pipeline_load(e, ret->project, &s.pipeline, err);
	if (r < 0)
		return r;
	/* The process that made it may have died before that. */
	if (ret->n_passed == 0)
		r = keep_there(e, ret, err);
	if (r < 0)
		return r;
	if (ret->state != ENGINE_CHANGE_LANDING)
		r = stage_tidy(&s, err);
	if (r < 0)
		return r;
	s.who = asker(ret, options);
	/* A person may send it further than it was to go; nobody else. */
	if (!options->by_time && strcmp(s.who, "person") == 0) {
		free(ret->to);
		ret->to = options->to ? strdup(options->to) : NULL;
		if (options->to && !ret->to)
			return err_nomem(err);
	}
	return go_on(&s, err);
}

/* --- a new one ----------------------------------------------------------------------------- */

static int nothing_to_ship(const struct engine_change *c, struct err *err)
{
	return err_set(err, -ENODATA, "clone '%s' changed nothing that could be shipped", c->clone);
}

static int find_content(struct engine *e, const struct engine_taken *taken, struct engine_change *c,
			struct err *err)
{
	CLEANUP(snapshot_done) struct snapshot state = { 0 }, base = { 0 };
	struct store *s;
	char hex[CATALOG_HEX_SIZE];
	int r = engine_store(e, STORE_READ, &s, err);

	if (r >= 0)
		r = snapshot_find(s, taken->snapshot.id, &state, err);
	/* What was taken may be a snapshot of the project: the clone is as it was made. */
	if (r >= 0 && catalog_id_is_zero(&state.base))
		return nothing_to_ship(c, err);
	if (r >= 0)
		r = snapshot_get(s, &state.base, &base, err);
	if (r < 0)
		return engine_as_damage(err, r);
	snprintf(c->state_id, sizeof(c->state_id), "%s", taken->snapshot.id);
	snprintf(c->base, sizeof(c->base), "%s", catalog_id_hex(&base.id, hex));
	r = digest_trees(s, &base.root, &state.root, c->sha256, err);
	return r > 0 ? nothing_to_ship(c, err) : r;
}

static int take_state(struct engine *e, const char *clone, struct engine_change *c,
		      struct engine *there, struct err *err)
{
	CLEANUP(engine_taken_done) struct engine_taken taken = { 0 };
	char message[64];
	int r;

	snprintf(message, sizeof(message), "shipped as %s", c->id);
	r = engine_take(
	    there,
	    &(struct engine_take_options){ .clone = clone, .message = message, .automatic = true },
	    &taken, err);
	return r < 0 ? r : find_content(e, &taken, c, err);
}

static int new_id(struct engine_change *c, struct err *err)
{
	struct catalog_id id;
	int r = catalog_id_new(&id, err);

	if (r >= 0)
		catalog_id_hex(&id, c->id);
	return r;
}

/* Of two that ship the same at once, one makes the change and the other finds it. */
static int make_once(struct shipping *s, char ret_same[ENGINE_ID_SIZE], struct err *err)
{
	CLEANUP(docket_lock_done) struct docket_lock all = DOCKET_LOCK_INIT;
	int r = docket_take_kind(s->engine, &change_kind, &all, err);

	if (r < 0)
		return r;
	r = look_for_same(s->engine, s->change, ret_same, err);
	if (r < 0 || *ret_same != '\0')
		return r;
	r = docket_create(s->engine, &change_kind, s->change->id, &s->lock, err);
	return r < 0 ? r : shipping_save(s, "change-made", err);
}

static int begin(struct shipping *s, const char *clone, struct engine *there,
		 char ret_same[ENGINE_ID_SIZE], struct err *err)
{
	struct engine_change *c = s->change;
	int r = new_id(c, err);

	if (r < 0)
		return r;
	c->clone = strdup(clone);
	c->who = strdup(s->options->who ? s->options->who : "person");
	c->to = s->options->to ? strdup(s->options->to) : NULL;
	c->uid = getuid();
	c->created = pipeline_now();
	for (size_t i = 0; i < s->options->subject.n && r >= 0; i++)
		r = texts_add(&c->subject, &c->n_subject, s->options->subject.items[i], err);
	if (r < 0)
		return r;
	if (!c->clone || !c->who || (s->options->to && !c->to))
		return err_nomem(err);
	r = take_state(s->engine, clone, c, there, err);
	if (r < 0)
		return r;
	r = make_once(s, ret_same, err);
	return r < 0 || *ret_same != '\0' ? r : keep(there, c, err);
}

int engine_ship(struct engine *e, const struct engine_ship_options *options,
		struct engine_change *ret, struct engine_promotion *promotion, struct err *err)
{
	AUTO_FREE char *here = options->clone ? NULL : engine_clone_here(e);
	const char *clone = options->clone ? options->clone : here;
	CLEANUP(clone_done) struct clone record = { 0 };
	CLEANUP(project_done) struct project project = { 0 };
	CLEANUP(snapshot_done) struct snapshot base = { 0 };
	CLEANUP(engine_close_p) struct engine *there = NULL;
	CLEANUP(shipping_done) struct shipping s = {
		.engine = e,
		.options = options,
		.change = ret,
		.promotion = promotion,
		.lock = DOCKET_LOCK_INIT,
	};
	char same[ENGINE_ID_SIZE] = "";
	struct store *store;
	int r = engine_store(e, STORE_READ, &store, err);

	if (r < 0)
		return r;
	r = clone_meant(e, store, clone, &record, err);
	if (r < 0)
		return r;
	r = clone_origin(store, &record, &project, &base, err);
	if (r < 0)
		return r;
	r = pipeline_load(e, project.path, &s.pipeline, err);
	if (r < 0)
		return r;
	r = check_to(&s.pipeline, options->to, err);
	if (r < 0)
		return r;
	r = pipeline_engine(e, project.path, &there, err);
	if (r < 0)
		return r;
	ret->project = strdup(project.path);
	if (!ret->project)
		return err_nomem(err);
	r = begin(&s, record.name, there, same, err);
	if (r >= 0 && *same != '\0') {
		engine_change_done(ret);
		return engine_ship_on(e, same, options, ret, promotion, err);
	}
	s.who = ret->who;
	return r < 0 ? r : go_on(&s, err);
}
