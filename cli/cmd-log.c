#include <errno.h>
#include <string.h>

#include "base/size.h"
#include "cli/graph.h"
#include "cli/pager.h"

struct log_args {
	uint64_t count;
	bool all, graph;
};

static const struct opt log_opts[] = {
	OPT_U64('n', "count", "N", struct log_args, count, "list the newest N only"),
	OPT_FLAG('a', "all", struct log_args, all, "those of the project and of all its clones"),
	OPT_FLAG('g', "graph", struct log_args, graph, "the same, and draw what follows what"),
	OPT_END,
};
_Static_assert(sizeof(struct log_args) <= CMD_ARGS_MAX, "grow CMD_ARGS_MAX");

static int print_json(const struct invocation *inv, const struct engine_history *h, size_t n,
		      struct err *err)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	struct json j = out_json_begin(inv, &doc), list;

	json_set_name(j, "project", h->project);
	list = json_set_array(j, "snapshots");
	for (size_t i = 0; i < n; i++)
		out_json_snapshot(json_add_object(list), &h->list[i]);
	return json_print(&doc, inv->out, err);
}

static void print_text(const struct invocation *inv, const struct engine_snapshot *s)
{
	const char *between = "  ";

	for (size_t i = 0; i < s->n_tags; i++) {
		fprintf(inv->out, "%s%s[", between, out_style(inv, OUT_GOOD));
		out_name(inv->out, s->tags[i]);
		fprintf(inv->out, "]%s", out_style(inv, OUT_PLAIN));
		between = " ";
	}
	if (*s->message != '\0') {
		AUTO_FREE char *line = strndup(s->message, strcspn(s->message, "\n"));

		out_text(inv->out, line ? line : "(out of memory)", between);
	} else {
		fputc('\n', inv->out);
	}
}

/* What it was taken of is said where both are listed. */
static void print_origin(const struct invocation *inv, const struct engine_snapshot *s)
{
	if (!s->clone)
		return;
	fprintf(inv->out, "  %s", out_style(inv, OUT_DIM));
	out_name(inv->out, s->clone);
	fputs(out_style(inv, OUT_PLAIN), inv->out);
}

static void print_row(const struct engine_snapshot *s, void *ctx)
{
	const struct invocation *inv = ctx;
	char when[OUT_TIME_MAX];

	fprintf(inv->out, "%s%.*s%s  %s", out_style(inv, OUT_ID), OUT_SHORT_ID, s->id,
		out_style(inv, OUT_PLAIN), out_when(s->created, when));
	print_origin(inv, s);
	print_text(inv, s);
}

static void print_human(const struct invocation *inv, const struct engine_history *h, size_t n)
{
	const struct log_args *args = inv->args;
	char when[OUT_TIME_MAX], count[OUT_COUNT_MAX], size[SIZE_TEXT_MAX];
	int when_width = (int)strlen("TAKEN"), count_width = (int)strlen("FILES"), len;

	for (size_t i = 0; i < n; i++) {
		len = (int)strlen(out_when(h->list[i].created, when));
		when_width = len > when_width ? len : when_width;
		len = (int)strlen(out_count(h->list[i].files, count));
		count_width = len > count_width ? len : count_width;
	}
	fprintf(inv->out, "%s%-*s  %-*s  %*s  %*s  %s%s\n", out_style(inv, OUT_DIM), OUT_SHORT_ID,
		"SNAPSHOT", when_width, "TAKEN", count_width, "FILES", OUT_SIZE_WIDTH, "SIZE",
		"TAGS AND MESSAGE", out_style(inv, OUT_PLAIN));
	for (size_t i = 0; i < n; i++) {
		const struct engine_snapshot *s = &h->list[i];

		fprintf(inv->out, "%s%.*s%s  %-*s  %*s  %*s", out_style(inv, OUT_ID), OUT_SHORT_ID,
			s->id, out_style(inv, OUT_PLAIN), when_width, out_when(s->created, when),
			count_width, out_count(s->files, count), OUT_SIZE_WIDTH,
			size_format(s->bytes, size));
		if (args->all)
			print_origin(inv, s);
		print_text(inv, s);
	}
}

static int log_run(struct invocation *inv, struct err *err)
{
	CLEANUP(engine_history_done) struct engine_history h = { 0 };
	CLEANUP(pager_end) struct pager pager = { .saved = -1 };
	const struct log_args *args = inv->args;
	size_t n;
	int r;

	if ((args->all || args->graph) && inv->n_words > 0) {
		cmd_hint(inv, "log %s", inv->words[0]);
		return err_set(err, -EINVAL, "'log --%s' is of all clones, not of '%s'",
			       args->all ? "all" : "graph", inv->words[0]);
	}
	r = args->all || args->graph
		? engine_log_all(inv->engine, &h, err)
		: engine_log(inv->engine, inv->n_words > 0 ? inv->words[0] : NULL, &h, err);
	if (r == -ENOENT)
		cmd_hint(inv, "list --all");
	if (r < 0)
		return r;
	n = args->count > 0 && args->count < h.n ? (size_t)args->count : h.n;
	if (inv->json)
		return print_json(inv, &h, n, err);
	if (!inv->quiet)
		pager_begin(&pager, inv);
	if (args->graph && !inv->quiet)
		r = graph_print(inv, h.list, n, print_row, inv, err);
	else if (!inv->quiet)
		print_human(inv, &h, n);
	for (size_t i = 0; i < n && inv->quiet; i++)
		fprintf(inv->out, "%s\n", h.list[i].id);
	return pager_was_left(&pager) ? CMD_OK : r;
}

const struct command cmd_log = {
	.name = "log",
	.group = "Snapshots",
	.summary = "list the snapshots of the project or a clone, newest first",
	.words = "[CLONE]",
	.max_words = 1,
	.opts = log_opts,
	.details = "`@` is the newest of them, `@-1` the one before. -q prints ids alone.\n",
	.examples = "log\nlog -n 5 --json\nlog --graph\n",
	.run = log_run,
};
