#include <errno.h>

#include "cli/out.h"
#include "cli/unborn.h"
#include "engine/api/tag.h"

struct tag_args {
	bool remove;
};

static const struct opt tag_opts[] = {
	OPT_FLAG('d', "delete", struct tag_args, remove, "take the name away; the snapshot stays"),
	OPT_END,
};
_Static_assert(sizeof(struct tag_args) <= CMD_ARGS_MAX, "grow CMD_ARGS_MAX");

static int print_json(const struct invocation *inv, const char *act, const struct engine_tags *t,
		      struct err *err)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	struct json j = out_json_begin(inv, &doc), list, one;

	json_set_name(j, "project", t->project);
	json_set_text(j, "act", act);
	list = json_set_array(j, "tags");
	for (size_t i = 0; i < t->n; i++) {
		one = json_add_object(list);
		json_set_name(one, "tag", t->list[i].name);
		json_set_text(one, "snapshot", t->list[i].snapshot);
	}
	return json_print(&doc, inv->out, err);
}

/* "8f3a0c11  known-good", and with -q the name alone. */
static void print_human(const struct invocation *inv, const struct engine_tags *t)
{
	for (size_t i = 0; i < t->n; i++) {
		if (!inv->quiet)
			fprintf(inv->out, "%s%.*s%s  ", out_style(inv, OUT_ID), OUT_SHORT_ID,
				t->list[i].snapshot, out_style(inv, OUT_PLAIN));
		out_name_line(inv->out, t->list[i].name);
	}
}

static int tag_run(struct invocation *inv, struct err *err)
{
	CLEANUP(engine_tags_done) struct engine_tags tags = { 0 };
	const struct tag_args *args = inv->args;
	const char *act = args->remove ? "delete" : inv->n_words > 0 ? "add" : "list";
	int r;

	if (args->remove && inv->n_words != 1) {
		cmd_hint(inv, "help tag");
		return err_set(err, -EINVAL, "'tag --delete' needs one NAME and nothing else");
	}
	if (args->remove)
		r = engine_tag_delete(inv->engine, inv->words[0], &tags, err);
	else if (inv->n_words > 0)
		r = engine_tag_add(inv->engine, inv->words[0],
				   inv->n_words > 1 ? inv->words[1] : "@", &tags, err);
	else
		r = engine_tags(inv->engine, &tags, err);
	if (r == -ENOENT)
		cmd_hint(inv, args->remove ? "tag" : "log");
	if (r == -EEXIST)
		cmd_hint_words(inv, "tag --delete", (const char *[]){ inv->words[0], NULL });
	if (r < 0)
		return r;
	if (inv->json)
		return print_json(inv, act, &tags, err);
	if (inv->n_words == 0 || !inv->quiet)
		print_human(inv, &tags);
	if (tags.n == 0 && inv->n_words == 0)
		unborn_empty(inv, "no tags yet", "tag known-good");
	return CMD_OK;
}

const struct command cmd_tag = {
	.name = "tag",
	.group = "Snapshots",
	.rare = true,
	.summary = "name a snapshot, or list the names of this project",
	.words = "[NAME [STATE]]",
	.max_words = 2,
	.opts = tag_opts,
	.details =
	    "STATE is a snapshot as for `show`; without it, the newest one gets the name. `gc` never\n"
	    "removes a snapshot that has a name, and `rm` only if you name the tag.\n",
	.examples = "tag\ntag known-good\ntag before-upgrade @-2\ntag -d known-good\n",
	.run = tag_run,
};
