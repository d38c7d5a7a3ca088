#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/text.h"
#include "base/vec.h"
#include "engine/find/event-i.h"
#include "engine/pipeline/pipeline-i.h"

/* --- the record ---------------------------------------------------------------------------- */

#define S(kind, member)            FIELD(FIELD_##kind, struct engine_stage, member)
#define NAMES(type, member, count) FIELD_LIST_OF(FIELD_NAMES, type, #member, member, count, NULL)
static const struct field stage_list[] = {
	S(NAME, name),
	S(NAME_OR_NULL, target),
	NAMES(struct engine_stage, checks, n_checks),
	NAMES(struct engine_stage, health, n_health),
	NAMES(struct engine_stage, approvers, n_approvers),
	FIELD_WORD_OF(struct engine_stage, approve, pipeline_approve_word),
	S(UINT, soak_ms),
	S(UINT, every_ms),
	S(BOOL, undo_all),
};
static const struct fields stage_fields = FIELDS(struct engine_stage, stage_list);
#undef S

#define P(kind, member) FIELD(FIELD_##kind, struct engine_passed, member)
static const struct field passed_list[] = {
	P(NAME, stage),
	P(NAME_OR_NULL, target),
	P(ID, receipt),
	P(ID, sha256),
	P(ID, commit),
	P(ID, undo_commit),
	FIELD_LIST_OF(FIELD_LIST, struct engine_passed, "checks", checks, n_checks,
		      &docket_checked),
	P(NAME_OR_NULL, approved_by),
	P(UINT, approved_uid),
	P(TEXT_OR_NULL, reason),
	P(INT, passed),
	P(INT, soak_until),
	P(INT, health_next),
	P(UINT, health_runs),
	NAMES(struct engine_passed, health, n_health),
	P(UINT, soak_ms),
	P(UINT, every_ms),
	P(BOOL, undo_all),
	P(UINT, soaked_ms),
	P(UINT, health_ms),
	P(INT, seen),
	P(UINT, seen_ms),
	P(ID, boot),
	P(BOOL, undone),
	P(ID, link),
};
static const struct fields passed_fields = FIELDS(struct engine_passed, passed_list);
#undef P

#define X(kind, member) FIELD(FIELD_##kind, struct engine_change, member)
static const struct field change_list[] = {
	X(ID, id),
	X(NAME, clone),
	X(NAME, project),
	X(NAME, who),
	X(UINT, uid),
	X(ID, base),
	X(ID, state_id),
	X(ID, sha256),
	X(INT, created),
	X(UINT, state),
	X(NAME_OR_NULL, obstacle),
	X(TEXT_OR_NULL, why),
	X(NAME_OR_NULL, to),
	X(NAME_OR_NULL, stage),
	X(NAME_OR_NULL, risk),
	NAMES(struct engine_change, approvers, n_approvers),
	NAMES(struct engine_change, subject, n_subject),
	NAMES(struct engine_change, held, n_held),
	FIELD_LIST_OF(FIELD_LIST, struct engine_change, "settings", settings, n_settings,
		      &stage_fields),
	X(NAME_OR_NULL, approved_by),
	X(TEXT_OR_NULL, reason),
	X(UINT, approved_uid),
	X(NAME_OR_NULL, landing_clone),
	X(NAME_OR_NULL, landing_target),
	NAMES(struct engine_change, landing_known, n_landing_known),
	X(ID, landing_commit),
	FIELD_LIST_OF(FIELD_LIST, struct engine_change, "passed", passed, n_passed, &passed_fields),
};
const struct fields change_fields = FIELDS(struct engine_change, change_list);
#undef X

/* Version 1 kept no settings; what soaked then goes on for as long as it was to. */
static void upgrade(struct json j)
{
	const struct json passed = json_get_array(j, "passed");
	const char *after = json_get_text_or_null(j, "landing_after");
	const struct json known = json_set_array(j, "landing_known");

	json_set_array(j, "settings");
	json_set_null(j, "landing_commit");
	if (after)
		json_add_name(known, after);
	for (size_t i = 0; i < json_length(passed); i++) {
		static const char *const numbers[] = { "every_ms", "soaked_ms", "health_ms",
						       "seen_ms" };
		const struct json p = json_at_object(passed, i);
		const int64_t left = json_get_int(p, "soak_until") - json_get_int(p, "passed");

		json_set_array(p, "health");
		json_set_uint(p, "soak_ms", left > 0 ? (uint64_t)left / 1000000 : 0);
		for (size_t k = 0; k < ARRAY_LEN(numbers); k++)
			json_set_uint(p, numbers[k], 0);
		json_set_bool(p, "undo_all", false);
		json_set_null(p, "commit");
		json_set_null(p, "undo_commit");
		json_set_int(p, "seen", json_get_int(p, "passed"));
		json_set_null(p, "boot");
	}
}

const struct docket_kind change_kind = {
	.dir = "changes",
	.noun = "change",
	.version = 2,
	.fields = &change_fields,
	.upgrade = upgrade,
	.audited = true,
};

DEFINE_FIELDS_DONE(engine_change_done, struct engine_change, change_fields)

DEFINE_LIST_DONE(engine_changes_done, struct engine_changes, engine_change_done)

/* --- words --------------------------------------------------------------------------------- */

const char *engine_change_state_name(enum engine_change_state state)
{
	static const char *const names[] = {
		[ENGINE_CHANGE_READY] = "ready",       [ENGINE_CHANGE_WAITING] = "waiting",
		[ENGINE_CHANGE_LANDING] = "landing",   [ENGINE_CHANGE_SOAKING] = "soaking",
		[ENGINE_CHANGE_HELD] = "held",         [ENGINE_CHANGE_SHIPPED] = "shipped",
		[ENGINE_CHANGE_REJECTED] = "rejected", [ENGINE_CHANGE_UNDOING] = "undoing",
		[ENGINE_CHANGE_SICK] = "sick",
	};

	return names[state];
}

bool engine_change_is_over(enum engine_change_state state)
{
	return state == ENGINE_CHANGE_SHIPPED || state == ENGINE_CHANGE_REJECTED ||
	       state == ENGINE_CHANGE_SICK;
}

bool change_stage_same(const struct engine_stage *a, const struct engine_stage *b)
{
	CLEANUP(json_done) struct json_doc x = { 0 }, y = { 0 };
	CLEANUP(buf_done) struct buf one = BUF_INIT, other = BUF_INIT;
	struct err ignored = { 0 };

	fields_set(json_begin(&x), &stage_fields, a);
	fields_set(json_begin(&y), &stage_fields, b);
	/* Without memory they are not known to be the same. */
	return json_append(&x, &one, &ignored) >= 0 && json_append(&y, &other, &ignored) >= 0 &&
	       one.len == other.len && memcmp(one.data, other.data, one.len) == 0;
}

void change_unsettle(struct engine_change *c)
{
	for (size_t i = 0; i < c->n_settings; i++)
		pipeline_stage_done(&c->settings[i]);
	c->n_settings = 0;
}

void change_unapprove(struct engine_change *c)
{
	free(c->approved_by);
	free(c->reason);
	c->approved_by = c->reason = NULL;
	c->approved_uid = 0;
}

void change_forget_approvers(struct engine_change *c)
{
	texts_free(c->approvers, c->n_approvers);
	c->approvers = NULL;
	c->n_approvers = 0;
}

struct engine_passed *change_passed(const struct engine_change *c, const char *stage)
{
	return VEC_FIND(it, c->passed, c->n_passed, strcmp(it->stage, stage) == 0);
}

/* --- reading and writing ------------------------------------------------------------------- */

bool change_is_sound(const struct engine_change *c)
{
	const bool landed = c->state == ENGINE_CHANGE_SOAKING || c->state == ENGINE_CHANGE_UNDOING;

	return c->state <= ENGINE_CHANGE_SICK && (c->n_passed > 0 || !landed);
}

int change_load(struct engine *e, const char *id, const struct docket_lock *l,
		struct engine_change *ret, struct err *err)
{
	struct engine_change c = { 0 };
	int r = docket_read(e, &change_kind, id, l, &c, &c.alive, err);

	if (r < 0)
		return r;
	if (!change_is_sound(&c) || strcmp(c.id, id) != 0) {
		engine_change_done(&c);
		return err_set(err, -EBADMSG, "the state of change '%s' is damaged", id);
	}
	*ret = c;
	return 0;
}

int shipping_save(struct shipping *s, const char *kind, struct err *err)
{
	const struct engine_change *c = s->change;
	struct store *store = NULL;
	struct event ev;
	int r = docket_save(&s->lock, &change_kind, c->id, c, err);

	if (r < 0 || !kind)
		return r;
	if (engine_store(s->engine, STORE_READ, &store, NULL) < 0)
		store = NULL;
	event_begin(
	    &ev, kind,
	    (struct event_subject){ .project = c->project, .clone = c->clone, .store = store });
	json_set_text(ev.data, "change", c->id);
	json_set_text(ev.data, "state", engine_change_state_name(c->state));
	json_set_name(ev.data, "stage", c->stage);
	json_set_text(ev.data, "why", c->why);
	json_set_text(ev.data, "sha256", c->sha256);
	event_end(&ev, s->engine->store_path);
	return 0;
}

int shipping_hold(struct shipping *s, const char *obstacle, const char *why, struct err *err)
{
	struct engine_change *c = s->change;

	if (text_copy(&c->obstacle, obstacle, err) < 0 || text_copy(&c->why, why, err) < 0)
		return -ENOMEM;
	c->state = ENGINE_CHANGE_HELD;
	return shipping_save(s, "change-held", err);
}

/* --- finding ------------------------------------------------------------------------------- */

struct listing {
	struct engine *engine;
	const char *project; /* NULL: of all */
	struct engine_changes all;
};

static int add_change(const char *name, void *ctx, struct err *err)
{
	struct listing *l = ctx;
	struct engine_change *c;
	int r;

	if (!VEC_ONE_MORE(l->all.list, l->all.n))
		return err_nomem(err);
	c = &l->all.list[l->all.n];
	*c = (struct engine_change){ 0 };
	r = change_load(l->engine, name, NULL, c, err);
	/* It was made or removed just now; or it is damaged, and the others are not. */
	if (r < 0 && r != -ENOENT && r != -ENOMEM)
		log_warn("%s, continuing", err->msg);
	if (r < 0)
		return r == -ENOMEM ? r : 0;
	if (l->project && strcmp(l->project, c->project) != 0)
		engine_change_done(c);
	else
		l->all.n++;
	return 0;
}

static int by_age(const void *a, const void *b)
{
	const struct engine_change *x = a, *y = b;

	return (x->created < y->created) - (x->created > y->created);
}

static int list_changes(struct listing *l, struct engine_changes *ret, struct err *err)
{
	int r = docket_each(l->engine, &change_kind, add_change, l, err);

	if (r < 0) {
		engine_changes_done(&l->all);
		return r;
	}
	VEC_SORT(l->all.list, l->all.n, by_age);
	*ret = l->all;
	return 0;
}

int engine_changes(struct engine *e, bool all, struct engine_changes *ret, struct err *err)
{
	CLEANUP(project_done) struct project project = { 0 };
	struct listing l = { .engine = e };
	struct store *s;
	int r = all ? engine_store(e, STORE_READ, &s, err) : engine_project(e, &s, &project, err);

	/* Without a store there are no changes. */
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	l.project = project.path;
	return list_changes(&l, ret, err);
}

int changes_alone(struct engine *e, struct engine_changes *ret, struct err *err)
{
	struct listing l = { .engine = e };

	return list_changes(&l, ret, err);
}

int engine_change_find(struct engine *e, const char *id, struct engine_change *ret, struct err *err)
{
	CLEANUP(engine_changes_done) struct engine_changes all = { 0 };
	struct engine_change *found = NULL;
	int r = engine_changes(e, true, &all, err);

	if (r < 0)
		return r;
	for (size_t i = 0; i < all.n; i++) {
		if (strncmp(all.list[i].id, id, strlen(id)) != 0 || strlen(id) < 4)
			continue;
		if (found)
			return err_set(err, -EINVAL, "'%s' is the beginning of several changes",
				       id);
		found = &all.list[i];
	}
	for (size_t i = 0; i < all.n && !found; i++)
		if (strcmp(all.list[i].clone, id) == 0)
			found = &all.list[i];
	if (!found)
		return err_set(err, -ENOENT, "there is no change '%.100s'", id);
	*ret = *found;
	*found = (struct engine_change){ 0 };
	return 0;
}
