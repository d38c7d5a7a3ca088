#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fdio.h"
#include "base/path.h"
#include "base/sys.h"
#include "base/text.h"
#include "base/vec.h"
#include "engine/find/event-i.h"
#include "engine/pipeline/pipeline-i.h"
#include "engine/watch/watch-i.h"

#define STOP_MS 20000
#define GONE_MS 2000 /* that it takes to end, once it has let go of its lock */

/* --- records ------------------------------------------------------------------------------- */

#define C(kind, member) FIELD(FIELD_##kind, struct watch_cursor, member)
static const struct field cursor_list[] = {
	C(NAME, rule),
	C(TEXT, about),
	C(ID, epoch),
	C(INT, since),
	C(ID, seen),
	C(ID, receipt),
	C(BOOL, failing),
	C(INT, checked),
	C(NAME_OR_NULL, value),
	C(UINT, inode),
	C(UINT, offset),
	C(BOOL, known),
	C(BOOL, partial),
	C(UINT, probed_ms),
	C(INT, probed_since),
	C(TEXT_OR_NULL, problem),
};
static const struct fields cursor_fields = FIELDS(struct watch_cursor, cursor_list);
#undef C

static const struct field meter_list[] = {
	FIELD(FIELD_ID, struct watch_meter, run),
	FIELD(FIELD_UINT, struct watch_meter, cpu_ms),
};
static const struct fields meter_fields = FIELDS(struct watch_meter, meter_list);

#define S(kind, member) FIELD(FIELD_##kind, struct watch_state, member)
static const struct field state_list[] = {
	S(INT, pid),
	S(INT, started),
	S(TEXT_OR_NULL, problem),
	FIELD_LIST_OF(FIELD_LIST, struct watch_state, "cursors", cursors, n_cursors,
		      &cursor_fields),
	FIELD_LIST_OF(FIELD_LIST, struct watch_state, "meters", meters, n_meters, &meter_fields),
};
static const struct fields state_fields = FIELDS(struct watch_state, state_list);
#undef S

#define P(kind, member) FIELD(FIELD_##kind, struct watch_pause, member)
static const struct field pause_list[] = { P(NAME, rule), P(BOOL, paused), P(INT, reset) };
static const struct fields pause_fields = FIELDS(struct watch_pause, pause_list);
#undef P

static const struct field control_list[] = {
	FIELD(FIELD_BOOL, struct watch_control, paused),
	FIELD(FIELD_INT, struct watch_control, reset),
	FIELD_LIST_OF(FIELD_LIST, struct watch_control, "rules", rules, n_rules, &pause_fields),
};
static const struct fields control_fields = FIELDS(struct watch_control, control_list);

/*
 * Version 1 had no epochs, version 2 no meters, version 3 did not count what probes use, and version 4 did not say
 * why a look failed.
 */
static void upgrade(struct json j)
{
	const struct json cursors = json_get_array(j, "cursors");
	const uint64_t version = json_get_uint(j, "version");

	if (version < 3)
		json_set_array(j, "meters");
	for (size_t i = 0; i < json_length(cursors); i++) {
		const struct json c = json_at_object(cursors, i);

		if (version < 2)
			json_set_null(c, "epoch");
		if (version < 4) {
			json_set_bool(c, "partial", false);
			json_set_uint(c, "probed_ms", 0);
			json_set_int(c, "probed_since", 0);
		}
		json_set_null(c, "problem");
	}
}

const struct docket_kind watch_kind = { "watch", "watch", 5, &state_fields, upgrade };
const struct docket_kind control_kind = { "watch", "watch", 1, &control_fields, NULL };

DEFINE_FIELDS_DONE(watch_state_done, struct watch_state, state_fields)

DEFINE_FIELDS_DONE(watch_control_done, struct watch_control, control_fields)

/* --- loading ------------------------------------------------------------------------------- */

int watch_state_load(struct engine *e, const struct docket_lock *l, struct watch_state *ret,
		     bool *ret_alive, struct err *err)
{
	int r = docket_read(e, &watch_kind, WATCH_NAME, l, ret, ret_alive, err);

	return r == -ENOENT ? 0 : r;
}

int watch_control_load(struct engine *e, struct watch_control *ret, struct err *err)
{
	int r = docket_read(e, &control_kind, CONTROL_NAME, NULL, ret, NULL, err);

	return r == -ENOENT ? 0 : r;
}

const struct watch_pause *watch_control_of(const struct watch_control *c, const char *rule)
{
	return VEC_FIND(it, c->rules, c->n_rules, strcmp(it->rule, rule) == 0);
}

/* One that is yet to come was said while the clock was ahead: nobody knows when. */
static int64_t if_past(int64_t at, int64_t now)
{
	return at > now ? 0 : at;
}

int64_t watch_control_reset(const struct watch_control *c, const char *rule, int64_t now)
{
	const struct watch_pause *own = watch_control_of(c, rule);
	const int64_t all = if_past(c->reset, now), one = own ? if_past(own->reset, now) : 0;

	return one > all ? one : all;
}

/* Another trigger under the same name begins anew. */
static char *about(const struct engine_rule *r)
{
	const char *const parts[] = { r->schedule, r->probe, r->ref, r->file, r->match };
	char *text = NULL, *more;

	if (asprintf(&text, "%s %s %llu", engine_trigger_name(r->trigger), r->project,
		     (unsigned long long)r->limit) < 0)
		return NULL;
	for (size_t i = 0; i < ARRAY_LEN(parts) && text; i++) {
		if (!parts[i])
			continue;
		more = text_format("%s %s", text, parts[i]);
		free(text);
		text = more;
	}
	return text;
}

static DEFINE_FIELDS_DONE(cursor_done, struct watch_cursor, cursor_fields)

/* Firings are kept longer than cursors: a count that begins again must not meet its old firings. */
static bool renew_epoch(struct watch_state *s, struct watch_cursor *c)
{
	struct err ignored = { 0 };
	struct catalog_id id;
	char hex[CATALOG_HEX_SIZE];

	if (catalog_id_new(&id, &ignored) < 0)
		return false;
	snprintf(c->epoch, sizeof(c->epoch), "%s", catalog_id_hex(&id, hex));
	s->moved = true;
	return true;
}

static void not_later(struct watch_state *s, int64_t *at, int64_t now)
{
	s->moved |= *at > now;
	*at = *at > now ? now : *at;
}

struct watch_cursor *watch_cursor(struct watch_state *s, const struct engine_rule *rule,
				  int64_t now)
{
	AUTO_FREE char *what = about(rule);
	struct watch_cursor *c = NULL;

	for (size_t i = 0; i < s->n_cursors && !c; i++)
		if (strcmp(s->cursors[i].rule, rule->name) == 0)
			c = &s->cursors[i];
	if (!what)
		return NULL;
	if (c && strcmp(c->about, what) == 0) {
		if (rule->trigger == ENGINE_TRIGGER_SCHEDULE)
			not_later(s, &c->since, now);
		not_later(s, &c->checked, now);
		return *c->epoch != '\0' || renew_epoch(s, c) ? c : NULL;
	}
	if (c)
		cursor_done(c);
	else if (!VEC_ONE_MORE(s->cursors, s->n_cursors))
		return NULL;
	else
		c = &s->cursors[s->n_cursors++];
	*c = (struct watch_cursor){ .rule = strdup(rule->name), .about = TAKE_PTR(what) };
	return c->rule && c->about && renew_epoch(s, c) ? c : NULL;
}

/* --- what people say ----------------------------------------------------------------------- */

static struct watch_pause *pause_of(struct watch_control *c, const char *rule)
{
	struct watch_pause *p = NULL;

	for (size_t i = 0; i < c->n_rules; i++)
		if (strcmp(c->rules[i].rule, rule) == 0)
			return &c->rules[i];
	if (!VEC_ONE_MORE(c->rules, c->n_rules))
		return NULL;
	p = &c->rules[c->n_rules];
	*p = (struct watch_pause){ .rule = strdup(rule) };
	c->n_rules += p->rule != NULL;
	return p->rule ? p : NULL;
}

static int set_pause(struct watch_control *c, const char *rule, bool resume, struct err *err)
{
	const int64_t now = pipeline_now();
	struct watch_pause *p;

	if (!rule) {
		c->paused = !resume;
		c->reset = resume ? now : c->reset;
		return 0;
	}
	p = pause_of(c, rule);
	if (!p)
		return err_nomem(err);
	p->paused = !resume;
	p->reset = resume ? now : p->reset;
	return 0;
}

/* Another command may be saying something, for a moment. */
static int take_control(struct engine *e, struct docket_lock *lock, struct err *err)
{
	AUTO_FREE char *dir = path_join(e->store_path, control_kind.dir);
	AUTO_FREE char *own = dir ? path_join(dir, CONTROL_NAME) : NULL;
	int r = own ? path_make_dirs(own, 0700, err) : err_nomem(err);

	for (int tries = 0; r >= 0 && tries < 100; tries++) {
		r = docket_take(e, &control_kind, CONTROL_NAME, lock, err);
		if (r != -EBUSY)
			return r;
		usleep(20000);
		r = 0;
	}
	return r < 0 ? r : err_set(err, -EBUSY, "another command says something to the watch");
}

int engine_watch_pause(struct engine *e, const char *rule, bool resume, struct err *err)
{
	CLEANUP(engine_watch_rules_done) struct engine_rules_of_watch rules = { 0 };
	CLEANUP(watch_control_done) struct watch_control c = { 0 };
	CLEANUP(docket_lock_done) struct docket_lock lock = DOCKET_LOCK_INIT;
	struct event ev;
	int r = rule ? engine_watch_rules(e, &rules, err) : 0;

	if (r < 0)
		return r;
	if (rule && !rules_find(&rules, rule))
		return err_set(err, -ENOENT, "there is no rule '%.100s'", rule);
	r = take_control(e, &lock, err);
	if (r < 0)
		return r;
	r = docket_read(e, &control_kind, CONTROL_NAME, &lock, &c, NULL, err);
	if (r < 0 && r != -ENOENT)
		return r;
	r = set_pause(&c, rule, resume, err);
	if (r < 0)
		return r;
	r = docket_save(&lock, &control_kind, CONTROL_NAME, &c, err);
	if (r < 0)
		return r;
	event_begin(&ev, resume ? "watch-resumed" : "watch-paused", (struct event_subject){ 0 });
	json_set_name(ev.data, "rule", rule);
	event_end(&ev, e->store_path);
	return 0;
}

/* --- the end ------------------------------------------------------------------------------- */

int engine_watch_stop(struct engine *e, struct err *err)
{
	CLEANUP(watch_state_done) struct watch_state s = { 0 };
	CLEANUP(docket_lock_done) struct docket_lock lock = DOCKET_LOCK_INIT;
	AUTO_FREE char *path = NULL;
	AUTO_CLOSE int fd = -1;
	const uint64_t until = engine_clock_ms() + STOP_MS;
	bool alive = false;
	int r = watch_state_load(e, NULL, &s, &alive, err);

	if (r < 0 || !alive)
		return r < 0 ? r : 1;
	if (asprintf(&path, "%s/%s/%s/lock", e->store_path, watch_kind.dir, WATCH_NAME) < 0)
		return err_nomem(err);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return err_sys(err, "opening '%s'", path);
	r = sys_signal_holder((pid_t)s.pid, fd, SIGTERM);
	if (r < 0 && r != -ESRCH)
		return err_set(err, r, "the watch %lld cannot be told to end: %s", (long long)s.pid,
			       strerror(-r));
	while (engine_clock_ms() < until) {
		r = docket_take(e, &watch_kind, WATCH_NAME, &lock, err);
		if (r >= 0)
			sys_wait_process((pid_t)s.pid, GONE_MS);
		if (r != -EBUSY)
			return r < 0 ? r : 0;
		sys_wait_process((pid_t)s.pid, 100);
	}
	return err_set(err, -EBUSY, "the watch %lld does not end", (long long)s.pid);
}
