#include <errno.h>

#include "base/size.h"
#include "cli/out.h"
#include "cli/progress.h"
#include "engine/api/run.h"
#include "engine/api/upkeep.h"

struct gc_args {
	uint64_t keep_last, keep_within;
	bool dry_run;
};

static const struct opt gc_opts[] = {
	OPT_U64(0, "keep-last", "N", struct gc_args, keep_last,
		"keep the last N snapshots of each project, and as many automatic ones"),
	OPT_DURATION(0, "keep-within", "TIME", struct gc_args, keep_within,
		     "remove snapshots that are older: 30d, 8w"),
	OPT_FLAG('n', "dry-run", struct gc_args, dry_run, "only say what would be removed"),
	OPT_END,
};
_Static_assert(sizeof(struct gc_args) <= CMD_ARGS_MAX, "grow CMD_ARGS_MAX");

static int print_json(const struct invocation *inv, const struct engine_gc *g, uint64_t runs,
		      struct err *err)
{
	const struct gc_args *args = inv->args;
	CLEANUP(json_done) struct json_doc doc = { 0 };
	struct json j = out_json_begin(inv, &doc);

	json_set_name(j, "store", engine_store_path(inv->engine));
	json_set_bool(j, "dry_run", args->dry_run);
	JSON_SET_LIST(j, "snapshots", g->forgotten.list, g->forgotten.n, out_json_snapshot);
	json_set_uint(j, "runs", runs);
	json_set_uint(j, "removed", g->removed);
	json_set_uint(j, "kept", g->kept);
	json_set_uint(j, "freed", g->freed);
	json_set_uint(j, "disk_before", g->disk_before);
	json_set_uint(j, "disk", g->disk_after);
	json_set_uint(j, "elapsed_ms", g->elapsed_ms);
	return json_print(&doc, inv->out, err);
}

static void print_forgotten(const struct invocation *inv, const struct engine_snapshot *s)
{
	char when[OUT_TIME_MAX];

	fprintf(inv->out, "snapshot %s%.*s%s  %s", out_style(inv, OUT_ID), OUT_SHORT_ID, s->id,
		out_style(inv, OUT_PLAIN), out_when(s->created, when));
	if (*s->message != '\0')
		out_text(inv->out, s->message, "  ");
	else
		fputc('\n', inv->out);
}

static void print_human(const struct invocation *inv, const struct engine_gc *g, uint64_t runs)
{
	const struct gc_args *args = inv->args;
	char size[SIZE_TEXT_MAX], time[DURATION_TEXT_MAX];

	for (size_t i = 0; i < g->forgotten.n; i++)
		print_forgotten(inv, &g->forgotten.list[i]);
	fprintf(inv->out, "%s  ", args->dry_run ? "would go" : "removed");
	if (g->forgotten.n > 0) {
		out_plural(inv->out, g->forgotten.n, "snapshot", "snapshots");
		fputs(", ", inv->out);
	}
	if (runs > 0) {
		out_plural(inv->out, runs, "run", "runs");
		fputs(", ", inv->out);
	}
	out_plural(inv->out, g->removed, "object", "objects");
	fprintf(inv->out, ", %s, in %s\n", size_format(g->freed, size),
		duration_format(g->elapsed_ms, time));
	fputs(args->dry_run ? "stay      " : "kept     ", inv->out);
	out_plural(inv->out, g->kept, "object", "objects");
	fprintf(inv->out, "; the store takes %s", size_format(g->disk_after, size));
	if (g->disk_before != g->disk_after)
		fprintf(inv->out, ", before %s", size_format(g->disk_before, size));
	fputc('\n', inv->out);
}

static int gc_run(struct invocation *inv, struct err *err)
{
	CLEANUP(engine_gc_done) struct engine_gc gc = { 0 };
	const struct gc_args *args = inv->args;
	const struct engine_gc_options options = {
		.keep_last = args->keep_last,
		.keep_within_ms = args->keep_within,
		.dry_run = args->dry_run,
		.watch = progress_watch(inv->progress),
	};
	uint64_t runs = 0;
	int r = engine_gc(inv->engine, &options, &gc, err);

	progress_done(inv->progress);
	if (r == -ENOENT)
		cmd_hint_init(inv);
	if (r < 0)
		return r;
	r = engine_runs_prune(inv->engine, args->dry_run, &runs, err);
	if (r < 0)
		return r;
	if (inv->json)
		return print_json(inv, &gc, runs, err);
	if (!inv->quiet)
		print_human(inv, &gc, runs);
	return CMD_OK;
}

const struct command cmd_gc = {
	.name = "gc",
	.group = "Store",
	.summary = "free what no snapshot and no clone needs",
	.opts = gc_opts,
	.details =
	    "Without options it removes no snapshot. With both --keep options, a snapshot survives if\n"
	    "either rule keeps it. Automatic snapshots are counted apart. Snapshots with a tag,\n"
	    "the bases of clones and the newest of each project always stay. Records of runs go\n"
	    "after 14 days, and beyond the last 100. Safe at any time: an interrupted gc has only\n"
	    "freed less.\n",
	.examples = "gc\ngc --keep-last 20 --keep-within 30d --dry-run\n",
	.run = gc_run,
};
