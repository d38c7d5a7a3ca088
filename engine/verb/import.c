/*
 * An import is three processes: this one finds the layers and verifies their digests, a confined child
 * parses them, and cowfsd stores what the child writes to a pipe whose other end it is handed.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json.h"
#include "base/path.h"
#include "base/vec.h"
#include "engine/api/image.h"
#include "engine/ask/ask-i.h"
#include "engine/find/image-i.h"
#include "engine/verb/parser-i.h"
#include "image/ingest.h"
#include "image/oci.h"

struct import {
	const struct engine_import_options *options;
	char *name;       /* owned */
	struct buf about; /* JSON */
	struct parser_plan plan;
};

static void import_done(struct import *i)
{
	free(i->name);
	buf_done(&i->about);
	parser_plan_done(&i->plan);
}

/* --- what it is called ------------------------------------------------------------------ */

static void cut_suffix(char *name, const char *suffix)
{
	const size_t n = strlen(name), m = strlen(suffix);

	if (n > m && strcmp(name + n - m, suffix) == 0)
		name[n - m] = '\0';
}

/* "dir/debian-12.tar.zst" is called debian-12. */
static int choose_name(struct import *i, struct err *err)
{
	static const char *const suffixes[] = { ".gz", ".zst", ".xz", ".tgz", ".tar" };
	AUTO_FREE char *clean = path_clean("/", i->options->source);

	if (i->options->name) {
		i->name = strdup(i->options->name);
	} else if (strcmp(i->options->source, "-") == 0) {
		return err_set(err, -EINVAL, "an image from standard input needs --name");
	} else if (clean) {
		i->name = strdup(path_base(clean));
	}
	if (!i->name)
		return err_nomem(err);
	if (i->options->name)
		return image_check_name(i->name, err);
	for (size_t k = 0; k < ARRAY_LEN(suffixes); k++)
		cut_suffix(i->name, suffixes[k]);
	for (char *c = i->name; *c; c++)
		if (*c == ':' || *c == ' ')
			*c = '-';
	return image_check_name(i->name, err);
}

/* --- where it comes from ---------------------------------------------------------------- */

static int add_layer(struct import *i, int fd, struct err *err)
{
	if (!VEC_ONE_MORE(i->plan.layers, i->plan.n)) {
		close(fd);
		return err_nomem(err);
	}
	i->plan.layers[i->plan.n++] = (struct parser_layer){ .fd = fd };
	return 0;
}

static int open_archive(struct import *i, struct err *err)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	const char *source = i->options->source;
	const bool standard = strcmp(source, "-") == 0;
	int fd =
	    standard ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3) : open(source, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return err_sys(err, "'%s'", source);
	json_set_name(json_begin(&doc), "source", standard ? "-" : source);
	if (json_append(&doc, &i->about, err) < 0) {
		close(fd);
		return err->code;
	}
	return add_layer(i, fd, err);
}

/* The layers of an OCI image, verified, and what the image says of itself. */
static int add_oci_layers(struct import *i, int dir, const struct oci_image *image, struct err *err)
{
	int r = 0, fd;

	i->plan.whiteouts = true;
	for (size_t k = 0; k < image->n_layers && r >= 0; k++) {
		struct parser_layer *l;

		r = oci_open_layer(dir, &image->layers[k], &fd, err);
		if (r < 0)
			return r;
		r = add_layer(i, fd, err);
		if (r < 0)
			return r;
		l = &i->plan.layers[i->plan.n - 1];
		l->digest = strdup(image->layers[k].digest + strlen("sha256:"));
		if (image->plain)
			l->plain = strdup(image->plain[k] + strlen("sha256:"));
		r = l->digest && (l->plain || !image->plain) ? 0 : err_nomem(err);
	}
	return r;
}

static int describe_oci(struct import *i, struct oci_image *image, struct err *err)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	struct json j = json_begin(&doc), layers;

	json_set_name(j, "source", i->options->source);
	json_set_text(j, "digest", image->digest);
	json_set_text(j, "platform", image->platform);
	layers = json_set_array(j, "layers");
	for (size_t k = 0; k < image->n_layers; k++)
		json_add_text(layers, image->layers[k].digest);
	json_set_value(j, "config", (struct json){ &image->config, image->config.root }, "config");
	return json_append(&doc, &i->about, err);
}

static int open_layout(struct import *i, const char *path, const char *tag, struct err *err)
{
	CLEANUP(oci_image_done) struct oci_image image = { 0 };
	AUTO_CLOSE int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r;

	if (dir < 0)
		return err_sys(err, "'%s'", path);
	r = oci_find(dir, tag, i->options->platform, &image, err);
	if (r >= 0)
		r = add_oci_layers(i, dir, &image, err);
	if (r < 0)
		return err_wrap(err, r, "'%s'", path);
	return describe_oci(i, &image, err);
}

/* A directory, or DIR:TAG where nothing has that whole name. */
static int find_layers(struct import *i, struct err *err)
{
	const char *source = i->options->source;
	AUTO_FREE char *dir = strdup(source);
	char *colon = dir ? strrchr(dir, ':') : NULL;
	struct stat st;

	i->plan.max_bytes =
	    i->options->max_bytes > 0 ? i->options->max_bytes : ingest_default.bytes;
	if (!dir)
		return err_nomem(err);
	if (strcmp(source, "-") == 0)
		return open_archive(i, err);
	if (stat(source, &st) == 0)
		return S_ISDIR(st.st_mode) ? open_layout(i, source, NULL, err)
					   : open_archive(i, err);
	if (!colon)
		return err_sys(err, "'%s'", source);
	*colon = '\0';
	return open_layout(i, dir, colon + 1, err);
}

/* --- the act ---------------------------------------------------------------------------- */

static int ask(struct engine *e, const struct import *i, int stream, struct engine_imported *ret,
	       struct err *err)
{
	CLEANUP(ask_done) struct ask a;
	char message[160];
	const struct import_ask asked = {
		.name = i->name,
		.about = (char *)i->about.data,
		.message = message,
		.replace = i->options->replace,
		.max_bytes = i->plan.max_bytes,
		.max_names = i->options->max_names,
	};

	snprintf(message, sizeof(message), "imported from %.128s", i->options->source);
	ask_begin(&a, e, VERB_IMPORT);
	a.give = stream;
	fields_set(a.options, &wire_import, &asked);
	return ask_for(&a, e, ASK_CREATE, &i->options->watch, &wire_imported, ret, err);
}

int engine_import(struct engine *e, const struct engine_import_options *options,
		  struct engine_imported *ret, struct err *err)
{
	CLEANUP(import_done) struct import i = { .options = options };
	CLEANUP(parser_done) struct parser parser = PARSER_INIT;
	const uint64_t start = engine_clock_ms();
	struct err why = { 0 };
	int r, parsed;

	r = choose_name(&i, err);
	if (r < 0)
		return r;
	r = find_layers(&i, err);
	if (r < 0)
		return r;
	if (!buf_str(&i.about))
		return err_nomem(err);
	r = parser_start(&i.plan, &parser, err);
	if (r < 0)
		return r;
	r = ask(e, &i, parser.out, ret, err);
	/* The parser may wait for its input for ever: nobody wants that any more, and it is ended. */
	if (r < 0 && r != -EPIPE)
		return err_wrap(err, r, "'%s'", options->source);
	/* If parsing failed, cowfsd knows no more than that the stream ended early. */
	parsed = parser_end(&parser, &why);
	if (r == -EPIPE && parsed < 0)
		return err_set(err, parsed, "'%s': %s", options->source, why.msg);
	if (r < 0)
		return err_wrap(err, r, "'%s'", options->source);
	ret->layers = i.plan.n;
	ret->elapsed_ms = engine_clock_ms() - start;
	return 0;
}

int engine_image_remove(struct engine *e, const char *name, bool force, struct engine_image *ret,
			struct err *err)
{
	CLEANUP(ask_done) struct ask a;
	int r = engine_has_store(e) ? 0 : err_set(err, -ENOENT, "there is no image '%.64s'", name);

	if (r < 0)
		return r;
	ask_begin(&a, e, VERB_REMOVE_IMAGE);
	json_set_name(a.options, "image", name);
	json_set_bool(a.options, "force", force);
	return ask_for(&a, e, ASK_STORE, NULL, &wire_image, ret, err);
}
