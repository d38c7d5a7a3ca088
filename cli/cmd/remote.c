#include <errno.h>
#include <string.h>

#include "base/size.h"
#include "cli/out.h"
#include "cli/screen.h"
#include "engine/api/remote.h"

#define LOG_MAX 1000

struct remote_args {
	uint64_t count;
};

static const struct opt remote_opts[] = {
	OPT_U64('n', "count", "N", struct remote_args, count, "log: at most so many"),
	OPT_END,
};
_Static_assert(sizeof(struct remote_args) <= CMD_ARGS_MAX, "grow CMD_ARGS_MAX");

static int usage(struct invocation *inv, const char *what, struct err *err)
{
	cmd_hint(inv, "help remote");
	return err_set(err, -EINVAL, "%s", what);
}

/* --- add, rm, list ------------------------------------------------------------------------ */

static int print_remotes(struct invocation *inv, const char *act, const char *only, struct err *err)
{
	CLEANUP(engine_remotes_done) struct engine_remotes all = { 0 };
	CLEANUP(json_done) struct json_doc doc = { 0 };
	struct json j = out_json_begin(inv, &doc), list, one;
	int r = engine_remotes(inv->engine, &all, err);

	if (r < 0)
		return r;
	json_set_text(j, "act", act);
	list = json_set_array(j, "remotes");
	for (size_t i = 0; i < all.n; i++) {
		if (only && strcmp(all.list[i].name, only) != 0)
			continue;
		one = json_add_object(list);
		json_set_text(one, "remote", all.list[i].name);
		json_set_text(one, "url", all.list[i].url);
		if (!inv->json && inv->quiet && !only)
			fprintf(inv->out, "%s\n", all.list[i].name);
		else if (!inv->json && !inv->quiet) {
			fprintf(inv->out, "%-16s  ", all.list[i].name);
			out_name(inv->out, all.list[i].url);
			fputc('\n', inv->out);
		}
	}
	return inv->json ? json_print(&doc, inv->out, err) : CMD_OK;
}

static int add(struct invocation *inv, struct err *err)
{
	int r;

	if (inv->n_words != 3)
		return usage(inv, "'remote add' needs NAME and URL", err);
	r = engine_remote_add(inv->engine, inv->words[1], inv->words[2], err);
	if (r == -EEXIST)
		cmd_hint_words(inv, "remote rm", (const char *[]){ inv->words[1], NULL });
	return r < 0 ? r : print_remotes(inv, "add", inv->words[1], err);
}

static int rm(struct invocation *inv, struct err *err)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	struct json j = out_json_begin(inv, &doc);
	int r;

	if (inv->n_words != 2)
		return usage(inv, "'remote rm' needs one NAME", err);
	r = engine_remote_remove(inv->engine, inv->words[1], err);
	if (r == -ENOENT)
		cmd_hint(inv, "remote list");
	if (r < 0)
		return r;
	json_set_text(j, "act", "rm");
	json_set_text(json_add_object(json_set_array(j, "remotes")), "remote", inv->words[1]);
	return inv->json ? json_print(&doc, inv->out, err) : CMD_OK;
}

/* --- log ---------------------------------------------------------------------------------- */

static void set_entry(struct json j, const struct engine_remote_entry *one)
{
	json_set_text(j, "name", one->name);
	json_set_text(j, "manifest", one->manifest);
	json_set_name(j, "message", one->message);
	json_set_name(j, "who", one->who);
	json_set_name(j, "host", one->host);
	out_json_time(j, "created", one->created);
	out_json_time(j, "pushed", one->pushed);
	json_set_uint(j, "files", one->files);
	json_set_uint(j, "bytes", one->bytes);
	json_set_uint(j, "packed", one->packed);
	json_set_uint(j, "packs", one->packs);
}

/* "0c4f11d2e4b5  2026-11-17 13:30  main  anna@host  80,000 files, 251 MiB  message" */
static void print_entry(const struct invocation *inv, const struct engine_remote_entry *one)
{
	char size[SIZE_TEXT_MAX], time[OUT_TIME_MAX];

	fprintf(inv->out, "%s%.12s%s  %s  ", out_style(inv, OUT_ID), one->manifest + 7,
		out_style(inv, OUT_PLAIN), out_when(one->pushed, time));
	if (one->name)
		fprintf(inv->out, "%s  ", one->name);
	out_name(inv->out, one->who ? one->who : "?");
	fputc('@', inv->out);
	out_name(inv->out, one->host ? one->host : "?");
	fputs("  ", inv->out);
	out_plural(inv->out, one->files, "file", "files");
	fprintf(inv->out, ", %s  ", size_format(one->bytes, size));
	out_name(inv->out, one->message ? one->message : "");
	fputc('\n', inv->out);
}

static int print_log(struct invocation *inv, struct err *err)
{
	CLEANUP(engine_remote_log_done) struct engine_remote_log log = { 0 };
	const struct remote_args *args = inv->args;
	CLEANUP(json_done) struct json_doc doc = { 0 };
	struct json j = out_json_begin(inv, &doc), list;
	const size_t max = args->count > 0 && args->count < LOG_MAX ? (size_t)args->count : LOG_MAX;
	int r;

	if (inv->n_words != 2)
		return usage(inv, "'remote log' needs REMOTE[:NAME]", err);
	r = engine_remote_log(inv->engine, inv->words[1], max, &log, err);
	if (r == -ENOENT)
		cmd_hint(inv, "remote list");
	if (r < 0)
		return r;
	json_set_text(j, "act", "log");
	json_set_text(j, "url", log.remote);
	list = json_set_array(j, "snapshots");
	for (size_t i = 0; i < log.n; i++) {
		set_entry(json_add_object(list), &log.list[i]);
		if (!inv->json && inv->quiet)
			fprintf(inv->out, "%s\n", log.list[i].manifest);
		else if (!inv->json)
			print_entry(inv, &log.list[i]);
	}
	return inv->json ? json_print(&doc, inv->out, err) : CMD_OK;
}

static int remote_run(struct invocation *inv, struct err *err)
{
	const char *act = inv->n_words > 0 ? inv->words[0] : "list";

	if (strcmp(act, "add") == 0)
		return add(inv, err);
	if (strcmp(act, "rm") == 0)
		return rm(inv, err);
	if (strcmp(act, "log") == 0)
		return print_log(inv, err);
	if (strcmp(act, "list") == 0 && inv->n_words <= 1)
		return print_remotes(inv, "list", NULL, err);
	return usage(inv, "'remote' takes add, list, rm or log", err);
}

const struct command cmd_remote = {
	.name = "remote",
	.group = "Snapshots",
	.rare = true,
	.summary = "name the places that snapshots are pushed to, and look into them",
	.words = "[list | add NAME URL | rm NAME | log REMOTE[:NAME]]",
	.max_words = 3,
	.opts = remote_opts,
	.details =
	    "URL is dir:/path, a directory of its own (an OCI image layout), or\n"
	    "oci://host[:port]/repository, a registry. Names are kept in remotes.json beside\n"
	    "config.yaml, for all stores of this user; no password is among them. `remote log` lists\n"
	    "what a remote has under each name or, with NAME, what that name meant before.\n",
	.examples =
	    "remote add origin dir:/mnt/share/app\nremote\nremote log origin\nremote log origin:main\n",
	.run = remote_run,
};
