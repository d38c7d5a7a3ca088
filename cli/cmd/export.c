#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/size.h"
#include "base/text.h"
#include "cli/out.h"
#include "cli/progress.h"
#include "engine/api/image.h"

struct export_args {
	const char *tar, *oci, *tag, *base, *compress, *platform;
};

static const struct opt export_opts[] = {
	OPT_STR(0, "tar", "FILE", struct export_args, tar,
		"write a tar archive; '-' is standard output"),
	OPT_STR(0, "oci", "DIR", struct export_args, oci,
		"write an OCI image layout, or add to the one that is there"),
	OPT_STR(0, "tag", "TAG", struct export_args, tag,
		"name of the image in the OCI layout (default: latest)"),
	OPT_STR(
	    0, "base", "STATE", struct export_args, base,
	    "write only what changed since STATE, as a layer with whiteouts; with --oci, on top of "
	    "a layer with STATE"),
	OPT_STR(0, "compress", "none|gzip|zstd", struct export_args, compress,
		"how to pack it (default: gzip with --oci; with --tar, by the end of FILE)"),
	OPT_STR(
	    0, "platform", "OS/ARCH", struct export_args, platform,
	    "platform of the OCI image (default: the same as the image it came from, or this machine's)"),
	OPT_END,
};
_Static_assert(sizeof(struct export_args) <= CMD_ARGS_MAX, "grow CMD_ARGS_MAX");

/* --- where it goes ---------------------------------------------------------------------- */

/* A file that is there whole or not at all. */
struct target {
	char *temp; /* owned; NULL: nothing to take away */
	int fd;     /* owned; -1: not ours */
};

static void target_done(struct target *t)
{
	cleanup_close(&t->fd);
	if (t->temp)
		unlink(t->temp);
	free(t->temp);
}

static int target_open(struct target *t, const char *file, struct err *err)
{
	t->temp = text_format("%s.tmp-%d", file, (int)getpid());
	if (!t->temp)
		return err_nomem(err);
	t->fd = open(t->temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	if (t->fd >= 0)
		return 0;
	free(t->temp);
	t->temp = NULL;
	return err_sys(err, "'%s'", file);
}

static int target_keep(struct target *t, const char *file, struct err *err)
{
	if (fsync(t->fd) < 0 || rename(t->temp, file) < 0)
		return err_sys(err, "'%s'", file);
	free(t->temp);
	t->temp = NULL;
	return 0;
}

/* --- options ---------------------------------------------------------------------------- */

static bool ends_with(const char *text, const char *end)
{
	const size_t n = strlen(text), m = strlen(end);

	return n >= m && strcmp(text + n - m, end) == 0;
}

static int choose_compression(const struct export_args *args, enum engine_compression *ret,
			      struct err *err)
{
	const char *given = args->compress;

	if (given && strcmp(given, "none") == 0)
		*ret = ENGINE_PLAIN;
	else if (given && strcmp(given, "gzip") == 0)
		*ret = ENGINE_GZIP;
	else if (given && strcmp(given, "zstd") == 0)
		*ret = ENGINE_ZSTD;
	else if (given)
		return err_set(err, -EINVAL,
			       "option '--compress': '%s' is not one of none, gzip, zstd", given);
	else if (args->oci || ends_with(args->tar, ".gz") || ends_with(args->tar, ".tgz"))
		*ret = ENGINE_GZIP;
	else
		*ret = ends_with(args->tar, ".zst") ? ENGINE_ZSTD : ENGINE_PLAIN;
	return 0;
}

static int check_args(struct invocation *inv, struct err *err)
{
	const struct export_args *args = inv->args;
	const char *wrong = NULL;

	if (!args->tar == !args->oci)
		wrong = "'export' needs one of --tar FILE and --oci DIR";
	else if (args->tar && (args->tag || args->platform))
		wrong = "--tag and --platform go with --oci";
	else if (args->tar && strcmp(args->tar, "-") == 0 && inv->json)
		wrong = "--json and --tar - would both write to standard output";
	else if (args->tar && strcmp(args->tar, "-") == 0 && isatty(fileno(inv->out)))
		wrong = "an archive does not belong on a terminal: name a file, or use a pipe";
	if (!wrong)
		return 0;
	cmd_hint(inv, "help export");
	return err_set(err, -EINVAL, "%s", wrong);
}

/* --- telling ---------------------------------------------------------------------------- */

static int print_json(const struct invocation *inv, const struct engine_exported *x,
		      struct err *err)
{
	const struct export_args *args = inv->args;
	CLEANUP(json_done) struct json_doc doc = { 0 };
	struct json j = out_json_begin(inv, &doc);

	json_set_name(j, "state", x->state);
	json_set_name(j, "to", args->tar ? args->tar : args->oci);
	json_set_text(j, "digest", *x->digest ? x->digest : NULL);
	json_set_uint(j, "entries", x->entries);
	json_set_uint(j, "bytes", x->bytes);
	json_set_uint(j, "size", x->size);
	json_set_uint(j, "layers", x->layers);
	json_set_uint(j, "whiteouts", x->whiteouts);
	json_set_uint(j, "sockets", x->sockets);
	json_set_uint(j, "elapsed_ms", x->elapsed_ms);
	return json_print(&doc, inv->out, err);
}

static void print_human(const struct invocation *inv, const struct engine_exported *x)
{
	const struct export_args *args = inv->args;
	char size[SIZE_TEXT_MAX], time[DURATION_TEXT_MAX];

	fprintf(inv->out, "exported  %s  ", x->state);
	out_plural(inv->out, x->entries, "entry", "entries");
	fprintf(inv->out, ", %s in %s  ", size_format(x->size, size),
		duration_format(x->elapsed_ms, time));
	out_name_line(inv->out, args->tar ? args->tar : args->oci);
	if (*x->digest)
		fprintf(inv->out, "digest    %s\n", x->digest);
	if (x->sockets > 0) {
		fputs("left out  ", inv->out);
		out_plural(inv->out, x->sockets, "socket", "sockets");
		fputc('\n', inv->out);
	}
}

static int export_run(struct invocation *inv, struct err *err)
{
	CLEANUP(engine_exported_done) struct engine_exported done = { 0 };
	CLEANUP(target_done) struct target target = { .fd = -1 };
	const struct export_args *args = inv->args;
	const bool standard = args->tar && strcmp(args->tar, "-") == 0;
	struct engine_export_options options = {
		.state = inv->n_words > 0 ? inv->words[0] : NULL,
		.oci = args->oci,
		.tag = args->tag,
		.base = args->base,
		.platform = args->platform,
		.tar_fd = standard ? fileno(inv->out) : -1,
		.watch = progress_watch(inv->progress),
	};
	int r = check_args(inv, err);

	if (r >= 0)
		r = choose_compression(args, &options.compression, err);
	if (r >= 0 && args->tar && !standard)
		r = target_open(&target, args->tar, err);
	if (r < 0)
		return r;
	if (target.fd >= 0)
		options.tar_fd = target.fd;
	r = engine_export(inv->engine, &options, &done, err);
	if (r >= 0 && target.temp)
		r = target_keep(&target, args->tar, err);
	progress_done(inv->progress);
	if (r == -ENOENT)
		cmd_hint(inv, "list --all");
	if (r < 0)
		return r;
	if (inv->json)
		return print_json(inv, &done, err);
	if (!inv->quiet && !standard)
		print_human(inv, &done);
	return CMD_OK;
}

const struct command cmd_export = {
	.name = "export",
	.group = "Snapshots",
	.rare = true,
	.summary = "write a state as a tar archive or an OCI image",
	.words = "[STATE]",
	.max_words = 1,
	.opts = export_opts,
	.details =
	    "STATE is a snapshot, a clone, an image, or '.' for the project; without it, the clone here.\n"
	    "Owners, modes, times, attributes, hard links, holes and devices are written; sockets are not,\n"
	    "because no archive has them. The same state always gives the same bytes.\n",
	.examples =
	    "export idea --tar idea.tar.zst\nexport idea --tar - | tar t\n"
	    "export idea --oci layout --tag new\nexport idea --oci layout --base debian-12\n",
	.run = export_run,
};
