#include <errno.h>

#include "base/size.h"
#include "cli/out.h"
#include "cli/progress.h"
#include "engine/upkeep.h"

static int print_json(const struct invocation *inv, const struct engine_gc *g, struct err *err)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	struct json j = out_json_begin(inv, &doc);

	json_set_name(j, "store", engine_store_path(inv->engine));
	json_set_uint(j, "removed", g->removed);
	json_set_uint(j, "kept", g->kept);
	json_set_uint(j, "freed", g->freed);
	json_set_uint(j, "disk_before", g->disk_before);
	json_set_uint(j, "disk", g->disk_after);
	json_set_uint(j, "elapsed_ms", g->elapsed_ms);
	return json_print(&doc, inv->out, err);
}

static void print_human(const struct invocation *inv, const struct engine_gc *g)
{
	char size[SIZE_TEXT_MAX], time[DURATION_TEXT_MAX];

	fputs("removed  ", inv->out);
	out_plural(inv->out, g->removed, "object", "objects");
	fprintf(inv->out, ", %s, in %s\n", size_format(g->freed, size),
		duration_format(g->elapsed_ms, time));
	fputs("kept     ", inv->out);
	out_plural(inv->out, g->kept, "object", "objects");
	fprintf(inv->out, "; the store takes %s", size_format(g->disk_after, size));
	if (g->disk_before != g->disk_after)
		fprintf(inv->out, ", before %s", size_format(g->disk_before, size));
	fputc('\n', inv->out);
}

static int gc_run(struct invocation *inv, struct err *err)
{
	struct engine_watch watch = progress_watch(inv->progress);
	struct engine_gc gc;
	int r;

	r = engine_gc(inv->engine, &watch, &gc, err);
	progress_done(inv->progress);
	if (r == -ENOENT)
		cmd_hint(inv, "init");
	if (r < 0)
		return r;
	if (inv->json)
		return print_json(inv, &gc, err);
	if (!inv->quiet)
		print_human(inv, &gc);
	return CMD_OK;
}

const struct command cmd_gc = {
	.name = "gc",
	.group = "Store",
	.summary = "free what no snapshot and no clone needs",
	.details = "Safe at any time; interrupted, it has freed some of it and nothing else.\n",
	.run = gc_run,
};
