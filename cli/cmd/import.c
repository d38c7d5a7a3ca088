#include <errno.h>
#include <string.h>

#include "base/size.h"
#include "base/text.h"
#include "cli/out.h"
#include "cli/progress.h"
#include "cli/show/images.h"
#include "engine/api/image.h"

struct import_args {
	const char *name, *platform;
	uint64_t max_size, max_names;
	bool replace;
};

static const struct opt import_opts[] = {
	OPT_STR('n', "name", "IMAGE", struct import_args, name,
		"name of the image (default: the name of the source)"),
	OPT_STR(0, "platform", "OS/ARCH", struct import_args, platform,
		"of an OCI image for several (default: this machine's)"),
	OPT_FLAG(0, "replace", struct import_args, replace,
		 "replace an image of that name, but not its clones"),
	OPT_U64(0, "max-names", "N", struct import_args, max_names,
		"refuse more names (default: a million)"),
	OPT_SIZE(0, "max-size", "SIZE", struct import_args, max_size,
		 "refuse larger content (default: 256G)"),
	OPT_END,
};
_Static_assert(sizeof(struct import_args) <= CMD_ARGS_MAX, "grow CMD_ARGS_MAX");

static int print_json(const struct invocation *inv, const struct engine_imported *i,
		      struct err *err)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	struct json j = out_json_begin(inv, &doc);

	show_json_image(j, &i->image);
	json_set_bool(j, "replaced", i->replaced);
	json_set_uint(j, "entries", i->entries);
	json_set_uint(j, "layers", i->layers);
	json_set_uint(j, "elapsed_ms", i->elapsed_ms);
	return json_print(&doc, inv->out, err);
}

/* "image     debian-12  8f3a0c11d2e4b567  3,412 files, 120 MiB in 2.1 s" */
static void print_human(const struct invocation *inv, const struct engine_imported *i)
{
	char size[SIZE_TEXT_MAX], time[DURATION_TEXT_MAX];

	fprintf(inv->out, "%s  %s  %s%s%s  ", i->replaced ? "replaced" : "image", i->image.name,
		out_style(inv, OUT_ID), i->image.id, out_style(inv, OUT_PLAIN));
	out_plural(inv->out, i->image.files, "file", "files");
	fprintf(inv->out, ", %s in %s\n", size_format(i->image.bytes, size),
		duration_format(i->elapsed_ms, time));
}

/* The sentence ends with the name, which may come from the source. */
static void hint_names(struct invocation *inv, const struct err *err)
{
	const char *taken = strstr(err->msg, "there is a"),
		   *at = taken ? strchr(taken, '\'') : NULL;
	const char *end = at ? strchr(at + 1, '\'') : NULL;
	AUTO_FREE char *other = end ? text_format("%.*s-2", (int)(end - at - 1), at + 1) : NULL;

	if (other)
		cmd_hint_again(inv, &(struct hint_again){ .option = "name", .value = other });
	if (taken && strncmp(taken, "there is an image", 17) == 0)
		cmd_hint_again(inv, &(struct hint_again){ .option = "replace" });
}

static int import_run(struct invocation *inv, struct err *err)
{
	CLEANUP(engine_imported_done) struct engine_imported made = { 0 };
	const struct import_args *args = inv->args;
	const struct engine_import_options options = {
		.source = inv->words[0],
		.name = args->name,
		.platform = args->platform,
		.replace = args->replace,
		.max_bytes = args->max_size,
		.max_names = args->max_names,
		.watch = progress_watch(inv->progress),
	};
	int r = engine_import(inv->engine, &options, &made, err);

	progress_done(inv->progress);
	if (r == -EEXIST)
		hint_names(inv, err);
	if (r < 0)
		return r;
	if (inv->json)
		return print_json(inv, &made, err);
	if (inv->quiet)
		fprintf(inv->out, "%s\n", made.image.name);
	else
		print_human(inv, &made);
	return CMD_OK;
}

const struct command cmd_import = {
	.name = "import",
	.group = "Snapshots",
	.rare = true,
	.summary = "make an image of a tar archive or an OCI layout",
	.words = "FILE|DIR[:TAG]|-",
	.min_words = 1,
	.max_words = 1,
	.opts = import_opts,
	.details =
	    "FILE is a tar archive, plain or packed with gzip, zstd or xz; '-' reads one from standard\n"
	    "input. DIR is an OCI image layout, as `skopeo copy ... oci:DIR:TAG` makes it; the digests of\n"
	    "its layers are verified before anything is stored. An image is a state like a snapshot: clone\n"
	    "it with `clone --from IMAGE`. It keeps owners, devices and set-id bits, whichever user\n"
	    "imports it, and unpacks nothing to a disk. A process that can do nothing else parses the\n"
	    "archive.\n",
	.examples = "import debian-12.tar.zst\nimport layout:latest --name base\n"
		    "import - --name rootfs\n",
	.run = import_run,
};
