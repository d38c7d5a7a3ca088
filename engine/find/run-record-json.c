/*
 * The record of a run as JSON.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/fields.h"
#include "engine/find/run-record-i.h"
#include "runner/sandbox.h"

#define VERSION 1

/* --- members of types of their own ------------------------------------------------------- */

static const char *const state_names[] = {
	[ENGINE_RUN_RUNNING] = "running",     [ENGINE_RUN_ENDED] = "ended",
	[ENGINE_RUN_REFUSED] = "refused",     [ENGINE_RUN_LOST] = "lost",
	[ENGINE_RUN_CANCELLED] = "cancelled",
};

const char *run_record_state_name(enum engine_run_state state)
{
	return state_names[state];
}

static void set_state(struct json j, const char *key, const void *member)
{
	json_set_text(j, key, state_names[*(const enum engine_run_state *)member]);
}

static int get_state(struct json j, const char *key, void *member)
{
	const char *text = json_get_text(j, key);
	enum engine_run_state *state = member;

	for (size_t i = 0; text && i < ARRAY_LEN(state_names); i++) {
		if (strcmp(text, state_names[i]) != 0)
			continue;
		*state = (enum engine_run_state)i;
		return 0;
	}
	json_refuse(j, key, "is no state of a run");
	return 0;
}

static const struct field_codec by_state = { .set = set_state, .get = get_state };

static void set_trace(struct json j, const char *key, const void *member)
{
	const char *trace = member;

	if (*trace != '\0')
		json_set_text(j, key, trace);
}

static int get_trace(struct json j, const char *key, void *member)
{
	if (json_has(j, key))
		IGNORE_RESULT(traceparent_take(json_get_text(j, key), member),
			      "what is none stays empty");
	return 0;
}

static const struct field_codec by_trace = { .set = set_trace, .get = get_trace };

/* NULL: another version knows one of that name. */
static const char *wall_of(const char *name)
{
	const int wall = name ? sandbox_wall_find(name) : -1;

	return wall < 0 ? NULL : sandbox_wall_name((enum sandbox_wall)wall);
}

static void set_walls(struct json j, const char *key, const void *whole)
{
	const struct json list = json_set_array(j, key);
	const struct engine_run *r = whole;

	for (size_t i = 0; i < r->n_walls; i++)
		json_add_text(list, r->walls[i]);
}

static int get_walls(struct json j, const char *key, void *whole)
{
	const struct json list = json_get_array(j, key);
	struct engine_run *r = whole;

	for (size_t i = 0; i < json_length(list) && r->n_walls < ENGINE_WALLS_MAX; i++) {
		r->walls[r->n_walls] = wall_of(json_at_text(list, i));
		r->n_walls += r->walls[r->n_walls] != NULL;
	}
	return 0;
}

static const struct field_codec by_walls = { .set = set_walls, .get = get_walls };

static void set_missing(struct json j, const char *key, const void *member)
{
	const struct json list = json_set_array(j, key);
	const struct engine_missing *m = member;

	for (size_t i = 0; i < m->n; i++) {
		const struct json one = json_add_object(list);

		json_set_text(one, "wall", m->list[i].wall);
		json_set_name(one, "reason", m->list[i].reason);
	}
}

static int get_missing(struct json j, const char *key, void *member)
{
	struct engine_missing *m = member;
	struct json list;

	if (!json_has(j, key)) /* an older record */
		return 0;
	list = json_get_array(j, key);
	for (size_t i = 0; i < json_length(list) && m->n < ARRAY_LEN(m->list); i++) {
		const struct json one = json_at_object(list, i);
		AUTO_FREE char *reason = json_get_name(one, "reason");
		const char *wall = wall_of(json_get_text(one, "wall"));

		if (!wall)
			continue;
		m->list[m->n].wall = wall;
		snprintf(m->list[m->n++].reason, sizeof(m->list[0].reason), "%s",
			 reason ? reason : "");
	}
	return 0;
}

static const struct field_codec by_missing = { .set = set_missing, .get = get_missing };

/* --- the tables -------------------------------------------------------------------------- */

#define LIMIT(member)       FIELD(FIELD_UINT, struct engine_run_limits, member)
#define LATER_LIMIT(member) FIELD(FIELD_UINT | FIELD_LATER, struct engine_run_limits, member)
static const struct field limit_list[] = {
	LIMIT(mem),          LIMIT(cpus_milli), LIMIT(pids),   LIMIT(time_ms), LIMIT(disk),
	LATER_LIMIT(inodes), LIMIT(fsize),      LIMIT(nofile), LIMIT(output),  LATER_LIMIT(net_out),
};
const struct fields run_limits_fields = FIELDS(struct engine_run_limits, limit_list);

#define M(kind, member) FIELD(FIELD_##kind, struct engine_machine, member)
static const struct field machine_list[] = {
	M(ID, ticket),
	M(NAME_OR_NULL, worker),
	M(NAME_OR_NULL, host),
	M(UINT, attempt),
	M(BOOL, lost),
	M(UINT, received),
	M(UINT, worker_received),
	M(UINT, worker_sent),
	M(BOOL | FIELD_LATER, distrusted),
};
const struct fields run_machine_fields = FIELDS(struct engine_machine, machine_list);

static void set_machine(struct json j, const char *key, const void *member)
{
	const struct engine_machine *m = member;

	if (*m->ticket != '\0')
		fields_set(json_set_object(j, key), &run_machine_fields, m);
}

static int get_machine(struct json j, const char *key, void *member)
{
	return json_has(j, key) ? fields_get(json_get_object(j, key), &run_machine_fields, member)
				: 0;
}

static const struct field_codec by_machine = { .set = set_machine, .get = get_machine };

#define ASKED(member) FIELD_STRINGS(FIELD_STRLIST, struct engine_asked, #member, member)
static const struct field asked_list[] = {
	FIELD(FIELD_BOOL, struct engine_asked, scrubbed),
	ASKED(passed),
	ASKED(secrets),
	ASKED(set),
	ASKED(hide),
	ASKED(ro),
	ASKED(rw),
};
static const struct fields asked_fields = FIELDS(struct engine_asked, asked_list);

static void set_asked(struct json j, const char *key, const void *member)
{
	const struct engine_asked *a = member;

	if (a->known)
		fields_set(json_set_object(j, key), &asked_fields, a);
}

static int get_asked(struct json j, const char *key, void *member)
{
	struct engine_asked *a = member;

	a->known = json_has(j, key);
	return a->known ? fields_get(json_get_object(j, key), &asked_fields, a) : 0;
}

static const struct field_codec by_asked = { .set = set_asked, .get = get_asked };

static const struct field published_list[] = {
	FIELD(FIELD_UINT, struct engine_published, port),
	FIELD(FIELD_UINT, struct engine_published, host_port),
};
static const struct fields published_fields = FIELDS(struct engine_published, published_list);

static const struct field artifact_list[] = {
	FIELD(FIELD_NAME, struct engine_run_artifact, path),
	FIELD_AS(FIELD_CHARS, struct engine_run_artifact, "artifact", id),
	FIELD(FIELD_TEXT_OR_NULL, struct engine_run_artifact, problem),
};
static const struct fields artifact_fields = FIELDS(struct engine_run_artifact, artifact_list);

#define F(kind, member) FIELD(FIELD_##kind, struct engine_refusal, member)
static const struct field refusal_list[] = { F(TEXT, kind), F(TEXT, what),    F(TEXT, rule),
					     F(TEXT, flag), F(TEXT, message), F(UINT, count) };
static const struct fields refusal_fields = FIELDS(struct engine_refusal, refusal_list);

static const char *answered_by(const char *text)
{
	const char *by = text ? engine_answered_by(text) : NULL;

	return by ? by : "end";
}

#define A(kind, member) FIELD(FIELD_##kind, struct engine_answered, member)
static const struct field answer_list[] = {
	A(CHARS, id),        A(TEXT, kind),
	A(NAME, what),       A(BOOL, allowed),
	A(BOOL, remembered), FIELD_WORD_OF(struct engine_answered, by, answered_by),
	A(UINT, waited_ms),
};
static const struct fields answer_fields = FIELDS(struct engine_answered, answer_list);

#define R(kind, member)     FIELD(FIELD_##kind, struct engine_run, member)
#define LATER(kind, member) FIELD(FIELD_##kind | FIELD_LATER, struct engine_run, member)
#define R_LIST(kind, key, member, count, of) \
	FIELD_LIST_OF(FIELD_##kind | FIELD_LATER, struct engine_run, key, member, count, of)
static const struct field result_list[] = {
	R(INT, exit_code),
	R(INT, signal),
	R(BOOL, timed_out),
	R(BOOL, oom_killed),
	R(CHARS, limit),
	FIELD_WHOLE("walls", &by_walls),
	LATER(INT, landlock),
	LATER(CHARS, cgroup),
	LATER(CHARS, ids),
	LATER(BOOL, owners_lost),
	FIELD_BY(struct engine_run, "missing", missing, &by_missing),
	R(UINT, duration_ms),
	R(UINT, cpu_ms),
	R(UINT, max_rss),
	R(UINT, max_mem),
	R(TEXT_OR_NULL, problem),
	R(TEXT_OR_NULL, curve),
	R_LIST(LIST, "refusals", refusals.list, refusals.n, &refusal_fields),
	FIELD_AS(FIELD_UINT | FIELD_LATER, struct engine_run, "refusals_more", refusals.more),
	R_LIST(LIST, "answers", answers.list, answers.n, &answer_fields),
	FIELD_AS(FIELD_UINT | FIELD_LATER, struct engine_run, "unasked", answers.unasked),
	LATER(UINT, net_sent),
	R_LIST(LIST, "artifacts", artifacts, n_artifacts, &artifact_fields),
	R(BOOL, compared),
	R(UINT, added),
	R(UINT, modified),
	R(UINT, deleted),
	R(BOOL, truncated),
	FIELD_AS(FIELD_UINT, struct engine_run, "logged_out", logged[0]),
	FIELD_AS(FIELD_UINT, struct engine_run, "logged_err", logged[1]),
	R(BOOL, log_truncated),
};
static const struct fields result_fields = FIELDS(struct engine_run, result_list);

#define R_STRINGS(kind, member) FIELD_STRINGS(FIELD_##kind, struct engine_run, #member, member)
static const struct field run_list[] = {
	FIELD_BY(struct engine_run, "state", state, &by_state),
	R(NAME, clone),
	R(NAME, project),
	LATER(CHARS, project_id),
	R(NAME, cwd),
	R(BOOL, made),
	R(BOOL, removed),
	R(CHARS, before),
	R(TEXT_OR_NULL, profile),
	R(TEXT, net),
	R_LIST(ARRAY, "published", published, n_published, &published_fields),
	R_STRINGS(STRLIST, argv),
	R_STRINGS(STRLIST, env),
	FIELD_BY(struct engine_run, "asked", asked, &by_asked),
	R_STRINGS(STRLIST | FIELD_LATER, secret_for),
	R_STRINGS(STRLIST | FIELD_LATER, tls_inspect),
	FIELD_OF(struct engine_run, "limits", limits, &run_limits_fields),
	R(INT, pid),
	LATER(BOOL, detached),
	LATER(BOOL, root),
	LATER(CHARS, as),
	R(INT, started),
	R(INT, ended),
	FIELD_BY(struct engine_run, "traceparent", trace, &by_trace),
	FIELD_BY(struct engine_run, "machine", machine, &by_machine),
	FIELD_PART("result", &result_fields),
};
static const struct fields run_fields = FIELDS(struct engine_run, run_list);

void run_record_encode(struct json j, const struct engine_run *r)
{
	json_set_uint(j, "version", VERSION);
	fields_set(j, &run_fields, r);
}

int run_record_decode(struct json j, struct engine_run *r)
{
	return json_get_uint(j, "version") == VERSION ? fields_get(j, &run_fields, r) : -EPROTO;
}
