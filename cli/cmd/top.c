#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/size.h"
#include "base/vec.h"
#include "cli/interrupt.h"
#include "cli/show/runs.h"
#include "engine/api/clone.h"
#include "engine/api/metrics.h"
#include "engine/api/question.h"

#define EVERY_MS      2000
#define LEAST_MS      100
#define CLONES_MS     10000 /* between two looks at clones */
#define SHOWN_COMMAND 48    /* bytes */
#define OPS_SHOWN     6
#define ROWS_IF_NONE  24 /* of a terminal that does not say */

struct top_args {
	uint64_t every;
	uint64_t count; /* 0: until it is ended */
};

static const struct opt top_opts[] = {
	OPT_DURATION(0, "every", "TIME", struct top_args, every,
		     "time between two pages (default: 2s)"),
	OPT_U64('n', "count", "N", struct top_args, count, "end after N pages"),
	OPT_END,
};
_Static_assert(sizeof(struct top_args) <= CMD_ARGS_MAX, "grow CMD_ARGS_MAX");

static void preset(void *to)
{
	((struct top_args *)to)->every = EVERY_MS;
}

/* What is there at one moment. */
struct look {
	uint64_t at_ms;
	struct engine_metrics metrics;
	struct engine_runs runs;
	struct engine_run_use *uses; /* owned; of each run */
	struct engine_questions questions;
	struct engine_clones clones;
	uint64_t listed_ms; /* when those were asked for */
};

static void look_done(struct look *l)
{
	engine_metrics_done(&l->metrics);
	engine_runs_done(&l->runs);
	engine_questions_done(&l->questions);
	engine_clones_done(&l->clones);
	free(l->uses);
}

/* The newest, and the one before it, in turns. */
struct looks {
	struct look list[2];
};

static void looks_done(struct looks *l)
{
	look_done(&l->list[0]);
	look_done(&l->list[1]);
}

/* It ended between two questions, or while it answered one. */
static bool has_gone(int code)
{
	return code == -ESRCH || code == -ECONNRESET || code == -ESHUTDOWN;
}

/*
 * What only the daemon knows.  Its answer stores every clone first, to know what each has of its own, so it is asked
 * seldom.  Looking never starts a daemon.
 */
static int ask_more(struct engine *e, struct look *before, struct look *l, struct err *err)
{
	int r = l->runs.n > 0 ? engine_questions(e, &l->questions, err) : 0;

	if (r < 0)
		return r;
	if (before && before->listed_ms > 0 && clock_ms() - before->listed_ms < CLONES_MS) {
		l->clones = TAKE_STRUCT(before->clones);
		l->listed_ms = before->listed_ms;
		return 0;
	}
	l->listed_ms = clock_ms();
	return engine_clone_list_running(e, &l->clones, err);
}

static int take_look(struct engine *e, struct look *before, struct look *l, struct err *err)
{
	const struct engine_runs_options options = { .all = true, .running = true };
	int r = engine_metrics_brief(e, &l->metrics, err);

	if (r >= 0)
		r = engine_runs(e, &options, &l->runs, err);
	if (r >= 0 && l->metrics.up)
		r = ask_more(e, before, l, err);
	if (has_gone(r)) {
		look_done(l);
		*l = (struct look){ 0 };
		r = engine_runs(e, &options, &l->runs, err);
	}
	if (r < 0)
		return r;
	l->at_ms = clock_ms();
	l->uses = calloc(l->runs.n + 1, sizeof(*l->uses));
	if (!l->uses)
		return err_nomem(err);
	for (size_t i = 0; i < l->runs.n; i++)
		engine_run_look(&l->runs.list[i], &l->uses[i]);
	return 0;
}

/* --- what changed between two looks ----------------------------------------------------------- */

struct pair {
	const struct look *before, *now; /* `before` NULL: this is the first */
};

static double seconds(const struct pair *p)
{
	return p->before && p->now->at_ms > p->before->at_ms
		   ? (double)(p->now->at_ms - p->before->at_ms) / 1000
		   : 0;
}

/* Of a counter; one that fell belongs to a daemon that was started anew. */
static double rate(const struct pair *p, uint64_t before, uint64_t now)
{
	const double s = seconds(p);

	return s > 0 && now >= before ? (double)(now - before) / s : 0;
}

static const struct engine_meter *meter_before(const struct pair *p, const char *op)
{
	const struct engine_daemon_metrics *d = p->before ? &p->before->metrics.daemon : NULL;

	return d ? VEC_FIND(it, d->ops, d->n_ops, strcmp(it->op, op) == 0) : NULL;
}

static double op_rate(const struct pair *p, const struct engine_meter *m)
{
	const struct engine_meter *was = meter_before(p, m->op);

	return rate(p, was ? was->count : 0, m->count);
}

/* The same run in the look before; NULL: it was not there. */
static const struct engine_run_use *use_before(const struct pair *p, size_t i)
{
	const char *id = p->now->runs.list[i].id;

	for (size_t k = 0; p->before && k < p->before->runs.n; k++)
		if (strcmp(p->before->runs.list[k].id, id) == 0)
			return &p->before->uses[k];
	return NULL;
}

/* In hundredths of one processor. */
static double run_cpu(const struct pair *p, size_t i)
{
	const struct engine_run_use *was = use_before(p, i);

	return was ? rate(p, was->cpu_ms, p->now->uses[i].cpu_ms) / 10 : 0;
}

/* Bytes a second. */
static double run_written(const struct pair *p, size_t i)
{
	const struct engine_run_use *was = use_before(p, i);

	return was ? rate(p, was->written, p->now->uses[i].written) : 0;
}

static bool waits_for_answer(const struct pair *p, const char *run)
{
	return VEC_HAS(it, p->now->questions.list, p->now->questions.n, strcmp(it->run, run) == 0);
}

/* --- what is asked of a clone, a second ---------------------------------------------------- */

struct demand {
	const char *clone;
	const struct engine_clone *known; /* NULL: it was made since the clones were listed */
	double requests, read, written;
	uint64_t waiting;
};

static const struct engine_traffic *find_traffic(const struct look *l, const char *clone)
{
	const struct engine_daemon_metrics *d = l ? &l->metrics.daemon : NULL;

	return d ? VEC_FIND(it, d->traffic, d->n_traffic, strcmp(it->clone, clone) == 0) : NULL;
}

/* A clone that was mounted again counts from 0, as one does that was not there. */
static struct demand measure(const struct pair *p, const char *clone,
			     const struct engine_clone *known)
{
	const struct engine_traffic *now = find_traffic(p->now, clone),
				    *was = find_traffic(p->before, clone), none = { 0 };
	struct demand d = { .clone = clone, .known = known };

	if (!now)
		return d;
	if (!was || was->requests > now->requests)
		was = &none;
	d.requests = rate(p, was->requests, now->requests);
	d.read = rate(p, was->read, now->read);
	d.written = rate(p, was->written, now->written);
	d.waiting = now->waiting;
	return d;
}

static bool is_listed(const struct look *l, const char *clone)
{
	return VEC_HAS(it, l->clones.list, l->clones.n, strcmp(it->name, clone) == 0);
}

static int busiest_first(const void *a, const void *b)
{
	const struct demand *x = a, *y = b;

	if (x->requests != y->requests)
		return (x->requests < y->requests) - (x->requests > y->requests);
	return strcmp(x->clone, y->clone);
}

/* Of every clone; owned.  NULL: out of memory. */
static struct demand *measure_all(const struct pair *p, size_t *ret_n)
{
	const struct engine_clones *c = &p->now->clones;
	const struct engine_daemon_metrics *d = &p->now->metrics.daemon;
	struct demand *list = calloc(c->n + d->n_traffic + 1, sizeof(*list));
	size_t n = 0;

	for (size_t i = 0; list && i < c->n; i++)
		list[n++] = measure(p, c->list[i].name, &c->list[i]);
	for (size_t i = 0; list && i < d->n_traffic; i++)
		if (!is_listed(p->now, d->traffic[i].clone))
			list[n++] = measure(p, d->traffic[i].clone, NULL);
	if (list)
		qsort(list, n, sizeof(*list), busiest_first);
	*ret_n = n;
	return list;
}

/* --- for programs: an object a line ----------------------------------------------------------- */

static void set_runs(struct json list, const struct pair *p)
{
	for (size_t i = 0; i < p->now->runs.n; i++) {
		const struct engine_run *r = &p->now->runs.list[i];
		const struct engine_run_use *use = &p->now->uses[i];
		const struct json j = json_add_object(list);

		json_set_text(j, "run", r->id);
		json_set_name(j, "clone", r->clone);
		json_set_uint(j, "processes", use->processes);
		json_set_uint(j, "memory", use->memory);
		json_set_double(j, "cpu", run_cpu(p, i), 1);
		json_set_double(j, "written", run_written(p, i), 0);
		json_set_text(j, "waits", waits_for_answer(p, r->id) ? "answer" : NULL);
		json_set_uint_if(j, "left_ms", use->left_ms > 0, use->left_ms);
	}
}

static void set_clones(struct json list, const struct demand *all, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const struct demand *d = &all[i];
		const struct json j = json_add_object(list);

		json_set_name(j, "clone", d->clone);
		if (d->known)
			json_set_uint(j, "own", d->known->own);
		else
			json_set_null(j, "own");
		json_set_bool(j, "mounted", !d->known || d->known->mounted);
		json_set_double(j, "operations", d->requests, 1);
		json_set_double(j, "read", d->read, 0);
		json_set_double(j, "written", d->written, 0);
		json_set_uint(j, "waiting", d->waiting);
	}
}

static int print_json(const struct invocation *inv, const struct pair *p, struct err *err)
{
	const struct engine_daemon_metrics *d = &p->now->metrics.daemon;
	CLEANUP(json_done) struct json_doc doc = { 0 };
	struct json j = out_json_begin(inv, &doc), daemon, list;
	size_t n;
	AUTO_FREE struct demand *demands = measure_all(p, &n);

	if (!demands)
		return err_nomem(err);
	json_set_bool(j, "up", p->now->metrics.up);
	daemon = json_set_object(j, "daemon");
	json_set_uint(daemon, "mounted", d->mounted);
	json_set_uint(daemon, "dirty", d->dirty_bytes);
	json_set_uint(daemon, "nodes", d->nodes);
	json_set_double(daemon, "commits",
			p->before ? rate(p, p->before->metrics.daemon.commits, d->commits) : 0, 1);
	json_set_uint(daemon, "waits", d->room_waits);
	list = json_set_array(j, "operations");
	for (size_t i = 0; i < d->n_ops; i++) {
		const struct json one = json_add_object(list);

		json_set_text(one, "operation", d->ops[i].op);
		json_set_double(one, "rate", op_rate(p, &d->ops[i]), 1);
	}
	set_runs(json_set_array(j, "runs"), p);
	set_clones(json_set_array(j, "clones"), demands, n);
	return json_print(&doc, inv->out, err);
}

/* --- for people -------------------------------------------------------------------------------- */

struct busy {
	const char *op;
	double rate;
};

static int by_rate(const void *a, const void *b)
{
	const double x = ((const struct busy *)a)->rate, y = ((const struct busy *)b)->rate;

	return (x < y) - (x > y);
}

/* The busiest kinds of request, in one line. */
static void print_operations(const struct invocation *inv, const struct pair *p)
{
	const struct engine_daemon_metrics *d = &p->now->metrics.daemon;
	AUTO_FREE struct busy *order = calloc(d->n_ops + 1, sizeof(*order));
	double all = 0;

	if (!order)
		return;
	for (size_t i = 0; i < d->n_ops; i++) {
		order[i] = (struct busy){ .op = d->ops[i].op, .rate = op_rate(p, &d->ops[i]) };
		all += order[i].rate;
	}
	qsort(order, d->n_ops, sizeof(*order), by_rate);
	fprintf(inv->out, "%.0f operations/s", all);
	for (size_t i = 0; i < d->n_ops && i < OPS_SHOWN && order[i].rate >= 0.5; i++)
		fprintf(inv->out, "%s %s %.0f", i > 0 ? "," : ":", order[i].op, order[i].rate);
	fputc('\n', inv->out);
}

static void print_head(const struct invocation *inv, const struct pair *p)
{
	const struct engine_metrics *m = &p->now->metrics;
	char dirty[SIZE_TEXT_MAX], disk[SIZE_TEXT_MAX];

	if (!m->up) {
		fputs("the daemon does not run: the next command that needs it starts it\n",
		      inv->out);
		return;
	}
	fprintf(inv->out,
		"%" PRIu64 " clones, %" PRIu64
		" mounted, %s to be stored, store %s on disk, %.1f commits/s\n",
		m->clones, m->daemon.mounted, size_format(m->daemon.dirty_bytes, dirty),
		size_format(m->disk, disk),
		p->before ? rate(p, p->before->metrics.daemon.commits, m->daemon.commits) : 0.0);
	print_operations(inv, p);
}

static void print_run(const struct invocation *inv, const struct pair *p, size_t i)
{
	const struct engine_run *r = &p->now->runs.list[i];
	const struct engine_run_use *use = &p->now->uses[i];
	char memory[SIZE_TEXT_MAX], written[SIZE_TEXT_MAX], left[DURATION_TEXT_MAX];

	fprintf(inv->out, "%s%-12s%s  %5.1f%%  %10s  %10s  %5" PRIu64 "  %9s  ",
		out_style(inv, OUT_ID), r->id, out_style(inv, OUT_PLAIN), run_cpu(p, i),
		use->known ? size_format(use->memory, memory) : "-",
		size_format((uint64_t)run_written(p, i), written), use->processes,
		use->left_ms > 0 ? duration_format(use->left_ms, left) : "-");
	out_name(inv->out, runs_clone(r));
	fputs("  ", inv->out);
	runs_print_command(inv->out, r, SHOWN_COMMAND);
	fputs(waits_for_answer(p, r->id) ? "  (waits for an answer)\n" : "\n", inv->out);
}

static void print_demand(const struct invocation *inv, const struct demand *d)
{
	char own[SIZE_TEXT_MAX], read[SIZE_TEXT_MAX], written[SIZE_TEXT_MAX];

	fprintf(inv->out, "%10s  %8.0f  %10s  %10s  %5" PRIu64 "  ",
		d->known ? size_format(d->known->own, own) : "-", d->requests,
		size_format((uint64_t)d->read, read), size_format((uint64_t)d->written, written),
		d->waiting);
	out_name(inv->out, d->clone);
	if (d->known && !d->known->mounted)
		fputs("  (not mounted)", inv->out);
	fputc('\n', inv->out);
}

static void print_clones(const struct invocation *inv, const struct pair *p, size_t room)
{
	size_t n, shown;
	AUTO_FREE struct demand *all = measure_all(p, &n);

	if (!all)
		return;
	shown = n < room ? n : room;
	if (shown > 0)
		fprintf(inv->out, "\n%10s  %8s  %10s  %10s  %5s  %s\n", "OWN", "OPS/S", "READ/S",
			"WRITTEN/S", "WAIT", "CLONE");
	for (size_t i = 0; i < shown; i++)
		print_demand(inv, &all[i]);
	if (n > shown)
		fprintf(inv->out, "and %zu clones more\n", n - shown);
}

/* What does not fit into `rows` is counted. */
static void print_page(const struct invocation *inv, const struct pair *p, size_t rows)
{
	const size_t n_runs = p->now->runs.n;
	const size_t room = rows > 8 ? rows - 8 : 1;
	const size_t runs = n_runs < room ? n_runs : room;

	print_head(inv, p);
	if (runs > 0)
		fprintf(inv->out, "\n%-12s  %6s  %10s  %10s  %5s  %9s  %s\n", "RUN", "CPU",
			"MEMORY", "WRITTEN/S", "PROCS", "LEFT", "CLONE, COMMAND");
	for (size_t i = 0; i < runs; i++)
		print_run(inv, p, i);
	if (n_runs > runs)
		fprintf(inv->out, "and %zu runs more\n", n_runs - runs);
	print_clones(inv, p, room - runs);
}

/* --- the loop ---------------------------------------------------------------------------------- */

/* A terminal that is drawn anew each time, and takes keys one by one. */
struct terminal {
	bool is;
	struct termios before;
};

static void terminal_done(struct terminal *t)
{
	if (t->is)
		tcsetattr(STDIN_FILENO, TCSADRAIN, &t->before);
}

static void terminal_begin(struct terminal *t, const struct invocation *inv)
{
	struct termios now;

	if (inv->json || !isatty(STDOUT_FILENO) || tcgetattr(STDIN_FILENO, &t->before) < 0)
		return;
	now = t->before;
	now.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	t->is = tcsetattr(STDIN_FILENO, TCSADRAIN, &now) == 0;
}

static size_t terminal_rows(void)
{
	struct winsize w;

	return ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_row > 0 ? w.ws_row : ROWS_IF_NONE;
}

/* Wait for the next look.  True: somebody wants it to end. */
static bool rest(const struct terminal *t, int signals, uint64_t ms)
{
	struct pollfd fds[] = {
		{ .fd = signals, .events = POLLIN },
		{ .fd = t->is ? STDIN_FILENO : -1, .events = POLLIN },
	};
	const uint64_t until = clock_ms() + ms;
	char key;

	for (;;) {
		const uint64_t now = clock_ms();

		if (now >= until)
			return false;
		if (poll(fds, 2, (int)(until - now)) < 0 && errno != EINTR)
			return true;
		if (fds[0].revents)
			return true;
		if (fds[1].revents &&
		    (read(STDIN_FILENO, &key, 1) <= 0 || key == 'q' || key == 'Q'))
			return true;
	}
}

static int show(const struct invocation *inv, const struct terminal *t, const struct pair *p,
		struct err *err)
{
	if (inv->json)
		return print_json(inv, p, err);
	/* The terminal cuts lines instead of breaking them, or the rows that were counted would be more. */
	if (t->is)
		fputs("\x1b[?7l\x1b[H\x1b[2J", inv->out);
	print_page(inv, p, t->is ? terminal_rows() : SIZE_MAX);
	fputs(t->is ? "\nq ends\x1b[?7h" : "\n", inv->out);
	return 0;
}

static int top_run(struct invocation *inv, struct err *err)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP };
	const struct top_args *args = inv->args;
	CLEANUP(terminal_done) struct terminal terminal = { 0 };
	CLEANUP(looks_done) struct looks looks = { 0 };
	int fd, r = 0;

	if (args->every < LEAST_MS || args->every > INT32_MAX)
		return err_set(err, -EINVAL, "'--every' must be %dms or more", LEAST_MS);
	fd = interrupt_catch(signals, ARRAY_LEN(signals), err);
	if (fd < 0)
		return fd;
	terminal_begin(&terminal, inv);
	for (uint64_t n = 0; r >= 0; n++) {
		struct look *now = &looks.list[n % 2];
		struct look *before = n > 0 ? &looks.list[(n + 1) % 2] : NULL;
		const struct pair pair = { .before = before, .now = now };

		look_done(now);
		*now = (struct look){ 0 };
		r = take_look(inv->engine, before, now, err);
		if (r >= 0)
			r = show(inv, &terminal, &pair, err);
		if (r >= 0 && fflush(inv->out) == EOF)
			r = err_sys(err, "writing the page");
		if (r < 0 || n + 1 == args->count || rest(&terminal, fd, args->every))
			break;
	}
	if (terminal.is)
		fputc('\n', inv->out);
	return r;
}

const struct command cmd_top = {
	.name = "top",
	.group = "Runs",
	.rare = true,
	.summary = "show what runs and what the daemon does, live",
	.opts = top_opts,
	.preset = preset,
	.details =
	    "Shows all projects in the store: runs with processors, memory, writes and the time that is\n"
	    "left; clones with their own bytes, requests, reads and writes per second, and how many\n"
	    "requests wait just now (WAIT); requests by kind. On a terminal the page is drawn anew until\n"
	    "q or ^C. Into a pipe, and with --json, each new page follows the last. Starts no daemon; if\n"
	    "it stops, the page says so and goes on.\n",
	.examples = "top\ntop --every 500ms\ntop --json -n 2\n",
	.run = top_run,
};
