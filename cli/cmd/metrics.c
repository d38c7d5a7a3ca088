#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/attr.h"
#include "base/buf.h"
#include "base/fdio.h"
#include "base/log.h"
#include "cli/cmd/inner.h"
#include "cli/http/token.h"
#include "cli/out.h"
#include "cli/show/families.h"
#include "cli/show/otlp.h"
#include "cli/show/queues.h"
#include "cli/ui/ui.h"
#include "engine/api/metrics.h"
#include "engine/api/spans.h"

struct metrics_args {
	const char *listen, *token_file, *otlp, *queue, *creds;
	bool send, wait, insecure;
};

static const struct opt metrics_opts[] = {
	OPT_STR(0, "listen", "ADDRESS:PORT", struct metrics_args, listen,
		"serve the numbers there for Prometheus; port 0 picks a free one"),
	OPT_STR(0, "token-file", "FILE", struct metrics_args, token_file,
		"read the token from FILE, or create it there"),
	OPT_STR(
	    0, "otlp", "FILE|URL", struct metrics_args, otlp,
	    "write recorded runs as spans to FILE ('-': print), or send new ones to a collector"),
	OPT_FLAG(0, "send", struct metrics_args, send,
		 "send new spans to the configured collector"),
	OPT_FLAG(0, "wait", struct metrics_args, wait,
		 "with --send: wait while another command sends"),
	OPT_STR(0, "queue", "QUEUE", struct metrics_args, queue,
		"also ask this queue of tickets: nats://HOST[:PORT][/NAME]"),
	OPT_STR(0, "creds", "FILE", struct metrics_args, creds, "NATS credentials file"),
	OPT_FLAG(0, "insecure", struct metrics_args, insecure,
		 "allow a queue elsewhere without credentials"),
	OPT_END,
};
_Static_assert(sizeof(struct metrics_args) <= CMD_ARGS_MAX, "grow CMD_ARGS_MAX");

/* --- of the store ----------------------------------------------------------------------- */

static void add_store(struct families *p, const struct engine_metrics *m)
{
	const struct family_of_one list[] = {
		{ "up", "gauge", "Whether the daemon of the store runs.", m->up },
		{ "projects", "gauge", "Projects in the store.", m->projects },
		{ "clones", "gauge", "Clones in the store.", m->clones },
		{ "snapshots", "gauge", "Snapshots in the store.", m->snapshots },
		{ "snapshots_automatic", "gauge", "Snapshots that nobody asked for.",
		  m->automatic },
		{ "store_logical_bytes", "gauge", "Bytes that all snapshots show together.",
		  m->logical },
		{ "store_stored_bytes", "gauge",
		  "Bytes that hold them, compressed and without repetition.", m->stored },
		{ "store_chunks", "gauge", "Pieces of content in the store.", m->chunks },
		{ "store_objects", "gauge", "Trees and other objects in the store.", m->objects },
		{ "store_disk_bytes", "gauge", "Size of the store's files.", m->disk },
		{ "store_free_bytes", "gauge", "Of that, what holds nothing.", m->free },
		{ "events_total", "counter", "Number of the newest event.", m->events },
		{ "run_refusals", "gauge", "What the recorded runs wanted and did not get.",
		  m->refusals },
		{ "runs_failed", "gauge", "Recorded runs that ended with another code than 0.",
		  m->failed },
	};

	families_add_singles(p, list, ARRAY_LEN(list));
}

static void add_labelled(struct families *p, const struct engine_metrics *m)
{
	static const char *const states[ENGINE_RUN_STATES] = { "running", "ended", "refused",
							       "lost", "cancelled" };
	const struct family_sample receipts[] = { { "kind", "promotion", m->promotions },
						  { "kind", "rollback", m->rollbacks },
						  { "kind", "undo", m->undos } };

	families_begin(p, "runs", "gauge", "Records of runs, by state.");
	for (size_t i = 0; i < ARRAY_LEN(states); i++)
		families_add(p, "runs", (struct family_sample){ "state", states[i], m->runs[i] });
	families_begin(p, "receipts", "gauge", "Changes of projects that are recorded, by kind.");
	for (size_t i = 0; i < ARRAY_LEN(receipts); i++)
		families_add(p, "receipts", receipts[i]);
}

/* --- of the daemon ---------------------------------------------------------------------- */

static void add_daemon(struct families *p, const struct engine_daemon_metrics *d)
{
	const struct family_of_one list[] = {
		{ "clones_mounted", "gauge", "Clones that are mounted.", d->mounted },
		{ "dirty_bytes", "gauge", "Bytes of file content not persisted yet.",
		  d->dirty_bytes },
		{ "nodes", "gauge", "Files and directories in memory.", d->nodes },
		{ "commits_total", "counter", "Times that a clone was persisted.", d->commits },
		{ "gc_sweeps_total", "counter", "Sweeps of garbage.", d->sweeps },
		{ "store_waits_total", "counter", "Operations that had to read the store.",
		  d->store_waits },
		{ "room_waits_total", "counter", "Operations that had to wait for room in memory.",
		  d->room_waits },
		{ "cache_hits_total", "counter", "Objects found in memory.", d->cache_hits },
		{ "cache_misses_total", "counter", "Objects loaded from the store.",
		  d->cache_misses },
		{ "cache_bytes", "gauge", "Size of the objects in memory.", d->cache_bytes },
	};

	families_add_singles(p, list, ARRAY_LEN(list));
}

/* Prometheus wants each bucket with all below it. */
static void print_histogram(const struct families *p, const char *name,
			    const struct engine_meter *m)
{
	static const char *const bounds[ENGINE_METER_BUCKETS] = { "1e-05", "0.0001", "0.001",
								  "0.01",  "0.1",    "1",
								  "+Inf" };
	const uint64_t buckets[ENGINE_METER_BUCKETS] = { m->us10,  m->us100, m->ms1,   m->ms10,
							 m->ms100, m->s1,    m->longer };
	uint64_t sum = 0;

	for (size_t i = 0; i < ARRAY_LEN(bounds); i++) {
		sum += buckets[i];
		fprintf(p->inv->out, FAMILY_PREFIX "%s_bucket{op=\"%s\",le=\"%s\"} %" PRIu64 "\n",
			name, m->op, bounds[i], sum);
	}
	fprintf(p->inv->out, FAMILY_PREFIX "%s_sum{op=\"%s\"} %" PRIu64 ".%09" PRIu64 "\n", name,
		m->op, m->sum_ns / 1000000000, m->sum_ns % 1000000000);
	fprintf(p->inv->out, FAMILY_PREFIX "%s_count{op=\"%s\"} %" PRIu64 "\n", name, m->op, sum);
}

static void add_operations(struct families *p, const struct engine_daemon_metrics *d)
{
	static const char name[] = "fuse_operation_seconds";

	if (d->n_ops == 0)
		return;
	families_begin(p, name, "histogram", "Requests to mounted clones, and how long they took.");
	for (size_t i = 0; i < d->n_ops; i++) {
		if (p->inv->json)
			families_add(p, name,
				     (struct family_sample){ "op", d->ops[i].op, d->ops[i].count });
		else
			print_histogram(p, name, &d->ops[i]);
	}
}

static void add_traffic(struct families *p, const struct engine_daemon_metrics *d)
{
	static const struct {
		const char *name, *type, *help;
		size_t offset;
	} all[] = {
		{ "clone_operations_total", "counter", "Requests to a mounted clone.",
		  offsetof(struct engine_traffic, requests) },
		{ "clone_read_bytes_total", "counter", "Bytes read from a mounted clone.",
		  offsetof(struct engine_traffic, read) },
		{ "clone_written_bytes_total", "counter", "Bytes written to a mounted clone.",
		  offsetof(struct engine_traffic, written) },
		{ "clone_waiting", "gauge", "Requests to a mounted clone that wait.",
		  offsetof(struct engine_traffic, waiting) },
		{ "clone_rests_total", "counter",
		  "Times that requests to a mounted clone were held back for other clones.",
		  offsetof(struct engine_traffic, rests) },
	};

	for (size_t k = 0; d->n_traffic > 0 && k < ARRAY_LEN(all); k++) {
		families_begin(p, all[k].name, all[k].type, all[k].help);
		for (size_t i = 0; i < d->n_traffic; i++) {
			const char *at = (const char *)&d->traffic[i] + all[k].offset;
			uint64_t value;

			memcpy(&value, at, sizeof(value));
			families_add(p, all[k].name,
				     (struct family_sample){ "clone", d->traffic[i].clone, value });
		}
	}
}

static int print_metrics(struct invocation *inv, struct err *err)
{
	const struct metrics_args *args = inv->args;
	const struct engine_worker_status_options queue = { .queue = args->queue,
							    .creds = args->creds,
							    .insecure = args->insecure };
	CLEANUP(engine_metrics_done) struct engine_metrics m = { 0 };
	CLEANUP(json_done) struct json_doc doc = { 0 };
	struct json j = out_json_begin(inv, &doc);
	struct families page = { .inv = inv, .list = json_set_array(j, "families") };
	int r = engine_metrics(inv->engine, &m, err);

	if (r < 0)
		return r;
	add_store(&page, &m);
	add_labelled(&page, &m);
	r = queues_add_watch(&page, err);
	if (r < 0)
		return r;
	if (m.up) {
		add_daemon(&page, &m.daemon);
		add_operations(&page, &m.daemon);
		add_traffic(&page, &m.daemon);
	}
	if (args->queue)
		queues_add_workers(&page, &queue);
	return inv->json ? json_print(&doc, inv->out, err) : CMD_OK;
}

/* --- runs as spans ---------------------------------------------------------------------- */

/* The list has the newest first. */
static void put_oldest_first(struct engine_runs *runs)
{
	for (size_t i = 0; i < runs->n / 2; i++) {
		const struct engine_run one = runs->list[i];

		runs->list[i] = runs->list[runs->n - 1 - i];
		runs->list[runs->n - 1 - i] = one;
	}
}

static bool is_url(const char *to)
{
	return strncmp(to, "http://", 7) == 0 || strncmp(to, "https://", 8) == 0;
}

static int send_spans(struct invocation *inv, const struct engine_collector *to, bool wait,
		      struct err *err)
{
	struct engine_spans done = { 0 };
	int r = engine_spans_send(inv->engine, to, wait, otlp_append, &done, err);

	if (done.refused > 0)
		log_warn("the collector refused %" PRIu64 " spans for good, continuing",
			 done.refused);
	if (!inv->quiet && (r >= 0 || done.sent > 0))
		fprintf(inv->out, "sent %" PRIu64 " span%s to %s\n", done.sent,
			done.sent == 1 ? "" : "s", to->url);
	return r;
}

static int send_configured(struct invocation *inv, struct err *err)
{
	CLEANUP(engine_collector_done) struct engine_collector to = { 0 };
	int r = engine_collector(inv->engine, &to, err);

	if (r < 0)
		return r;
	if (!to.url)
		return err_set(err, -ENOENT,
			       "no collector is set: write 'metrics: {otlp: URL}' into "
			       "~/.config/snapcow/config.yaml");
	return send_spans(inv, &to, ((const struct metrics_args *)inv->args)->wait, err);
}

static int write_spans(struct invocation *inv, const char *path, struct err *err)
{
	const struct engine_runs_options all = { .all = true };
	CLEANUP(engine_runs_done) struct engine_runs runs = { 0 };
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	int r = engine_runs(inv->engine, &all, &runs, err);

	if (r < 0)
		return r;
	put_oldest_first(&runs);
	r = otlp_append(runs.list, runs.n, &text, err);
	if (r < 0)
		return r;
	if (strcmp(path, "-") == 0)
		return fwrite(text.data, 1, text.len, inv->out) == text.len
			   ? CMD_OK
			   : err_sys(err, "writing the spans");
	/* Command lines can hold what others should not read. */
	return fdio_replace_file(AT_FDCWD, path, text.data, text.len, 0600, err);
}

/* --- serving ---------------------------------------------------------------------------- */

struct server {
	struct inner inner;
	char token[TOKEN_SIZE];
	char *queue, *creds; /* owned, for the words of a command */
	bool insecure;
};

static void server_done(struct server *s)
{
	inner_done(&s->inner);
	free(s->queue);
	free(s->creds);
}

static int serve_numbers(FILE *out, void *ctx)
{
	const struct server *s = ctx;
	char name[] = "metrics", queue[] = "--queue", creds[] = "--creds",
	     insecure[] = "--insecure";
	char *line[6] = { name };
	int n = 1;

	if (s->queue) {
		line[n++] = queue;
		line[n++] = s->queue;
	}
	if (s->creds) {
		line[n++] = creds;
		line[n++] = s->creds;
	}
	if (s->insecure)
		line[n++] = insecure;
	return inner_print(&s->inner, n, line, out);
}

static void print_ready(const char *url, void *ctx)
{
	const struct server *s = ctx;
	const struct invocation *inv = s->inner.inv;

	fprintf(inv->out, "%smetrics\n", url);
	fprintf(stderr, "token  %s\n", s->token);
	fflush(inv->out);
}

static int serve(struct invocation *inv, const struct metrics_args *args, struct err *err)
{
	CLEANUP(server_done) struct server server = { .inner = { .inv = inv } };
	const struct ui_options options = {
		.token = server.token,
		.listen = args->listen,
		.read_only = true,
		.only_metrics = true,
		.on_ready = print_ready,
		.print_metrics = serve_numbers,
		.ctx = &server,
	};
	int r = args->token_file ? token_from_file(args->token_file, server.token, err)
				 : token_make(server.token, err);

	server.insecure = args->insecure;
	server.queue = args->queue ? strdup(args->queue) : NULL;
	server.creds = args->creds ? strdup(args->creds) : NULL;
	if (!server.queue != !args->queue || !server.creds != !args->creds)
		return err_nomem(err);
	return r < 0 ? r : ui_serve(&options, err);
}

static int metrics_run(struct invocation *inv, struct err *err)
{
	const struct metrics_args *args = inv->args;

	if (args->listen && (args->otlp || args->send || inv->json))
		return err_set(err, -EINVAL, "'--listen' contradicts '--%s'",
			       args->otlp   ? "otlp"
			       : args->send ? "send"
					    : "json");
	if (args->send && (args->otlp || inv->json))
		return err_set(err, -EINVAL, "'--send' contradicts '--%s'",
			       args->otlp ? "otlp" : "json");
	if (args->wait && !args->send)
		return err_set(err, -EINVAL, "'--wait' needs '--send'");
	if ((args->creds || args->insecure) && !args->queue)
		return err_set(err, -EINVAL, "'--%s' needs '--queue'",
			       args->creds ? "creds" : "insecure");
	if (args->queue && (args->otlp || args->send))
		return err_set(err, -EINVAL, "'--queue' contradicts '--%s'",
			       args->otlp ? "otlp" : "send");
	if (args->token_file && !args->listen)
		return err_set(err, -EINVAL, "'--token-file' needs '--listen'");
	if (args->otlp && inv->json)
		return err_set(err, -EINVAL, "'--otlp' contradicts '--json'");
	if (args->listen)
		return serve(inv, args, err);
	if (args->send)
		return send_configured(inv, err);
	if (!args->otlp)
		return print_metrics(inv, err);
	if (!is_url(args->otlp))
		return write_spans(inv, args->otlp, err);
	return send_spans(inv, &(struct engine_collector){ .url = (char *)(uintptr_t)args->otlp },
			  false, err);
}

const struct command cmd_metrics = {
	.name = "metrics",
	.group = "Store",
	.rare = true,
	.summary = "print numbers about the store and its daemon for Prometheus",
	.opts = metrics_opts,
	.details =
	    "The daemon's counters begin at 0 when it starts. This command does not start it; if it\n"
	    "does not run, snapcow_up is 0. With node_exporter: `metrics > DIR/snapcow.prom`.\n"
	    "--listen answers GET /metrics until ^C, for clients that have the token (Prometheus:\n"
	    "`credentials_file`). --otlp FILE writes a span for each recorded run, as a line of\n"
	    "JSON that OpenTelemetry collectors take; only you can read FILE. --otlp URL sends the\n"
	    "runs that have ended since its last call; --send does so to `metrics.otlp` of\n"
	    "config.yaml, and so does each run when it ends.\n",
	.examples = "metrics\n"
		    "metrics --listen 127.0.0.1:9464 --token-file ~/.config/snapcow-metrics\n"
		    "metrics --queue nats://127.0.0.1:4222\n"
		    "metrics --otlp http://127.0.0.1:4318\n",
	.run = metrics_run,
};
