#include <errno.h>

#include "base/size.h"
#include "cli/out.h"
#include "cli/progress.h"
#include "engine/api/upkeep.h"

struct check_args {
	bool repair;
};

static const struct opt check_opts[] = {
	OPT_FLAG(0, "repair", struct check_args, repair,
		 "set damaged parts aside, and restore them from projects and clones"),
	OPT_END,
};
_Static_assert(sizeof(struct check_args) <= CMD_ARGS_MAX, "grow CMD_ARGS_MAX");

static int print_json(const struct invocation *inv, const struct engine_check *c, struct err *err)
{
	const struct check_args *args = inv->args;
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
	if (args->repair) {
		struct json repaired = json_set_object(j, "repaired");

		json_set_uint(repaired, "mended", c->mended);
		json_set_uint(repaired, "restored", c->n_restored);
		json_set_uint(repaired, "set_aside", c->set_aside);
	}
	json_set_uint(j, "elapsed_ms", c->elapsed_ms);
	return json_print(&doc, inv->out, err);
}

static void print_paths(const struct invocation *inv, const struct engine_damage *d)
{
	for (size_t i = 0; i < d->n_paths; i++)
		fprintf(inv->out, "         %s\n", d->paths[i]);
	if (d->n_paths_all > d->n_paths) {
		fputs("         and ", inv->out);
		out_plural(inv->out, d->n_paths_all - d->n_paths, "more path\n", "more paths\n");
	}
}

static void print_repaired(const struct invocation *inv, const struct engine_check *c)
{
	for (size_t i = 0; i < c->n_restored; i++) {
		fprintf(inv->out, "%srestored%s %s: from ", out_style(inv, OUT_GOOD),
			out_style(inv, OUT_PLAIN), c->restored[i].object);
		out_name_line(inv->out, c->restored[i].from);
		print_paths(inv, &c->restored[i]);
	}
	if (c->mended > 0) {
		fprintf(inv->out, "%smended%s   ", out_style(inv, OUT_GOOD),
			out_style(inv, OUT_PLAIN));
		out_plural(inv->out, c->mended, "object", "objects");
		fputs(" whose content was right\n", inv->out);
	}
	if (c->set_aside > 0) {
		fputs("aside    ", inv->out);
		out_plural(inv->out, c->set_aside, "damaged object", "damaged objects");
		fputs(", in '", inv->out);
		out_name(inv->out, engine_store_path(inv->engine));
		fputs("/damaged'\n", inv->out);
	}
}

/* What a repair could not bring back. */
static void print_advice(const struct invocation *inv)
{
	fprintf(
	    inv->out,
	    "\nThe files above are lost in those snapshots and clones, unless a project gets them\n"
	    "back and %s check --repair is run again; all other files there are whole. To let go\n"
	    "of them: %s snapshot, then %s gc --keep-last 1; for a clone %s rm CLONE.\n",
	    inv->program, inv->program, inv->program, inv->program);
}

static void print_human(const struct invocation *inv, const struct engine_check *c)
{
	const struct check_args *args = inv->args;
	char size[SIZE_TEXT_MAX], time[DURATION_TEXT_MAX];

	print_repaired(inv, c);
	for (size_t i = 0; i < c->n_damage; i++) {
		fprintf(inv->out, "%sdamaged%s  %s: %s\n", out_style(inv, OUT_BAD),
			out_style(inv, OUT_PLAIN), c->damage[i].object, c->damage[i].why);
		print_paths(inv, &c->damage[i]);
	}
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
	if (c->n_damage > 0 && args->repair)
		print_advice(inv);
	else if (c->n_damage > 0)
		fprintf(inv->out, "What can be repaired, %s check --repair does.\n", inv->program);
}

static int check_run(struct invocation *inv, struct err *err)
{
	CLEANUP(engine_check_done) struct engine_check check = { 0 };
	const struct check_args *args = inv->args;
	const struct engine_check_options options = {
		.repair = args->repair,
		.watch = progress_watch(inv->progress),
	};
	int r = engine_check(inv->engine, &options, &check, err);

	progress_done(inv->progress);
	if (r == -ENOENT)
		cmd_hint_init(inv);
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
	.rare = true,
	.summary = "verify every byte of the store",
	.opts = check_opts,
	.details =
	    "Names each damaged object and the files it belongs to. Exits with 0 if all is in\n"
	    "order, with 12 if not; -q prints nothing. --repair keeps a copy of what is damaged in\n"
	    "'damaged' in the store, then reads every project and mounted clone, so that what they\n"
	    "still have comes back in old snapshots too; it removes no snapshot and no clone.\n",
	.examples = "check\ncheck --repair\n",
	.run = check_run,
};
