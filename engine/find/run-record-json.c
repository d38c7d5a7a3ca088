/*
 * The record of a run as JSON.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/vec.h"
#include "engine/find/answers-i.h"
#include "engine/find/refusals-i.h"
#include "engine/find/run-record-i.h"
#include "runner/sandbox.h"

#define VERSION 1

static const char *const state_names[] = {
	[ENGINE_RUN_RUNNING] = "running",     [ENGINE_RUN_ENDED] = "ended",
	[ENGINE_RUN_REFUSED] = "refused",     [ENGINE_RUN_LOST] = "lost",
	[ENGINE_RUN_CANCELLED] = "cancelled",
};

const char *run_record_state_name(enum engine_run_state state)
{
	return state_names[state];
}

static void set_strings(struct json j, const char *key, const struct strlist *s)
{
	const struct json list = json_set_array(j, key);

	for (size_t i = 0; i < s->n; i++)
		json_add_name(list, s->list[i]);
}

static int get_strings(struct json j, const char *key, struct strlist *ret)
{
	const struct json list = json_get_array(j, key);
	const size_t n = json_length(list);

	int r = 0;

	for (size_t i = 0; i < n && r == 0; i++) {
		char *text = json_at_name(list, i);

		/* json_end() reports what is no text. */
		r = text ? strlist_take(ret, text) : 0;
	}
	return r;
}

/* The lists of what was asked for, by their keys. */
static struct strlist *asked_list(struct engine_asked *a, size_t i, const char **ret_key)
{
	static const char *const keys[] = { "passed", "secrets", "set", "hide", "ro", "rw" };
	struct strlist *const lists[] = {
		&a->passed, &a->secrets, &a->set, &a->hide, &a->ro, &a->rw
	};

	if (i >= ARRAY_LEN(lists))
		return NULL;
	*ret_key = keys[i];
	return lists[i];
}

static void set_asked(struct json j, const struct engine_asked *asked)
{
	struct engine_asked a = *asked;
	const struct strlist *list;
	const char *key;

	json_set_bool(j, "scrubbed", a.scrubbed);
	for (size_t i = 0; (list = asked_list(&a, i, &key)); i++)
		set_strings(j, key, list);
}

static int get_asked(struct json j, struct engine_asked *a)
{
	struct strlist *list;
	const char *key;
	int r = 0;

	a->known = true;
	a->scrubbed = json_get_bool(j, "scrubbed");
	for (size_t i = 0; r >= 0 && (list = asked_list(a, i, &key)); i++)
		r = get_strings(j, key, list);
	return r;
}

static void set_limits(struct json j, const struct engine_run_limits *l)
{
	json_set_uint(j, "mem", l->mem);
	json_set_uint(j, "cpus_milli", l->cpus_milli);
	json_set_uint(j, "pids", l->pids);
	json_set_uint(j, "time_ms", l->time_ms);
	json_set_uint(j, "disk", l->disk);
	json_set_uint(j, "inodes", l->inodes);
	json_set_uint(j, "fsize", l->fsize);
	json_set_uint(j, "nofile", l->nofile);
	json_set_uint(j, "output", l->output);
	json_set_uint(j, "net_out", l->net_out);
}

static void get_limits(struct json j, struct engine_run_limits *l)
{
	l->mem = json_get_uint(j, "mem");
	l->cpus_milli = json_get_uint(j, "cpus_milli");
	l->pids = json_get_uint(j, "pids");
	l->time_ms = json_get_uint(j, "time_ms");
	l->disk = json_get_uint(j, "disk");
	if (json_has(j, "inodes")) /* older records lack this limit */
		l->inodes = json_get_uint(j, "inodes");
	l->fsize = json_get_uint(j, "fsize");
	l->nofile = json_get_uint(j, "nofile");
	l->output = json_get_uint(j, "output");
	if (json_has(j, "net_out")) /* the same */
		l->net_out = json_get_uint(j, "net_out");
}

static void set_published(struct json j, const struct engine_run *r)
{
	const struct json list = json_set_array(j, "published");

	for (size_t i = 0; i < r->n_published; i++) {
		const struct json one = json_add_object(list);

		json_set_uint(one, "port", r->published[i].port);
		json_set_uint(one, "host_port", r->published[i].host_port);
	}
}

/* Records of earlier versions have none of it. */
static void get_published(struct json j, struct engine_run *r)
{
	const struct json list =
	    json_has(j, "published") ? json_get_array(j, "published") : (struct json){ 0 };

	for (size_t i = 0; json_has(j, "published") && i < json_length(list) &&
			   r->n_published < ENGINE_PUBLISHED_MAX;
	     i++) {
		const struct json one = json_at_object(list, i);

		r->published[r->n_published++] = (struct engine_published){
			.port = (uint16_t)json_get_uint(one, "port"),
			.host_port = (uint16_t)json_get_uint(one, "host_port"),
		};
	}
}

static void set_artifacts(struct json j, const struct engine_run *r)
{
	const struct json list = json_set_array(j, "artifacts");

	for (size_t i = 0; i < r->n_artifacts; i++) {
		const struct json one = json_add_object(list);

		json_set_name(one, "path", r->artifacts[i].path);
		json_set_text(one, "artifact", r->artifacts[i].id);
		json_set_text(one, "problem", r->artifacts[i].problem);
	}
}

/* Records of earlier versions have none of it. */
static int get_artifacts(struct json j, struct engine_run *r)
{
	const struct json list =
	    json_has(j, "artifacts") ? json_get_array(j, "artifacts") : (struct json){ 0 };

	for (size_t i = 0; json_has(j, "artifacts") && i < json_length(list); i++) {
		const struct json one = json_at_object(list, i);
		const char *id = json_get_text(one, "artifact");
		const char *problem = json_get_text_or_null(one, "problem");
		struct engine_run_artifact *a;

		if (!VEC_ONE_MORE(r->artifacts, r->n_artifacts))
			return -ENOMEM;
		a = &r->artifacts[r->n_artifacts++];
		*a = (struct engine_run_artifact){ .path = json_get_name(one, "path"),
						   .problem = problem ? strdup(problem) : NULL };
		snprintf(a->id, sizeof(a->id), "%s", id ? id : "");
	}
	return 0;
}

static void set_machine(struct json j, const struct engine_machine *m)
{
	json_set_text(j, "ticket", m->ticket);
	json_set_name(j, "worker", m->worker);
	json_set_name(j, "host", m->host);
	json_set_uint(j, "attempt", m->attempt);
	json_set_bool(j, "lost", m->lost);
	json_set_uint(j, "received", m->received);
	json_set_uint(j, "worker_received", m->worker_received);
	json_set_uint(j, "worker_sent", m->worker_sent);
}

static void get_machine(struct json j, struct engine_machine *m)
{
	const char *ticket = json_get_text(j, "ticket");

	snprintf(m->ticket, sizeof(m->ticket), "%s", ticket ? ticket : "");
	m->worker = json_get_name_or_null(j, "worker");
	m->host = json_get_name_or_null(j, "host");
	m->attempt = json_get_uint(j, "attempt");
	m->lost = json_get_bool(j, "lost");
	m->received = json_get_uint(j, "received");
	m->worker_received = json_get_uint(j, "worker_received");
	m->worker_sent = json_get_uint(j, "worker_sent");
}

static void set_result(struct json j, const struct engine_run *r)
{
	struct json walls;

	json_set_int(j, "exit_code", r->exit_code);
	json_set_int(j, "signal", r->signal);
	json_set_bool(j, "timed_out", r->timed_out);
	json_set_bool(j, "oom_killed", r->oom_killed);
	json_set_text(j, "limit", r->limit);
	walls = json_set_array(j, "walls");
	for (size_t i = 0; i < r->n_walls; i++)
		json_add_text(walls, r->walls[i]);
	json_set_int(j, "landlock", r->landlock);
	json_set_text(j, "cgroup", r->cgroup);
	json_set_text(j, "ids", r->ids);
	json_set_bool(j, "owners_lost", r->owners_lost);
	walls = json_set_array(j, "missing");
	for (size_t i = 0; i < r->missing.n; i++) {
		struct json one = json_add_object(walls);

		json_set_text(one, "wall", r->missing.list[i].wall);
		json_set_name(one, "reason", r->missing.list[i].reason);
	}
	json_set_uint(j, "duration_ms", r->duration_ms);
	json_set_uint(j, "cpu_ms", r->cpu_ms);
	json_set_uint(j, "max_rss", r->max_rss);
	json_set_uint(j, "max_mem", r->max_mem);
	json_set_text(j, "problem", r->problem);
	if (r->curve)
		json_set_text(j, "curve", r->curve);
	refusals_set(j, &r->refusals);
	answers_set(j, &r->answers);
	json_set_uint(j, "net_sent", r->net_sent);
	set_artifacts(j, r);
	json_set_bool(j, "compared", r->compared);
	json_set_uint(j, "added", r->added);
	json_set_uint(j, "modified", r->modified);
	json_set_uint(j, "deleted", r->deleted);
	json_set_bool(j, "truncated", r->truncated);
	json_set_uint(j, "logged_out", r->logged[0]);
	json_set_uint(j, "logged_err", r->logged[1]);
	json_set_bool(j, "log_truncated", r->log_truncated);
}

static void get_walls(struct json j, struct engine_run *r)
{
	const struct json walls = json_get_array(j, "walls");

	for (size_t i = 0; i < json_length(walls) && r->n_walls < ENGINE_WALLS_MAX; i++) {
		AUTO_FREE char *name = json_at_name(walls, i);
		const int wall = name ? sandbox_wall_find(name) : -1;

		if (wall >= 0)
			r->walls[r->n_walls++] = sandbox_wall_name((enum sandbox_wall)wall);
	}
}

/* Older records have none of this. */
static void get_isolation(struct json j, struct engine_run *r)
{
	struct engine_missing *m = &r->missing;
	const char *cgroup, *ids;
	struct json list;

	if (!json_has(j, "missing"))
		return;
	cgroup = json_get_text(j, "cgroup");
	snprintf(r->cgroup, sizeof(r->cgroup), "%s", cgroup ? cgroup : "");
	r->landlock = (int)json_get_int(j, "landlock");
	ids = json_has(j, "ids") ? json_get_text(j, "ids") : NULL;
	snprintf(r->ids, sizeof(r->ids), "%s", ids ? ids : "");
	r->owners_lost = json_has(j, "owners_lost") && json_get_bool(j, "owners_lost");
	list = json_get_array(j, "missing");
	for (size_t i = 0; i < json_length(list) && m->n < ARRAY_LEN(m->list); i++) {
		const struct json one = json_at_object(list, i);
		AUTO_FREE char *reason = json_get_name(one, "reason");
		const char *name = json_get_text(one, "wall");
		const int wall = name ? sandbox_wall_find(name) : -1;

		if (wall < 0)
			continue;
		m->list[m->n].wall = sandbox_wall_name((enum sandbox_wall)wall);
		snprintf(m->list[m->n++].reason, sizeof(m->list[0].reason), "%s",
			 reason ? reason : "");
	}
}

static int get_result(struct json j, struct engine_run *r)
{
	const char *problem = json_get_text_or_null(j, "problem");
	const char *limit = json_get_text(j, "limit");
	const char *curve = json_get_text_or_null(j, "curve");

	r->exit_code = (int)json_get_int(j, "exit_code");
	r->signal = (int)json_get_int(j, "signal");
	r->timed_out = json_get_bool(j, "timed_out");
	r->oom_killed = json_get_bool(j, "oom_killed");
	snprintf(r->limit, sizeof(r->limit), "%s", limit ? limit : "");
	get_walls(j, r);
	get_isolation(j, r);
	r->duration_ms = json_get_uint(j, "duration_ms");
	r->cpu_ms = json_get_uint(j, "cpu_ms");
	r->max_rss = json_get_uint(j, "max_rss");
	r->max_mem = json_get_uint(j, "max_mem");
	r->problem = problem ? strdup(problem) : NULL;
	r->curve = curve ? strdup(curve) : NULL;
	r->compared = json_get_bool(j, "compared");
	r->added = json_get_uint(j, "added");
	r->modified = json_get_uint(j, "modified");
	r->deleted = json_get_uint(j, "deleted");
	r->truncated = json_get_bool(j, "truncated");
	r->logged[0] = json_get_uint(j, "logged_out");
	r->logged[1] = json_get_uint(j, "logged_err");
	r->log_truncated = json_get_bool(j, "log_truncated");
	if (json_has(j, "net_sent"))
		r->net_sent = json_get_uint(j, "net_sent");
	if (answers_get(j, &r->answers) < 0 || get_artifacts(j, r) < 0)
		return -ENOMEM;
	return refusals_get(j, &r->refusals);
}

void run_record_encode(struct json j, const struct engine_run *r)
{
	json_set_uint(j, "version", VERSION);
	json_set_text(j, "state", state_names[r->state]);
	json_set_name(j, "clone", r->clone);
	json_set_name(j, "project", r->project);
	json_set_text(j, "project_id", r->project_id);
	json_set_name(j, "cwd", r->cwd);
	json_set_bool(j, "made", r->made);
	json_set_bool(j, "removed", r->removed);
	json_set_text(j, "before", r->before);
	json_set_text(j, "profile", r->profile);
	json_set_text(j, "net", r->net);
	set_published(j, r);
	set_strings(j, "argv", &r->argv);
	set_strings(j, "env", &r->env);
	if (r->asked.known)
		set_asked(json_set_object(j, "asked"), &r->asked);
	set_strings(j, "secret_for", &r->secret_for);
	set_strings(j, "tls_inspect", &r->tls_inspect);
	set_limits(json_set_object(j, "limits"), &r->limits);
	json_set_int(j, "pid", r->pid);
	json_set_bool(j, "detached", r->detached);
	json_set_bool(j, "root", r->root);
	json_set_int(j, "started", r->started);
	json_set_int(j, "ended", r->ended);
	if (*r->trace != '\0')
		json_set_text(j, "traceparent", r->trace);
	if (*r->machine.ticket != '\0')
		set_machine(json_set_object(j, "machine"), &r->machine);
	set_result(json_set_object(j, "result"), r);
}

static int get_state(struct json j, struct engine_run *r)
{
	const char *text = json_get_text(j, "state");

	for (size_t i = 0; text && i < ARRAY_LEN(state_names); i++) {
		if (strcmp(text, state_names[i]) != 0)
			continue;
		r->state = (enum engine_run_state)i;
		return 0;
	}
	return -EPROTO;
}

int run_record_decode(struct json j, struct engine_run *r)
{
	const char *before = json_get_text(j, "before"), *net = json_get_text(j, "net");
	const char *project = NULL;
	int x = json_get_uint(j, "version") == VERSION ? get_state(j, r) : -EPROTO;

	if (x < 0)
		return x;
	r->clone = json_get_name(j, "clone");
	r->project = json_get_name(j, "project");
	if (json_has(j, "project_id")) /* records of earlier versions have none */
		project = json_get_text(j, "project_id");
	snprintf(r->project_id, sizeof(r->project_id), "%s", project ? project : "");
	r->cwd = json_get_name(j, "cwd");
	r->made = json_get_bool(j, "made");
	r->removed = json_get_bool(j, "removed");
	snprintf(r->before, sizeof(r->before), "%s", before ? before : "");
	r->profile = json_has(j, "profile") ? json_get_name_or_null(j, "profile") : NULL;
	r->net = strdup(net ? net : "");
	get_published(j, r);
	r->pid = (pid_t)json_get_int(j, "pid");
	r->detached = json_has(j, "detached") && json_get_bool(j, "detached");
	r->root = json_has(j, "root") && json_get_bool(j, "root");
	r->started = json_get_int(j, "started");
	r->ended = json_get_int(j, "ended");
	if (json_has(j, "traceparent"))
		IGNORE_RESULT(traceparent_take(json_get_text(j, "traceparent"), r->trace),
			      "what is none stays empty");
	get_limits(json_get_object(j, "limits"), &r->limits);
	if (json_has(j, "machine"))
		get_machine(json_get_object(j, "machine"), &r->machine);
	x = get_result(json_get_object(j, "result"), r);
	if (x < 0)
		return x;
	x = get_strings(j, "argv", &r->argv);
	if (x < 0)
		return x;
	if (json_has(j, "secret_for")) /* else it is older than these */
		x = get_strings(j, "secret_for", &r->secret_for);
	if (x >= 0 && json_has(j, "tls_inspect"))
		x = get_strings(j, "tls_inspect", &r->tls_inspect);
	if (x >= 0 && json_has(j, "asked")) /* the same */
		x = get_asked(json_get_object(j, "asked"), &r->asked);
	return x < 0 ? x : get_strings(j, "env", &r->env);
}
