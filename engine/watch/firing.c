#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hex.h"
#include "base/log.h"
#include "base/sha256.h"
#include "base/text.h"
#include "base/vec.h"
#include "engine/find/event-i.h"
#include "engine/pipeline/pipeline-i.h"
#include "engine/watch/watch-i.h"

#define KEPT_NS  (INT64_C(14) * 24 * 3600 * NS_PER_S)
#define DAY_NS   (INT64_C(24) * 3600 * NS_PER_S) /* that budgets look back */
#define KEPT_MAX 2000

/* --- the record ---------------------------------------------------------------------------- */

#define F(kind, member) FIELD(FIELD_##kind, struct engine_firing, member)
static const struct field firing_list[] = {
	F(ID, id),
	F(NAME, rule),
	F(NAME, project),
	F(UINT, trigger),
	F(TEXT_OR_NULL, detail),
	F(INT, created),
	F(INT, made),
	F(UINT, merged),
	F(ID, from),
	F(INT, from_made),
	FIELD_LIST_OF(FIELD_NAMES, struct engine_firing, "paths", paths, n_paths, NULL),
	F(UINT, more_paths),
	F(UINT, state),
	F(UINT, attempts),
	F(INT, begun),
	F(INT, ended),
	F(NAME_OR_NULL, clone),
	F(ID, run),
	F(INT, exit_code),
	F(UINT, cpu_ms),
	F(UINT, duration_ms),
	F(UINT, files),
	F(UINT, lines),
	F(ID, signature),
	F(UINT, then),
	F(NAME_OR_NULL, result),
	F(TEXT_OR_NULL, why),
	F(ID, change),
	F(TEXT_OR_NULL, told),
};
static const struct fields firing_fields = FIELDS(struct engine_firing, firing_list);
#undef F

/* Version 1 told once, at the end, and did not say what: it is not told again. */
static void upgrade(struct json j)
{
	if (json_get_uint(j, "state") == ENGINE_FIRING_DONE)
		json_set_text(j, "told", "?");
	else
		json_set_null(j, "told");
}

const struct docket_kind firing_kind = {
	.dir = "firings",
	.noun = "firing",
	.version = 2,
	.fields = &firing_fields,
	.upgrade = upgrade,
	.audited = true,
};

DEFINE_FIELDS_DONE(engine_firing_done, struct engine_firing, firing_fields)

DEFINE_LIST_DONE(engine_firings_done, struct engine_firings, engine_firing_done)

/* --- words --------------------------------------------------------------------------------- */

const char *engine_trigger_name(enum engine_trigger t)
{
	static const char *const names[] = {
		[ENGINE_TRIGGER_FIRE] = "fire",       [ENGINE_TRIGGER_SCHEDULE] = "schedule",
		[ENGINE_TRIGGER_FILES] = "files",     [ENGINE_TRIGGER_FAILS] = "fails",
		[ENGINE_TRIGGER_REF] = "ref",         [ENGINE_TRIGGER_LOG] = "log",
		[ENGINE_TRIGGER_DISK] = "disk",       [ENGINE_TRIGGER_STORE] = "store",
		[ENGINE_TRIGGER_WEBHOOK] = "webhook",
	};

	return names[t];
}

const char *engine_firing_state_name(enum engine_firing_state s)
{
	static const char *const names[] = {
		[ENGINE_FIRING_QUEUED] = "queued",
		[ENGINE_FIRING_RUNNING] = "running",
		[ENGINE_FIRING_DECIDED] = "decided",
		[ENGINE_FIRING_DONE] = "done",
	};

	return names[s];
}

char *firing_asker(const char *rule)
{
	return text_format("watch:%s", rule);
}

/* --- reading and writing ------------------------------------------------------------------- */

int firing_load(struct engine *e, const char *id, const struct docket_lock *l,
		struct engine_firing *ret, struct err *err)
{
	struct engine_firing f = { 0 };
	int r = docket_read(e, &firing_kind, id, l, &f, &f.alive, err);

	if (r < 0)
		return r;
	if (strcmp(f.id, id) != 0 || f.state > ENGINE_FIRING_DONE ||
	    f.trigger > ENGINE_TRIGGER_WEBHOOK || f.then > ENGINE_THEN_SHIP) {
		engine_firing_done(&f);
		return err_set(err, -EBADMSG, "the state of firing '%s' is damaged", id);
	}
	*ret = f;
	return 0;
}

static void tell(struct engine *e, const struct engine_firing *f, const char *event)
{
	struct event ev;

	event_begin(&ev, event,
		    (struct event_subject){
			.project = f->project, .clone = f->clone, .run = *f->run ? f->run : NULL });
	json_set_text(ev.data, "firing", f->id);
	json_set_name(ev.data, "rule", f->rule);
	json_set_text(ev.data, "trigger", engine_trigger_name(f->trigger));
	json_set_text(ev.data, "state", engine_firing_state_name(f->state));
	json_set_text(ev.data, "result", f->result);
	json_set_text(ev.data, "why", f->why);
	json_set_text(ev.data, "change", *f->change ? f->change : NULL);
	event_end(&ev, e->store_path);
}

int firing_save(struct engine *e, const struct docket_lock *l, const struct engine_firing *f,
		const char *event, struct err *err)
{
	int r = docket_save(l, &firing_kind, f->id, f, err);

	if (r >= 0 && event)
		tell(e, f, event);
	return r;
}

/* The process that hears of it may begin at once: it must not find the firing locked. */
static int save_and_leave(struct engine *e, struct docket_lock *l, const struct engine_firing *f,
			  struct err *err)
{
	int r = firing_save(e, l, f, NULL, err);

	docket_lock_done(l);
	if (r >= 0)
		tell(e, f, "watch-fired");
	return r;
}

struct listing {
	struct engine *engine;
	struct engine_firings all;
};

static int add_firing(const char *name, void *ctx, struct err *err)
{
	struct listing *l = ctx;
	int r;

	if (!VEC_ONE_MORE(l->all.list, l->all.n))
		return err_nomem(err);
	r = firing_load(l->engine, name, NULL, &l->all.list[l->all.n], err);
	/* It was made or removed just now; or it is damaged, and the others are not. */
	if (r < 0 && r != -ENOENT && r != -ENOMEM)
		log_warn("%s, continuing", err->msg);
	l->all.n += r >= 0;
	return r == -ENOMEM ? r : 0;
}

static int by_age(const void *a, const void *b)
{
	const struct engine_firing *x = a, *y = b;

	return x->created == y->created ? (x->made < y->made) - (x->made > y->made)
					: (x->created < y->created) - (x->created > y->created);
}

int engine_watch_log(struct engine *e, struct engine_firings *ret, struct err *err)
{
	struct listing l = { .engine = e };
	int r = docket_each(e, &firing_kind, add_firing, &l, err);

	if (r < 0) {
		engine_firings_done(&l.all);
		return r;
	}
	VEC_SORT(l.all.list, l.all.n, by_age);
	*ret = l.all;
	return 0;
}

static bool is_ahead(struct engine_firing *f, int64_t now)
{
	int64_t *const times[] = { &f->created, &f->begun, &f->ended };
	bool ahead = false;

	for (size_t i = 0; i < ARRAY_LEN(times); i++) {
		ahead |= *times[i] > now;
		*times[i] = *times[i] > now ? now : *times[i];
	}
	return ahead;
}

int firing_set_clock(struct engine *e, struct engine_firing *f, int64_t now, struct err *err)
{
	CLEANUP(docket_lock_done) struct docket_lock lock = DOCKET_LOCK_INIT;
	CLEANUP(engine_firing_done) struct engine_firing own = { 0 };
	int r;

	if (!is_ahead(f, now) || f->alive)
		return 0;
	r = docket_take(e, &firing_kind, f->id, &lock, err);
	if (r >= 0)
		r = firing_load(e, f->id, &lock, &own, err);
	if (r >= 0 && is_ahead(&own, now))
		r = firing_save(e, &lock, &own, NULL, err);
	/* Another process works on it, or has removed it. */
	return r == -EBUSY || r == -ENOENT ? 0 : r;
}

int firing_prune(struct engine *e, const struct engine_firings *all, struct err *err)
{
	const int64_t now = pipeline_now();
	int r = 0;

	for (size_t i = 0; i < all->n && r >= 0; i++) {
		CLEANUP(docket_lock_done) struct docket_lock lock = DOCKET_LOCK_INIT;

		if (all->list[i].state != ENGINE_FIRING_DONE ||
		    all->list[i].ended >= now - (i < KEPT_MAX ? KEPT_NS : DAY_NS))
			continue;
		r = docket_take(e, &firing_kind, all->list[i].id, &lock, err);
		if (r >= 0)
			r = docket_forget(e, &firing_kind, all->list[i].id, &lock, err);
		if (r == -EBUSY || r == -ENOENT)
			r = 0;
	}
	return r;
}

/* --- making one ---------------------------------------------------------------------------- */

static void id_of(const char *rule, enum engine_trigger trigger, const char *key,
		  char ret[ENGINE_ID_SIZE])
{
	const char *const parts[] = { rule, engine_trigger_name(trigger), key };
	uint8_t digest[SHA256_SIZE];
	struct sha256 sum;

	sha256_begin(&sum);
	for (size_t i = 0; i < ARRAY_LEN(parts); i++)
		sha256_add(&sum, parts[i], strlen(parts[i]) + 1);
	sha256_end(&sum, digest);
	hex_encode(digest, (ENGINE_ID_SIZE - 1) / 2, ret);
}

static bool has_path(const struct engine_firing *f, const char *path)
{
	return VEC_HAS(it, f->paths, f->n_paths, strcmp(*it, path) == 0);
}

static int add_paths(struct engine_firing *f, const struct strlist *paths, struct err *err)
{
	int r = 0;

	for (size_t i = 0; paths && i < paths->n && r >= 0; i++) {
		if (has_path(f, paths->list[i]))
			continue;
		if (f->n_paths == WATCH_PATHS) {
			f->more_paths++;
			continue;
		}
		r = texts_add(&f->paths, &f->n_paths, paths->list[i], err);
	}
	return r;
}

/* The newest cause says where its paths were seen. */
static int add_cause(struct engine_firing *f, const struct firing_cause *cause, struct err *err)
{
	int r = add_paths(f, cause->paths, err);

	f->more_paths += cause->more_paths;
	snprintf(f->from, sizeof(f->from), "%s", cause->from ? cause->from : "");
	f->from_made = engine_now();
	return r < 0 || !cause->detail ? r : text_set(&f->detail, err, "%s", cause->detail);
}

/* Into the one that is queued.  1: it began meanwhile. */
static int merge_into(struct engine *e, const char *id, const struct firing_cause *cause,
		      struct err *err)
{
	CLEANUP(docket_lock_done) struct docket_lock lock = DOCKET_LOCK_INIT;
	CLEANUP(engine_firing_done) struct engine_firing f = { 0 };
	int r = docket_take(e, &firing_kind, id, &lock, err);

	if (r == -EBUSY)
		return 1;
	if (r < 0)
		return r;
	r = firing_load(e, id, &lock, &f, err);
	if (r < 0 || f.state != ENGINE_FIRING_QUEUED)
		return r < 0 ? r : 1;
	f.merged++;
	r = add_cause(&f, cause, err);
	return r < 0 ? r : save_and_leave(e, &lock, &f, err);
}

static int create(struct engine *e, const struct engine_rule *rule, const char *id,
		  const struct firing_cause *cause, struct err *err)
{
	CLEANUP(docket_lock_done) struct docket_lock lock = DOCKET_LOCK_INIT;
	CLEANUP(engine_firing_done) struct engine_firing f = {
		.rule = strdup(rule->name),
		.project = strdup(rule->project),
		.trigger = cause->trigger,
		.created = pipeline_now(),
		.made = engine_now(),
	};
	int r = f.rule && f.project ? add_cause(&f, cause, err) : err_nomem(err);

	memcpy(f.id, id, sizeof(f.id));
	if (r >= 0)
		r = docket_create(e, &firing_kind, id, &lock, err);
	if (r == -EEXIST)
		return 1;
	return r < 0 ? r : save_and_leave(e, &lock, &f, err);
}

int firing_make(struct engine *e, const struct engine_rule *rule, const struct firing_cause *cause,
		char ret_id[ENGINE_ID_SIZE], struct err *err)
{
	CLEANUP(engine_firings_done) struct engine_firings all = { 0 };
	int r = engine_watch_log(e, &all, err);

	id_of(rule->name, cause->trigger, cause->key, ret_id);
	for (size_t i = 0; r >= 0 && i < all.n; i++)
		if (strcmp(all.list[i].id, ret_id) == 0)
			return 1;
	for (size_t i = 0; r >= 0 && i < all.n; i++) {
		if (all.list[i].state != ENGINE_FIRING_QUEUED ||
		    strcmp(all.list[i].rule, rule->name) != 0)
			continue;
		r = merge_into(e, all.list[i].id, cause, err);
		if (r == 0)
			memcpy(ret_id, all.list[i].id, ENGINE_ID_SIZE);
		if (r <= 0)
			return r;
	}
	return r < 0 ? r : create(e, rule, ret_id, cause, err);
}

static int fire_by(struct engine *e, const char *name, enum engine_trigger trigger,
		   const char *detail, struct engine_firing *ret, struct err *err)
{
	CLEANUP(engine_watch_rules_done) struct engine_rules_of_watch rules = { 0 };
	const struct engine_rule *rule = NULL;
	struct catalog_id unique;
	char key[CATALOG_HEX_SIZE], id[ENGINE_ID_SIZE];
	int r = engine_watch_rules(e, &rules, err);

	if (r < 0)
		return r;
	rule = rules_find(&rules, name);
	if (!rule)
		return err_set(err, -ENOENT, "there is no rule '%.100s' in '%s'", name, rules.file);
	/* Of other rules a caller learns nothing. */
	if (trigger == ENGINE_TRIGGER_WEBHOOK && rule->trigger != trigger)
		return err_set(err, -ENOENT, "there is no rule '%.100s' in '%s'", name, rules.file);
	if (rule->off)
		return err_set(err, -ECANCELED, "the rule '%s' is off%s%s", name,
			       rule->problem ? ": " : "", rule->problem ? rule->problem : "");
	r = catalog_id_new(&unique, err);
	if (r < 0)
		return r;
	r = firing_make(e, rule,
			&(struct firing_cause){ .trigger = trigger,
						.key = catalog_id_hex(&unique, key),
						.detail = detail },
			id, err);
	return r < 0 ? r : firing_load(e, id, NULL, ret, err);
}

int engine_watch_fire(struct engine *e, const char *name, const char *detail,
		      struct engine_firing *ret, struct err *err)
{
	return fire_by(e, name, ENGINE_TRIGGER_FIRE, detail, ret, err);
}

int engine_watch_call(struct engine *e, const char *name, const char *detail,
		      struct engine_firing *ret, struct err *err)
{
	return fire_by(e, name, ENGINE_TRIGGER_WEBHOOK, detail, ret, err);
}

char *firing_experiment(const struct engine_firing *f, uint64_t attempt)
{
	return text_format("w%.12s-%" PRIu64, f->id, attempt);
}
