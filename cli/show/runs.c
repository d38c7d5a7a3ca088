#include "cli/show/runs.h"

#include <signal.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/path.h"
#include "cli/show/questions.h"
#include "cli/show/refusals.h"
#include "cli/show/usage.h"

#define ADDRESS_MAX    24
#define JSON_PATHS_MAX 1000
#define SHOWN_COMMAND  60 /* bytes, where no terminal says how wide it is */
#define LEAST_COMMAND  8

static const char *const state_names[] = {
	[ENGINE_RUN_RUNNING] = "running",     [ENGINE_RUN_ENDED] = "ended",
	[ENGINE_RUN_REFUSED] = "refused",     [ENGINE_RUN_LOST] = "lost",
	[ENGINE_RUN_CANCELLED] = "cancelled",
};

static void set_limits(struct json j, const struct engine_run_limits *l)
{
	out_json_limit(j, "mem", l->mem);
	if (l->cpus_milli > 0)
		json_set_double(j, "cpus", (double)l->cpus_milli / 1000, 3);
	else
		json_set_null(j, "cpus");
	out_json_limit(j, "pids", l->pids);
	out_json_limit(j, "time_ms", l->time_ms);
	out_json_limit(j, "disk", l->disk);
	out_json_limit(j, "inodes", l->inodes);
	out_json_limit(j, "fsize", l->fsize);
	out_json_limit(j, "nofile", l->nofile);
	out_json_limit(j, "output", l->output);
	out_json_limit(j, "net_out", l->net_out);
}

/* And how is known. */
static bool has_ended(const struct engine_run *r)
{
	return r->state != ENGINE_RUN_RUNNING && r->state != ENGINE_RUN_LOST;
}

static void set_ending(struct json j, const struct engine_run *r)
{
	const bool ended = has_ended(r);

	json_set_int_if(j, "exit_code", ended, r->exit_code);
	json_set_int_if(j, "signal", r->signal > 0, r->signal);
	json_set_bool(j, "timed_out", r->timed_out);
	json_set_bool(j, "oom_killed", r->oom_killed);
	json_set_text(j, "limit", *r->limit != '\0' ? r->limit : NULL);
	json_set_text(j, "problem", r->problem);
	if (ended)
		out_json_time(j, "ended", r->ended);
	else
		json_set_null(j, "ended");
	json_set_uint(j, "duration_ms", r->duration_ms);
	json_set_uint(j, "cpu_ms", r->cpu_ms);
	json_set_uint(j, "max_rss", r->max_rss);
	out_json_limit(j, "max_mem", r->max_mem);
	json_set_text(j, "traceparent", *r->trace != '\0' ? r->trace : NULL);
	json_set_bool(j, "truncated", r->truncated);
}

/* Where a published port is reached. */
static const char *runs_address(const struct engine_published *p, char text[ADDRESS_MAX])
{
	snprintf(text, ADDRESS_MAX, "127.0.0.1:%u", p->host_port);
	return text;
}

static void set_published(struct json j, const struct engine_run *r)
{
	const struct json list = json_set_array(j, "published");

	for (size_t i = 0; i < r->n_published; i++) {
		const struct json one = json_add_object(list);
		char address[ADDRESS_MAX];

		json_set_uint(one, "port", r->published[i].port);
		json_set_uint(one, "host_port", r->published[i].host_port);
		json_set_text(one, "address", runs_address(&r->published[i], address));
	}
}

void runs_print_published(FILE *out, const struct engine_run *r, const char *end)
{
	char address[ADDRESS_MAX];

	for (size_t i = 0; i < r->n_published; i++)
		fprintf(out, "port %u of the run is %s%s", r->published[i].port,
			runs_address(&r->published[i], address), end);
}

static void set_artifacts(struct json j, const struct engine_run *r)
{
	const struct json list = json_set_array(j, "artifacts");

	for (size_t i = 0; i < r->n_artifacts; i++) {
		const struct json one = json_add_object(list);

		json_set_name(one, "path", r->artifacts[i].path);
		out_json_id(one, "artifact", r->artifacts[i].id);
		json_set_text(one, "problem", r->artifacts[i].problem);
	}
}

static void set_isolation(struct json j, const struct engine_run *r)
{
	struct json list;

	json_set_text(j, "driver", "namespaces");
	list = json_set_array(j, "walls");
	for (size_t i = 0; i < r->n_walls; i++)
		json_add_text(list, r->walls[i]);
	json_set_text(j, "cgroup", *r->cgroup != '\0' ? r->cgroup : NULL);
	json_set_int(j, "landlock", r->landlock);
	json_set_text(j, "ids", *r->ids != '\0' ? r->ids : NULL);
	json_set_text(j, "as", *r->as != '\0' ? r->as : NULL);
	json_set_bool(j, "owners_lost", r->owners_lost);
	list = json_set_array(j, "missing");
	for (size_t i = 0; i < r->missing.n; i++) {
		struct json one = json_add_object(list);

		json_set_text(one, "wall", r->missing.list[i].wall);
		json_set_name(one, "reason", r->missing.list[i].reason);
	}
}

void runs_set_json(struct json j, const struct engine_run *r)
{
	struct json part;

	json_set_text(j, "run", r->id);
	json_set_text(j, "state", state_names[r->state]);
	json_set_name(j, "clone", r->clone);
	json_set_bool(j, "kept", !r->removed);
	json_set_name(j, "project", r->project);
	json_set_name(j, "workdir", r->cwd);
	out_json_id(j, "before", r->before);
	json_set_names(j, "command", r->argv.list, r->argv.n);
	json_set_names(j, "env", r->env.list, r->env.n);
	json_set_names(j, "secret_for", r->secret_for.list, r->secret_for.n);
	json_set_names(j, "tls_inspect", r->tls_inspect.list, r->tls_inspect.n);
	json_set_text(j, "profile", r->profile);
	json_set_text(j, "net", r->net);
	set_published(j, r);
	set_artifacts(j, r);
	json_set_bool(j, "root", r->root);
	set_limits(json_set_object(j, "limits"), &r->limits);
	json_set_bool(j, "detached", r->detached);
	out_json_time(j, "started", r->started);
	set_ending(j, r);
	set_isolation(json_set_object(j, "isolation"), r);
	refusals_set_json(j, &r->refusals);
	questions_set_json(j, &r->answers);
	/* Only a list of hosts has a proxy that counts. */
	json_set_uint_if(j, "net_sent", r->net && strchr(r->net, ':'), r->net_sent);
	part = json_set_object(j, "logged");
	json_set_uint(part, "stdout", r->logged[0]);
	json_set_uint(part, "stderr", r->logged[1]);
	json_set_bool(part, "truncated", r->log_truncated);
}

void runs_set_changed(struct json j, const struct engine_run *r)
{
	struct json changed, list, one;

	if (!r->compared) {
		json_set_null(j, "changed");
		return;
	}
	changed = json_set_object(j, "changed");
	json_set_uint(changed, "added", r->added);
	json_set_uint(changed, "modified", r->modified);
	json_set_uint(changed, "deleted", r->deleted);
	if (!r->changed.list && r->added + r->modified + r->deleted > 0)
		return;
	list = json_set_array(changed, "paths");
	for (size_t i = 0; i < r->changed.n && i < JSON_PATHS_MAX; i++) {
		const struct engine_path *p = &r->changed.list[i];
		const char status[2] = { p->status };

		one = json_add_object(list);
		json_set_name(one, "path", out_path(p->path));
		json_set_text(one, "status", status);
	}
	json_set_bool(changed, "truncated", r->changed.truncated || r->changed.n > JSON_PATHS_MAX);
}

const char *runs_clone(const struct engine_run *r)
{
	const size_t len = strlen(r->clone), id_len = strlen(r->id);
	const bool its_own = len > id_len && strcmp(r->clone + len - id_len, r->id) == 0;

	return its_own && (r->removed || r->state == ENGINE_RUN_RUNNING) ? "-" : r->clone;
}

size_t runs_command_room(const struct invocation *inv, size_t others)
{
	const size_t columns = out_columns(fileno(inv->out), others + SHOWN_COMMAND + 3);

	return columns > others + LEAST_COMMAND + 3 ? columns - others - 3 : LEAST_COMMAND;
}

void runs_print_command(FILE *out, const struct engine_run *r, size_t most)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT;
	int x = 0;

	for (size_t i = 0; i < r->argv.n && b.len <= most && x >= 0; i++) {
		x = i > 0 ? buf_append_u8(&b, ' ') : 0;
		if (x >= 0)
			x = path_append_shown(&b, r->argv.list[i], strlen(r->argv.list[i]));
	}
	if (b.len > most)
		fprintf(out, "%.*s...", (int)most, (const char *)b.data);
	else
		fprintf(out, "%.*s", (int)b.len, (const char *)b.data);
}

uint64_t runs_count(const struct engine_runs *runs, const struct engine_clone *c)
{
	uint64_t n = 0;

	for (size_t i = 0; i < runs->n; i++)
		n += strcmp(runs->list[i].clone, c->name) == 0 &&
		     runs->list[i].started >= c->created;
	return n;
}

const char *runs_outcome(const struct engine_run *r, char text[OUT_COUNT_MAX])
{
	if (r->state != ENGINE_RUN_ENDED)
		return state_names[r->state];
	if (*r->limit != '\0')
		snprintf(text, OUT_COUNT_MAX, "%d %s", r->exit_code, r->limit);
	else
		snprintf(text, OUT_COUNT_MAX, "%d", r->exit_code);
	return text;
}

int runs_code(const struct engine_run *r)
{
	return has_ended(r) ? r->exit_code : 128 + SIGKILL;
}

void runs_set_end(struct json j, const struct engine_run *r)
{
	json_set_text(j, "run", r->id);
	json_set_text(j, "state", state_names[r->state]);
	json_set_int_if(j, "exit_code", has_ended(r), r->exit_code);
	json_set_text(j, "problem", r->problem);
}

/* --- output ------------------------------------------------------------------------------ */

struct log_text {
	struct buf both, streams[2];
};

static void log_text_done(struct log_text *t)
{
	buf_done(&t->both);
	buf_done(&t->streams[0]);
	buf_done(&t->streams[1]);
}

static int keep_bytes(bool of_stderr, const void *data, size_t len, void *ctx, struct err *err)
{
	struct log_text *t = ctx;

	if (buf_append(&t->both, data, len) < 0 ||
	    buf_append(&t->streams[of_stderr], data, len) < 0)
		return err_nomem(err);
	return 0;
}

int runs_print_log(const struct invocation *inv, const struct engine_run *run,
		   const struct engine_log_options *options, bool usage, struct err *err)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	CLEANUP(engine_run_done) struct engine_run now = { 0 };
	CLEANUP(log_text_done) struct log_text text = { 0 };
	struct json j = out_json_begin(inv, &doc);
	uint64_t next = 0;
	int r = engine_run_log(inv->engine, run, options, keep_bytes, &text, &next, err);

	if (r < 0)
		return r;
	r = engine_run_find(inv->engine, run->id, &now, err);
	if (r < 0)
		return r;
	runs_set_end(j, &now);
	json_set_text_len(j, "output", (const char *)text.both.data, text.both.len);
	json_set_text_len(j, "stdout", (const char *)text.streams[0].data, text.streams[0].len);
	json_set_text_len(j, "stderr", (const char *)text.streams[1].data, text.streams[1].len);
	json_set_uint(j, "next", next);
	json_set_bool(j, "truncated", now.log_truncated);
	refusals_set_json(j, &now.refusals);
	questions_set_now(inv, j, &now);
	r = usage ? usage_set_json(inv, j, &now, err) : 0;
	return r < 0 ? r : json_print(&doc, inv->out, err);
}
