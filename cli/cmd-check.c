#include <errno.h>

#include "base/size.h"
#include "cli/out.h"
#include "cli/progress.h"
#include "engine/upkeep.h"

static int print_json(const struct invocation *inv, const struct engine_check *c, struct err *err)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	struct json j = out_json_begin(inv, &doc), list;

	json_set_name(j, "store", engine_store_path(inv->engine));
	json_set_uint(j, "objects", c->objects);
	json_set_uint(j, "bytes", c->bytes);
	json_set_uint(j, "refs", c->refs);
	list = json_set_array(j, "errors");
	for (size_t i = 0; i < c->n_damage; i++) {
		const struct engine_damage *d = &c->damage[i];
		struct json one = json_add_object(list), paths;

		json_set_text(one, "object", d->object);
		json_set_text(one, "why", d->why);
		paths = json_set_array(one, "paths");
		/* They come in the form of names already. */
		for (size_t k = 0; k < d->n_paths; k++)
			json_add_text(paths, d->paths[k]);
		json_set_uint(one, "n_paths", d->n_paths_all);
	}
	json_set_uint(j, "elapsed_ms", c->elapsed_ms);
	return json_print(&doc, inv->out, err);
}

static void print_damage(const struct invocation *inv, const struct engine_damage *d)
{
	fprintf(inv->out, "%sdamaged%s  %s: %s\n", out_style(inv, OUT_BAD),
		out_style(inv, OUT_PLAIN), d->object, d->why);
	for (size_t i = 0; i < d->n_paths; i++)
		fprintf(inv->out, "         %s\n", d->paths[i]);
	if (d->n_paths_all > d->n_paths) {
		fputs("         and ", inv->out);
		out_plural(inv->out, d->n_paths_all - d->n_paths, "more path\n", "more paths\n");
	}
}

static void print_human(const struct invocation *inv, const struct engine_check *c)
{
	char size[SIZE_TEXT_MAX], time[DURATION_TEXT_MAX];

	for (size_t i = 0; i < c->n_damage; i++)
		print_damage(inv, &c->damage[i]);
	fputs("checked  ", inv->out);
	out_plural(inv->out, c->objects, "object", "objects");
	fprintf(inv->out, ", %s, in %s: ", size_format(c->bytes, size),
		duration_format(c->elapsed_ms, time));
	if (c->n_damage == 0)
		fprintf(inv->out, "%sno damage%s", out_style(inv, OUT_GOOD),
			out_style(inv, OUT_PLAIN));
	else
		out_plural(inv->out, c->n_damage, "is damaged", "are damaged");
	fputc('\n', inv->out);
}

static int check_run(struct invocation *inv, struct err *err)
{
	CLEANUP(engine_check_done) struct engine_check check = { 0 };
	struct engine_watch watch = progress_watch(inv->progress);
	int r;

	r = engine_check(inv->engine, &watch, &check, err);
	progress_done(inv->progress);
	if (r == -ENOENT)
		cmd_hint(inv, "init");
	if (r < 0)
		return r;
	if (inv->json)
		r = print_json(inv, &check, err);
	else if (!inv->quiet)
		print_human(inv, &check);
	if (r < 0)
		return r;
	return check.n_damage > 0 ? CMD_DAMAGED : CMD_OK;
}

const struct command cmd_check = {
	.name = "check",
	.group = "Store",
	.summary = "verify every byte of the store",
	.details =
	    "Names each damaged object and the files it belongs to. The status is 0 if all is in\n"
	    "order and 12 if not. -q prints nothing.\n",
	.run = check_run,
};
