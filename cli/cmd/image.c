#include <errno.h>

#include "base/size.h"
#include "cli/acts.h"
#include "cli/out.h"
#include "cli/show/images.h"
#include "engine/api/image.h"

struct image_args {
	bool force;
};

static const struct opt image_opts[] = {
	OPT_FLAG('f', "force", struct image_args, force, "rm: remove its clones too"),
	OPT_END,
};
_Static_assert(sizeof(struct image_args) <= CMD_ARGS_MAX, "grow CMD_ARGS_MAX");

static void print_line(const struct invocation *inv, const struct engine_image *i)
{
	char size[SIZE_TEXT_MAX], when[OUT_TIME_MAX];

	if (inv->quiet) {
		fprintf(inv->out, "%s\n", i->name);
		return;
	}
	fprintf(inv->out, "%s%.*s%s  %-16s  %*s  %6llu  %s\n", out_style(inv, OUT_ID), OUT_SHORT_ID,
		i->id, out_style(inv, OUT_PLAIN), out_when(i->created, when), OUT_SIZE_WIDTH,
		size_format(i->bytes, size), (unsigned long long)i->clones, i->name);
}

static int list(struct invocation *inv, struct err *err)
{
	CLEANUP(engine_images_done) struct engine_images all = { 0 };
	CLEANUP(json_done) struct json_doc doc = { 0 };
	struct json j = out_json_begin(inv, &doc), to;
	int r = engine_images(inv->engine, &all, err);

	if (r < 0)
		return r;
	json_set_text(j, "act", "list");
	to = json_set_array(j, "images");
	for (size_t i = 0; i < all.n && inv->json; i++)
		show_json_image(json_add_object(to), &all.list[i]);
	if (inv->json)
		return json_print(&doc, inv->out, err);
	if (all.n > 0 && !inv->quiet)
		fprintf(inv->out, "%s%-*s  %-16s  %*s  %6s  IMAGE%s\n", out_style(inv, OUT_DIM),
			OUT_SHORT_ID, "SNAPSHOT", "IMPORTED", OUT_SIZE_WIDTH, "SIZE", "CLONES",
			out_style(inv, OUT_PLAIN));
	for (size_t i = 0; i < all.n; i++)
		print_line(inv, &all.list[i]);
	if (all.n == 0 && !inv->quiet)
		fputs("no images\n", inv->out);
	return CMD_OK;
}

static int remove_all(struct invocation *inv, struct err *err)
{
	const struct image_args *args = inv->args;
	CLEANUP(json_done) struct json_doc doc = { 0 };
	struct json j = out_json_begin(inv, &doc), to;
	int r = 0;

	if (inv->n_words < 2) {
		cmd_hint(inv, "help image");
		return err_set(err, -EINVAL, "'image rm' needs IMAGE...");
	}
	json_set_text(j, "act", "rm");
	to = json_set_array(j, "images");
	for (int i = 1; i < inv->n_words && r >= 0; i++) {
		CLEANUP(engine_image_done) struct engine_image gone = { 0 };

		r = engine_image_remove(inv->engine, inv->words[i], args->force, &gone, err);
		if (r < 0)
			break;
		show_json_image(json_add_object(to), &gone);
		if (!inv->json && !inv->quiet)
			fprintf(inv->out, "removed  %s\n", gone.name);
	}
	if (r == -ENOENT)
		cmd_hint(inv, "image list");
	if (r == -EBUSY)
		cmd_hint_again(inv, &(struct hint_again){ .option = "force" });
	return r < 0 || !inv->json ? r : json_print(&doc, inv->out, err);
}

static int show(struct invocation *inv, struct err *err)
{
	CLEANUP(engine_image_done) struct engine_image image = { 0 };
	CLEANUP(json_done) struct json_doc doc = { 0 };
	struct json j = out_json_begin(inv, &doc), to;
	int r;

	if (inv->n_words != 2) {
		cmd_hint(inv, "help image");
		return err_set(err, -EINVAL, "'image show' needs one IMAGE");
	}
	r = engine_image_find(inv->engine, inv->words[1], &image, err);
	if (r == -ENOENT)
		cmd_hint(inv, "image list");
	if (r < 0)
		return r;
	json_set_text(j, "act", "show");
	to = json_set_array(j, "images");
	show_json_image(json_add_object(to), &image);
	if (inv->json)
		return json_print(&doc, inv->out, err);
	print_line(inv, &image);
	if (!inv->quiet)
		fprintf(inv->out, "%s\n", image.about);
	return CMD_OK;
}

static int image_run(struct invocation *inv, struct err *err)
{
	static const struct act acts[] = {
		{ "list", list }, { "ls", list, .alias = true },
		{ "show", show }, { "rm", remove_all },
		{ NULL },
	};

	return acts_run(inv, acts, err);
}

const struct command cmd_image = {
	.name = "image",
	.group = "Snapshots",
	.rare = true,
	.summary = "list, show or remove images",
	.words = "[list | show IMAGE | rm IMAGE...]",
	.max_words = 64,
	.opts = image_opts,
	.details =
	    "`list` shows every image in the store. `show` prints what came with an OCI image: digest,\n"
	    "platform, layers, and the configuration with Env, Cmd, WorkingDir and User.\n",
	.examples = "image\nimage show debian-12\nimage rm debian-12\n",
	.run = image_run,
};
