#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "base/vec.h"
#include "cli/agents/agents.h"
#include "cli/fold.h"
#include "cli/pager.h"
#include "cli/show/graph.h"
#include "cli/show/receipts.h"
#include "cli/show/remote-log.h"
#include "cli/show/steps.h"
#include "cli/show/versions.h"
#include "cli/unborn.h"
#include "engine/api/clone.h"
#include "engine/api/remote.h"
#include "engine/api/service.h"

struct log_args {
	uint64_t count;
	bool all, graph, agent;
	struct opt_list meta;
	const char *lines;
};

static const struct opt log_opts[] = {
	OPT_U64('n', "count", "N", struct log_args, count, "list the newest N only"),
	OPT_FLAG('a', "all", struct log_args, all,
		 "automatic ones too, and without CLONE the snapshots of all clones"),
	OPT_FLAG('g', "graph", struct log_args, graph,
		 "the project and all clones, drawn as a graph"),
	OPT_FLAG(0, "agent", struct log_args, agent,
		 "steps of agents that have hooks; the word may be the agent's name"),
	OPT_LIST(0, "meta", "KEY[=VALUE]", struct log_args, meta,
		 "only those with this label, automatic ones too; several must all match"),
	OPT_STR('L', "lines", "A,B:PATH", struct log_args, lines,
		"versions of a file that changed these lines of it"),
	OPT_END,
};
_Static_assert(sizeof(struct log_args) <= CMD_ARGS_MAX, "grow CMD_ARGS_MAX");

/* What rows are printed of. */
struct view {
	const struct invocation *inv;
	struct engine_receipts receipts;
	size_t folded;  /* automatic snapshots that are not listed */
	size_t columns; /* of the terminal, 0: there is none */
};

static void view_done(struct view *v)
{
	engine_receipts_done(&v->receipts);
}

static int print_json(const struct view *v, const struct engine_history *h, size_t n,
		      struct err *err)
{
	const struct invocation *inv = v->inv;
	const struct log_args *args = inv->args;
	CLEANUP(json_done) struct json_doc doc = { 0 };
	struct json j = out_json_begin(inv, &doc);

	json_set_name(j, "project", h->project);
	JSON_SET_LIST(j, "snapshots", h->list, n, out_json_snapshot);
	json_set_uint(j, "folded", v->folded);
	/* Without a limit also those of acts whose snapshots are folded away. */
	receipts_set(j, &v->receipts, h->list, args->count > 0 ? n : h->n);
	return json_print(&doc, inv->out, err);
}

static void print_text(const struct view *v, const struct invocation *inv,
		       const struct engine_snapshot *s)
{
	const char *between = "  ";

	for (size_t i = 0; i < s->n_tags; i++) {
		fprintf(inv->out, "%s%s[", between, out_style(inv, OUT_GOOD));
		out_name(inv->out, s->tags[i]);
		fprintf(inv->out, "]%s", out_style(inv, OUT_PLAIN));
		between = " ";
	}
	if (*s->message != '\0') {
		fputs(between, inv->out);
		out_line(inv->out, s->message);
	}
	if (s->part) {
		fprintf(inv->out, "  %sonly ", out_style(inv, OUT_DIM));
		out_name(inv->out, s->part);
		fputs(out_style(inv, OUT_PLAIN), inv->out);
	}
	if (s->meta) {
		fprintf(inv->out, "  %s", out_style(inv, OUT_DIM));
		out_meta(inv->out, s->meta);
		fputs(out_style(inv, OUT_PLAIN), inv->out);
	}
	receipts_print(inv, &v->receipts, s);
	fputc('\n', inv->out);
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
	const struct view *v = ctx;
	const struct invocation *inv = v->inv;
	char when[OUT_TIME_MAX];

	fprintf(inv->out, "%s%.*s%s  %s", out_style(inv, OUT_ID), OUT_SHORT_ID, s->id,
		out_style(inv, OUT_PLAIN), out_when(s->created, when));
	print_origin(inv, s);
	print_text(v, inv, s);
}

static void print_human(const struct view *v, const struct engine_history *h, size_t n)
{
	const struct invocation *inv = v->inv;
	const struct log_args *args = inv->args;
	char when[OUT_TIME_MAX], count[OUT_COUNT_MAX], size[SIZE_TEXT_MAX];
	int when_width = (int)strlen("TAKEN"), count_width = (int)strlen("FILES");
	CLEANUP(fold_end) struct fold fold = { 0 };

	for (size_t i = 0; i < n; i++) {
		when_width = out_wider(when_width, out_when(h->list[i].created, when));
		count_width = out_wider(count_width, out_count(h->list[i].files, count));
	}
	fold_begin(&fold, inv, v->columns,
		   (size_t)(OUT_SHORT_ID + when_width + count_width + OUT_SIZE_WIDTH) +
		       4 * strlen("  "));
	inv = &fold.to;
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
		print_text(v, inv, s);
	}
	if (args->count == 0)
		receipts_print_elsewhere(inv, &v->receipts);
	if (v->folded == 0)
		return;
	fputs(out_style(inv, OUT_DIM), inv->out);
	out_plural(inv->out, v->folded, "automatic snapshot", "automatic snapshots");
	fprintf(inv->out, " not listed: log --all%s\n", out_style(inv, OUT_PLAIN));
}

/* What a command in a run asked for is the run's work, not ours. */
static bool is_folded(const struct engine_snapshot *s)
{
	return s->automatic && s->n_tags == 0 && !meta_matches(s->meta, "run");
}

/* Move the automatic ones that nobody has given a name behind all others; each kind in its order. */
static int fold(struct view *v, struct engine_history *h, struct err *err)
{
	struct engine_snapshot *list = calloc(h->n + 1, sizeof(*list));
	size_t n = 0;

	if (!list)
		return err_nomem(err);
	for (size_t i = 0; i < h->n; i++)
		if (!is_folded(&h->list[i]))
			list[n++] = h->list[i];
	v->folded = h->n - n;
	for (size_t i = 0; i < h->n; i++)
		if (is_folded(&h->list[i]))
			list[n++] = h->list[i];
	free(h->list);
	h->list = list;
	return 0;
}

static bool has_labels(const struct engine_snapshot *s, const struct opt_list *wanted)
{
	return VEC_ALL(it, wanted->items, wanted->n, meta_matches(s->meta, *it));
}

static void keep_labelled(struct engine_history *h, const struct opt_list *wanted)
{
	size_t n = 0;

	for (size_t i = 0; i < h->n; i++) {
		if (has_labels(&h->list[i], wanted))
			h->list[n++] = h->list[i];
		else
			engine_snapshot_done(&h->list[i]);
	}
	h->n = n;
}

static int load(struct invocation *inv, const char *clone, struct engine_history *h, struct view *v,
		struct err *err)
{
	const struct log_args *args = inv->args;
	int r = args->graph || (!clone && args->all) ? engine_log_all(inv->engine, h, err)
						     : engine_log(inv->engine, clone, h, err);

	if (r == -ENOENT)
		cmd_hint(inv, "list --all");
	/* Receipts belong to the project, not to a clone. */
	if (r < 0 || (clone && !args->graph))
		return r;
	return engine_receipts(inv->engine, &v->receipts, err);
}

static bool names_agent(const char *word)
{
	const struct agent *unused;
	struct err why = { 0 };

	return agent_find(word, &unused, &why) >= 0;
}

/* --- of a file -------------------------------------------------------------------------- */

static int print_path_json(const struct invocation *inv, const struct engine_versions *v,
			   struct err *err)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	struct json j = out_json_begin(inv, &doc);

	json_set_name(j, "project", v->project);
	json_set_array(j, "snapshots");
	json_set_uint(j, "folded", 0);
	json_set_array(j, "receipts");
	json_set_name(j, "path", v->path);
	JSON_SET_LIST(j, "versions", v->list, v->n, versions_set_one);
	return json_print(&doc, inv->out, err);
}

static int log_path(const struct invocation *inv, const char *state, const char *path,
		    struct err *err)
{
	CLEANUP(engine_versions_done) struct engine_versions v = { 0 };
	CLEANUP(pager_end) struct pager pager = { .saved = -1 };
	const struct log_args *args = inv->args;
	struct engine_blame_options o = { .state = state, .path = path, .count = args->count };
	int r = 0;

	if (args->lines)
		r = versions_parse_range(args->lines, &o.from, &o.to, &o.path, err);
	if (r < 0)
		return r;
	if (args->graph || args->agent || args->meta.n > 0)
		return err_set(err, -EINVAL,
			       "'log' of a file takes neither --graph nor --agent nor --meta");
	r = engine_log_path(inv->engine, &o, &v, err);
	if (r < 0)
		return r;
	if (inv->json)
		return print_path_json(inv, &v, err);
	if (!inv->quiet)
		pager_begin(&pager, inv);
	versions_print(inv, &v);
	return pager_was_left(&pager) ? CMD_OK : 0;
}

/* A word that is no clone may be a file; 0 and *ret: it was. */
static int try_path(struct invocation *inv, int r, int *ret, struct err *err)
{
	struct err why = { 0 };

	if (r != -ENOENT || inv->n_words != 1)
		return r;
	*ret = log_path(inv, NULL, inv->words[0], &why);
	if (*ret >= 0)
		*err = (struct err){ 0 };
	return *ret < 0 ? r : 0;
}

/* Is it of a file?  With `--`, or with lines. */
static bool is_of_file(const struct invocation *inv)
{
	const struct log_args *args = inv->args;

	return args->lines || inv->n_words > inv->n_before;
}

static int log_file(const struct invocation *inv, struct err *err)
{
	const struct log_args *args = inv->args;
	const int n = inv->n_words - inv->n_before;

	if (n + (args->lines != NULL) > 1)
		return err_set(err, -EINVAL, "'log' takes one file");
	return log_path(inv, inv->n_before > 0 ? inv->words[0] : NULL,
			n > 0 ? inv->words[inv->n_before] : NULL, err);
}

/* A word that is no clone may be a remote, or a snapshot of one; 1: it was. */
static int try_remote(struct invocation *inv, int *ret, struct err *err)
{
	const struct log_args *args = inv->args;
	struct err why = { 0 };

	/* What has a slash and no colon is rather a path. */
	if (inv->n_words != 1 || (strchr(inv->words[0], '/') && !strchr(inv->words[0], ':')) ||
	    !engine_remote_is(inv->engine, inv->words[0]))
		return 0;
	if (args->graph || args->agent || args->all || args->meta.n > 0)
		*ret = err_set(&why, -EINVAL,
			       "'log' of a remote takes neither --graph nor --agent nor --all nor "
			       "--meta");
	else
		*ret = remote_log_print(inv, inv->words[0], args->count, &why);
	*err = why;
	return 1;
}

/* The first `n` snapshots as people read them, or with -q their ids. */
static int print_history(struct view *v, const struct engine_history *h, size_t n, struct err *err)
{
	CLEANUP(pager_end) struct pager pager = { .saved = -1 };
	const struct invocation *inv = v->inv;
	const struct log_args *args = inv->args;
	int r = 0;

	for (size_t i = 0; i < n && inv->quiet; i++)
		fprintf(inv->out, "%s\n", h->list[i].id);
	if (inv->quiet)
		return 0;
	v->columns = out_columns(fileno(inv->out), 0);
	pager_begin(&pager, inv);
	if (args->graph)
		r = graph_print(inv, h->list, n, print_row, v, err);
	else if (args->agent)
		steps_print(inv, h, n);
	else
		print_human(v, h, n);
	return pager_was_left(&pager) ? CMD_OK : r;
}

static int log_run(struct invocation *inv, struct err *err)
{
	CLEANUP(engine_history_done) struct engine_history h = { 0 };
	AUTO_FREE char *here = engine_clone_here(inv->engine);
	const struct log_args *args = inv->args;
	const bool is_agent = args->agent && inv->n_words > 0 && names_agent(inv->words[0]);
	const char *clone = inv->n_words > 0 && !is_agent ? inv->words[0] : here;
	CLEANUP(view_done) struct view v = { .inv = inv };
	size_t n;
	int r, of_file;

	if (is_of_file(inv)) {
		engine_revive(inv->engine);
		return log_file(inv, err);
	}
	if (args->graph && inv->n_words > 0) {
		cmd_hint_words(inv, "log --all", (const char *[]){ inv->words[0], NULL });
		return err_set(err, -EINVAL, "'log --graph' is of all clones, not of '%s'",
			       inv->words[0]);
	}
	engine_revive(inv->engine);
	r = load(inv, clone, &h, &v, err);
	if ((r == -ENOENT || r == -ENXIO || r == -EINVAL) && try_remote(inv, &of_file, err) == 1)
		return of_file;
	if (r == -ENOENT && inv->n_words > 0) {
		r = try_path(inv, r, &of_file, err);
		return r < 0 ? r : of_file;
	}
	if (inv->n_words == 0)
		r = unborn_or(inv, r, "no snapshots and no clones yet", &h.project, err);
	if (r != 0)
		return r < 0 ? r : CMD_OK;
	keep_labelled(&h, &args->meta);
	if (args->agent)
		steps_keep(&h, is_agent ? inv->words[0] : NULL);
	if (!args->all && !args->graph && !args->agent && args->meta.n == 0)
		r = fold(&v, &h, err);
	if (r < 0)
		return r;
	n = h.n - v.folded;
	n = args->count > 0 && args->count < n ? (size_t)args->count : n;
	return inv->json ? print_json(&v, &h, n, err) : print_history(&v, &h, n, err);
}

const struct command cmd_log = {
	.name = "log",
	.group = "Snapshots",
	.summary = "list the snapshots of the project or a clone, newest first",
	.words = "[CLONE | REMOTE[:NAME] | PATH]",
	.max_words = 1,
	.takes_rest = true,
	.opts = log_opts,
	.details =
	    "`@` is the newest of them, `@-1` the one before. The last line counts automatic\n"
	    "snapshots, which snap takes before a clone, a run, a rollback or a promotion; --all\n"
	    "lists them, and one with a tag is always listed. The result of a promotion, a\n"
	    "rollback or an undo shows its id in brackets, for `undo`. -q prints ids alone.\n"
	    "A word that names a remote lists its snapshots, as `remote log` does.\n"
	    "Any other word is a PATH: the versions of that file, each with the run,\n"
	    "agent, promotion or person that made it; `log CLONE -- PATH` begins at a clone or\n"
	    "any other state. -L 10,20:PATH lists the versions that changed those lines.\n",
	.examples =
	    "log\nlog -n 5 --json\nlog --all idea\nlog --graph\nlog --agent\nlog src/main.c\nlog -L 10,+5:src/main.c\n",
	.run = log_run,
};
