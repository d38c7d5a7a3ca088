#include "cli/show/remote-gc.h"

#include <errno.h>

#include "base/size.h"
#include "cli/out.h"
#include "cli/progress.h"

static int print_json(const struct invocation *inv, const struct engine_remote_gc *g, bool dry,
		      struct err *err)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	struct json j = out_json_begin(inv, &doc), list, one;

	json_set_text(j, "act", "gc");
	json_set_text(j, "url", g->remote);
	json_set_bool(j, "dry_run", dry);
	list = json_set_array(j, "removed");
	for (size_t i = 0; i < g->n_gone; i++) {
		one = json_add_object(list);
		json_set_text(one, "name", g->gone[i].name);
		json_set_text(one, "manifest", g->gone[i].manifest);
		out_json_time(one, "pushed", g->gone[i].pushed);
	}
	json_set_uint(j, "names", g->names);
	json_set_uint(j, "kept", g->snapshots);
	json_set_uint(j, "moved", g->moved);
	json_set_uint(j, "blobs", g->blobs);
	json_set_uint(j, "bytes", g->bytes);
	json_set_uint(j, "bytes_young", g->young);
	json_set_uint(j, "bytes_kept", g->kept);
	json_set_bool(j, "later", g->later);
	return json_print(&doc, inv->out, err);
}

static void print_gone(const struct invocation *inv, const struct engine_remote_gone *one)
{
	char time[OUT_TIME_MAX];

	fprintf(inv->out, "  %s%.12s%s  %s  %s\n", out_style(inv, OUT_ID), one->manifest + 7,
		out_style(inv, OUT_PLAIN), out_when(one->pushed, time),
		one->name ? one->name : "(before)");
}

/* "removed  3 snapshots, 12 blobs, 84 MiB" */
static void print_human(const struct invocation *inv, const struct engine_remote_gc *g, bool dry)
{
	char size[SIZE_TEXT_MAX];

	fprintf(inv->out, "%s  ", dry ? "would go" : "removed");
	out_plural(inv->out, g->n_gone, "snapshot", "snapshots");
	if (!g->later) {
		fputs(", ", inv->out);
		out_plural(inv->out, g->blobs, "blob", "blobs");
		fprintf(inv->out, ", %s", size_format(g->bytes, size));
	}
	fputc('\n', inv->out);
	for (size_t i = 0; i < g->n_gone; i++)
		print_gone(inv, &g->gone[i]);
	fprintf(inv->out, "%s  ", dry ? "stay    " : "kept   ");
	out_plural(inv->out, g->snapshots, "snapshot", "snapshots");
	fputs(" under ", inv->out);
	out_plural(inv->out, g->names, "name", "names");
	if (!g->later)
		fprintf(inv->out, ", %s", size_format(g->kept, size));
	fputc('\n', inv->out);
	if (g->young > 0)
		fprintf(inv->out, "waits    %s that nobody needs and that is too young to go\n",
			size_format(g->young, size));
	if (g->moved > 0) {
		fputs("waits    ", inv->out);
		out_plural(inv->out, g->moved, "name", "names");
		fputs(" that somebody moved meanwhile\n", inv->out);
	}
	if (g->later && g->n_gone > 0)
		fputs("the registry frees the bytes by its own garbage collection\n", inv->out);
}

int remote_gc_print(struct invocation *inv, const struct engine_remote_gc_options *o,
		    struct err *err)
{
	CLEANUP(engine_remote_gc_done) struct engine_remote_gc g = { 0 };
	int r = engine_remote_gc(inv->engine, o, &g, err);

	progress_done(inv->progress);
	if (r == -ENOENT)
		cmd_hint(inv, "remote list");
	if (r < 0)
		return r;
	if (inv->json)
		return print_json(inv, &g, o->dry, err);
	if (!inv->quiet)
		print_human(inv, &g, o->dry);
	return CMD_OK;
}
