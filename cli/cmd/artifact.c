#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/size.h"
#include "base/strlist.h"
#include "base/text.h"
#include "base/utf8.h"
#include "base/vec.h"
#include "cli/out.h"
#include "cli/screen.h"
#include "engine/api/artifact.h"
#include "engine/api/clone.h"

#define JSON_CONTENT_MAX ((size_t)16 << 20)

struct artifact_args {
	struct opt_list meta;
	const char *to;
};

static const struct opt artifact_opts[] = {
	OPT_LIST(0, "meta", "KEY=VALUE", struct artifact_args, meta,
		 "save: label it, up to 16 times; list: only those with this label, or KEY"),
	OPT_STR(0, "to", "DIR", struct artifact_args, to,
		"get: write it below DIR (default: artifact-ID, here)"),
	OPT_END,
};
_Static_assert(sizeof(struct artifact_args) <= CMD_ARGS_MAX, "grow CMD_ARGS_MAX");

/* --- telling ---------------------------------------------------------------------------- */

static void set_artifact(struct json j, const struct engine_artifact *a)
{
	json_set_text(j, "artifact", a->id);
	json_set_text(j, "sha256", a->sha256);
	json_set_name(j, "clone", a->clone);
	out_json_id(j, "run", a->run);
	json_set_names(j, "paths", a->paths, a->n_paths);
	out_json_meta(json_set_object(j, "meta"), a->meta);
	out_json_time(j, "created", a->created);
	json_set_uint(j, "files", a->files);
	json_set_uint(j, "bytes", a->bytes);
}

static void print_paths(const struct invocation *inv, const struct engine_artifact *a)
{
	for (size_t i = 0; i < a->n_paths; i++) {
		fputs(i > 0 ? " " : "", inv->out);
		out_name(inv->out, a->paths[i]);
	}
	fputc('\n', inv->out);
}

/* "saved  8f3a0c11d2e4b567  2 files, 1.2 MiB  build/app" */
static int print_one(const struct invocation *inv, const char *act, const char *done,
		     const struct engine_artifact *a, const char *to, struct err *err)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	struct json j = out_json_begin(inv, &doc);
	char size[SIZE_TEXT_MAX];

	if (inv->json) {
		json_set_text(j, "act", act);
		set_artifact(j, a);
		if (to)
			json_set_name(j, "to", to);
		return json_print(&doc, inv->out, err);
	}
	if (inv->quiet) {
		fprintf(inv->out, "%s\n", a->id);
		return CMD_OK;
	}
	fprintf(inv->out, "%s  %s%s%s  ", done, out_style(inv, OUT_ID), a->id,
		out_style(inv, OUT_PLAIN));
	out_plural(inv->out, a->files, "file", "files");
	fprintf(inv->out, ", %s  ", size_format(a->bytes, size));
	print_paths(inv, a);
	return CMD_OK;
}

/* --- save, get, rm ---------------------------------------------------------------------- */

/* What an agent keeps bears the label of its session. */
static int encode_labels(const struct invocation *inv, char **ret, struct err *err)
{
	const struct artifact_args *args = inv->args;
	CLEANUP(strlist_done) struct strlist all = { 0 };
	AUTO_FREE char *own = NULL;
	int r = 0;

	if (inv->session && asprintf(&own, ENGINE_SESSION_KEY "=%s", inv->session) < 0)
		return err_nomem(err);
	for (size_t i = 0; i < args->meta.n && r >= 0; i++)
		if (!own || strncmp(args->meta.items[i], ENGINE_SESSION_KEY "=",
				    strlen(ENGINE_SESSION_KEY "=")) != 0)
			r = strlist_add(&all, args->meta.items[i]);
	if (r >= 0 && own)
		r = strlist_add(&all, own);
	return r < 0 ? err_nomem(err) : meta_encode((const char *const *)all.list, all.n, ret, err);
}

static int save(struct invocation *inv, struct err *err)
{
	CLEANUP(engine_artifact_done) struct engine_artifact made = { 0 };
	AUTO_FREE char *here = engine_clone_here(inv->engine), *meta = NULL;
	const bool named =
	    inv->n_words > 1 && (!here || engine_has_clone(inv->engine, inv->words[1]));
	const int first = named ? 2 : 1;
	struct engine_artifact_options o = {
		.clone = named ? inv->words[1] : here,
		.paths = inv->words + first,
		.n_paths = inv->n_words > first ? (size_t)(inv->n_words - first) : 0,
		.session = inv->session,
	};
	int r = encode_labels(inv, &meta, err);

	if (r < 0)
		return r;
	if (o.n_paths == 0) {
		cmd_hint(inv, "help artifact");
		return err_set(err, -EINVAL, "'artifact save' needs CLONE PATH...");
	}
	o.meta = meta;
	r = engine_artifact_save(inv->engine, &o, &made, err);
	if (r == -ENOENT)
		cmd_hint(inv, engine_has_clone(inv->engine, o.clone) ? "show %s:" : "list",
			 o.clone);
	return r < 0 ? r : print_one(inv, "save", "saved", &made, NULL, err);
}

/* Without --to it comes to a directory of its own: "artifact-8f3a0c11". */
static int choose_dir(struct invocation *inv, char **ret, struct err *err)
{
	CLEANUP(engine_artifact_done) struct engine_artifact a = { 0 };
	const struct artifact_args *args = inv->args;
	int r = args->to ? 0 : engine_artifact_find(inv->engine, inv->words[1], &a, err);

	if (r < 0)
		return r;
	if (args->to)
		*ret = strdup(args->to);
	else
		*ret = text_format("artifact-%.8s", a.id);
	return *ret ? 0 : err_nomem(err);
}

static int get(struct invocation *inv, struct err *err)
{
	CLEANUP(engine_artifact_done) struct engine_artifact a = { 0 };
	AUTO_FREE char *to = NULL, *other = NULL;
	int r = choose_dir(inv, &to, err);

	if (r >= 0)
		r = engine_artifact_get(inv->engine, inv->words[1], to, &a, err);
	if (r == -ENOENT || r == -EINVAL)
		cmd_hint(inv, "artifact list");
	if (r == -EEXIST && (other = text_format("%s-again", to)))
		cmd_hint_words(inv, "artifact get",
			       (const char *[]){ inv->words[1], "--to", other, NULL });
	return r < 0 ? r : print_one(inv, "get", "written", &a, to, err);
}

static int remove_all(struct invocation *inv, struct err *err)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	struct json j = out_json_begin(inv, &doc), list;
	int r = 0;

	json_set_text(j, "act", "rm");
	list = json_set_array(j, "artifacts");
	for (int i = 1; i < inv->n_words && r >= 0; i++) {
		CLEANUP(engine_artifact_done) struct engine_artifact gone = { 0 };

		r = engine_artifact_remove(inv->engine, inv->words[i], &gone, err);
		if (r < 0)
			break;
		set_artifact(json_add_object(list), &gone);
		if (!inv->json && !inv->quiet)
			r = print_one(inv, "rm", "removed", &gone, NULL, err);
	}
	if (r == -ENOENT || r == -EINVAL)
		cmd_hint(inv, "artifact list");
	return r < 0 || !inv->json ? r : json_print(&doc, inv->out, err);
}

/* --- list ------------------------------------------------------------------------------- */

static bool is_wanted(const struct artifact_args *args, const struct engine_artifact *a)
{
	return VEC_ALL(it, args->meta.items, args->meta.n, meta_matches(a->meta, *it));
}

static void print_line(const struct invocation *inv, const struct engine_artifact *a)
{
	char size[SIZE_TEXT_MAX], when[OUT_TIME_MAX];

	if (inv->quiet) {
		fprintf(inv->out, "%s\n", a->id);
		return;
	}
	fprintf(inv->out, "%s%.*s%s  %-16s  %*s  ", out_style(inv, OUT_ID), OUT_SHORT_ID, a->id,
		out_style(inv, OUT_PLAIN), out_when(a->created, when), OUT_SIZE_WIDTH,
		size_format(a->bytes, size));
	print_paths(inv, a);
	if (!a->meta)
		return;
	fprintf(inv->out, "%*s", OUT_SHORT_ID + 2, "");
	out_meta(inv->out, a->meta);
	fputc('\n', inv->out);
}

static int list(struct invocation *inv, struct err *err)
{
	CLEANUP(engine_artifacts_done) struct engine_artifacts all = { 0 };
	CLEANUP(json_done) struct json_doc doc = { 0 };
	struct json j = out_json_begin(inv, &doc), to;
	bool any = false;
	int r = engine_artifacts(inv->engine, &all, err);

	if (r < 0)
		return r;
	json_set_text(j, "act", "list");
	to = json_set_array(j, "artifacts");
	for (size_t i = 0; i < all.n; i++) {
		if (!is_wanted(inv->args, &all.list[i]))
			continue;
		if (!any && !inv->json && !inv->quiet)
			fprintf(inv->out, "%s%-8s  %-16s  %*s  PATHS%s\n", out_style(inv, OUT_DIM),
				"ARTIFACT", "SAVED", OUT_SIZE_WIDTH, "SIZE",
				out_style(inv, OUT_PLAIN));
		any = true;
		if (inv->json)
			set_artifact(json_add_object(to), &all.list[i]);
		else
			print_line(inv, &all.list[i]);
	}
	if (inv->json)
		return json_print(&doc, inv->out, err);
	if (!any && !inv->quiet)
		fputs("no artifacts\n", inv->out);
	return CMD_OK;
}

/* --- show ------------------------------------------------------------------------------- */

struct shower {
	const struct invocation *inv;
	bool is_file;
	struct json j, entries; /* with --json */
	struct buf content;
	struct screen screen;
};

static void shower_done(struct shower *s)
{
	buf_done(&s->content);
	screen_done(&s->screen);
}

static int on_found(const struct engine_entry *e, void *ctx, struct err *err)
{
	struct shower *s = ctx;

	s->is_file = S_ISREG(e->mode);
	if (s->inv->json && s->is_file && e->size > JSON_CONTENT_MAX)
		return err_set(err, -EFBIG,
			       "the file is too large for JSON; `artifact get` writes it");
	if (!s->is_file && !S_ISDIR(e->mode))
		return err_set(err, -EINVAL, "'%s' is neither a file nor a directory", e->name);
	if (s->inv->json && !s->is_file)
		s->entries = json_set_array(s->j, "entries");
	return 0;
}

static int on_entry(const struct engine_entry *e, void *ctx, struct err *err)
{
	struct shower *s = ctx;
	const char *slash = S_ISDIR(e->mode) ? "/" : "";
	struct json one;

	if (!s->inv->json) {
		out_name(s->inv->out, e->name);
		fprintf(s->inv->out, "%s\n", slash);
		return 0;
	}
	one = json_add_object(s->entries);
	json_set_name(one, "name", e->name);
	json_set_text(one, "type",
		      S_ISDIR(e->mode)   ? "directory"
		      : S_ISLNK(e->mode) ? "symlink"
		      : S_ISREG(e->mode) ? "file"
					 : "other");
	json_set_uint(one, "size", e->size);
	return 0;
}

static int on_bytes(const void *data, size_t len, void *ctx, struct err *err)
{
	struct shower *s = ctx;

	if (!s->inv->json)
		return screen_write(&s->screen, data, len, err);
	return buf_append(&s->content, data, len) < 0 ? err_nomem(err) : 0;
}

static void set_content(struct json j, const struct buf *content)
{
	const char *s = content->len > 0 ? (const char *)content->data : "";
	size_t at = 0, n = 1;

	for (; at < content->len && n > 0; at += n)
		n = utf8_valid(s + at, content->len - at);
	json_set_text(j, "encoding", n > 0 ? "utf-8" : "base64");
	if (n > 0)
		json_set_text_len(j, "content", s, content->len);
	else
		json_set_raw(j, "content", s, content->len);
}

/* The record, or with PATH what is there. */
static int show(struct invocation *inv, struct err *err)
{
	CLEANUP(engine_artifact_done) struct engine_artifact a = { 0 };
	CLEANUP(json_done) struct json_doc doc = { 0 };
	CLEANUP(shower_done) struct shower s = { .inv = inv };
	const struct engine_show_sink sink = {
		.found = on_found,
		.entry = on_entry,
		.bytes = on_bytes,
		.ctx = &s,
	};
	int r = engine_artifact_find(inv->engine, inv->words[1], &a, err);

	if (r == -ENOENT || r == -EINVAL)
		cmd_hint(inv, "artifact list");
	if (r < 0)
		return r;
	if (inv->n_words == 2)
		return print_one(inv, "show", "artifact", &a, NULL, err);
	s.j = out_json_begin(inv, &doc);
	screen_begin(&s.screen, inv);
	json_set_text(s.j, "act", "show");
	set_artifact(s.j, &a);
	json_set_name(s.j, "path", inv->words[2]);
	r = engine_artifact_read(inv->engine, a.id, inv->words[2], &sink, err);
	r = r < 0 ? r : screen_flush(&s.screen, err);
	if (r == -ENOENT)
		cmd_hint(inv, "artifact show %s", a.id);
	if (r < 0 || !inv->json)
		return r;
	if (s.is_file)
		set_content(s.j, &s.content);
	return json_print(&doc, inv->out, err);
}

/* --- the command ------------------------------------------------------------------------ */

static const struct act {
	const char *name;
	int min, max; /* words behind it; max 0: any number */
	int (*run)(struct invocation *inv, struct err *err);
	bool meta, to; /* options that it takes */
} acts[] = {
	{ "save", 1, 0, save, true, false },      { "list", 0, 0, list, true, false },
	{ "show", 1, 2, show, false, false },     { "get", 1, 1, get, false, true },
	{ "rm", 1, 0, remove_all, false, false },
};

static int artifact_run(struct invocation *inv, struct err *err)
{
	const struct artifact_args *args = inv->args;
	const char *name = inv->n_words > 0 ? inv->words[0] : "list";

	for (size_t i = 0; i < ARRAY_LEN(acts); i++) {
		const struct act *a = &acts[i];
		const int n = inv->n_words > 0 ? inv->n_words - 1 : 0;

		if (strcmp(a->name, name) != 0 || n < a->min || (a->max > 0 && n > a->max) ||
		    (a->run == list && n > 0))
			continue;
		if ((args->meta.n > 0 && !a->meta) || (args->to && !a->to))
			return err_set(err, -EINVAL, "'artifact %s' has no option '--%s'", name,
				       args->to ? "to" : "meta");
		return a->run(inv, err);
	}
	cmd_hint(inv, "help artifact");
	return err_set(
	    err, -EINVAL,
	    "'artifact' takes 'save CLONE PATH...', 'list', 'show ID [PATH]', 'get ID' or "
	    "'rm ID...'");
}

const struct command cmd_artifact = {
	.name = "artifact",
	.group = "Runs",
	.rare = true,
	.summary = "keep files of a clone that outlive it, and get them back",
	.words = "[save CLONE PATH... | list | show | get | rm ID]",
	.max_words = 1000,
	.opts = artifact_opts,
	.details =
	    "'save' keeps files and directories of a clone as they are now, until 'rm'. Removing\n"
	    "the clone or a gc does not touch them, and bytes that the store has already take no\n"
	    "more space. PATH counts from the top of the project. ID is what 'save' prints, the\n"
	    "beginning of it, or of the SHA-256 that 'show' prints. 'get' writes all of it below\n"
	    "DIR or nothing, and replaces no file. Into a project it writes nothing that the guard\n"
	    "holds. `run --artifact PATH` saves after a run.\n",
	.examples = "artifact save idea build/app --meta version=2\nartifact list\n"
		    "artifact get 8f3a0c11 --to ~/out\n",
	.run = artifact_run,
};
