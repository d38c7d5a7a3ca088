#include <errno.h>
#include <string.h>

#include "cli/out.h"
#include "cli/progress.h"
#include "cli/show/remote-gc.h"
#include "cli/show/remote-log.h"
#include "cli/unborn.h"
#include "engine/api/remote.h"

struct remote_args {
	uint64_t count, keep_last, older_than, grace;
	struct opt_list keep_tags;
	const char *identity;
	bool insecure, dry_run;
};

static const struct opt remote_opts[] = {
	OPT_U64('n', "count", "N", struct remote_args, count, "log: list at most N"),
	OPT_FLAG(0, "insecure", struct remote_args, insecure,
		 "add: allow a registry without TLS; the network can then read and change data"),
	OPT_U64(0, "keep-last", "N", struct remote_args, keep_last,
		"gc: keep the last N snapshots of each name"),
	OPT_DURATION(0, "older-than", "TIME", struct remote_args, older_than,
		     "gc: remove snapshots that were pushed longer ago: 90d"),
	OPT_LIST(0, "keep-tag", "PATTERN", struct remote_args, keep_tags,
		 "gc: keep every snapshot of names like this: 'v*'"),
	OPT_DURATION(0, "grace", "TIME", struct remote_args, grace,
		     "gc: leave younger data alone, for pushes under way (1d)"),
	OPT_STR(0, "identity", "FILE", struct remote_args, identity,
		"gc: your private key, if snapshots are encrypted"),
	OPT_FLAG(0, "dry-run", struct remote_args, dry_run, "gc: only say what would be removed"),
	OPT_END,
};
_Static_assert(sizeof(struct remote_args) <= CMD_ARGS_MAX, "grow CMD_ARGS_MAX");

static void remote_preset(void *args)
{
	((struct remote_args *)args)->grace = REMOTE_GC_GRACE_MS;
}

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
			out_name_line(inv->out, all.list[i].url);
		}
	}
	if (all.n == 0)
		unborn_empty(inv, "no remotes yet", "help remote");
	return inv->json ? json_print(&doc, inv->out, err) : CMD_OK;
}

static int add(struct invocation *inv, struct err *err)
{
	const struct remote_args *args = inv->args;
	struct engine_remote_add_options o = { .insecure = args->insecure };
	int r;

	if (inv->n_words != 3)
		return usage(inv, "'remote add' needs NAME and URL", err);
	o.name = inv->words[1];
	o.url = inv->words[2];
	r = engine_remote_add(inv->engine, &o, err);
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

static int print_log(struct invocation *inv, struct err *err)
{
	const struct remote_args *args = inv->args;

	if (inv->n_words != 2)
		return usage(inv, "'remote log' needs REMOTE[:NAME]", err);
	return remote_log_print(inv, inv->words[1], args->count, err);
}

static int gc(struct invocation *inv, struct err *err)
{
	const struct remote_args *args = inv->args;
	const struct engine_remote_gc_options o = {
		.remote = inv->n_words > 1 ? inv->words[1] : NULL,
		.keep_last = args->keep_last,
		.older_than_ms = args->older_than,
		.keep_tags = args->keep_tags.items,
		.n_keep_tags = args->keep_tags.n,
		.grace_ms = args->grace,
		.identity = args->identity,
		.dry = args->dry_run,
		.watch = progress_watch(inv->progress),
	};

	if (inv->n_words != 2)
		return usage(inv, "'remote gc' needs one REMOTE", err);
	return remote_gc_print(inv, &o, err);
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
	if (strcmp(act, "gc") == 0)
		return gc(inv, err);
	if (strcmp(act, "list") == 0 && inv->n_words <= 1)
		return print_remotes(inv, "list", NULL, err);
	return usage(inv, "'remote' takes add, list, rm, log or gc", err);
}

const struct command cmd_remote = {
	.name = "remote",
	.group = "Snapshots",
	.rare = true,
	.summary = "manage the remotes that snapshots are pushed to and fetched from",
	.words = "[list | add NAME URL | rm NAME | log REMOTE | gc REMOTE]",
	.max_words = 3,
	.opts = remote_opts,
	.preset = remote_preset,
	.details =
	    "URL is dir:/path, a directory of its own (an OCI image layout);\n"
	    "oci://host[:port]/repository, a registry; ssh://[user@]host[:port]/path, a directory on\n"
	    "another machine that has snapcow; s3://bucket[/prefix], a part of a bucket in the S3 store\n"
	    "that AWS_ENDPOINT_URL names, or Amazon's; or s3+https://host[:port]/bucket[/prefix], which\n"
	    "names the store. remotes.json beside config.yaml keeps the names, for\n"
	    "all stores of this user, and no passwords. `remote log REMOTE` lists the names that a\n"
	    "remote has; with REMOTE:NAME, the earlier snapshots of that name.\n"
	    "\n"
	    "`remote gc` frees what no snapshot there needs. Without rules it keeps every snapshot.\n"
	    "With several, a snapshot stays if any rule keeps it. A name is removed with its\n"
	    "snapshot. gc never removes what a remaining name needs, and others may push meanwhile.\n",
	.examples =
	    "remote add origin dir:/mnt/share/app\nremote\nremote log origin\nremote log origin:main\n"
	    "remote gc origin --keep-last 5 --older-than 90d --keep-tag 'v*'\n",
	.run = remote_run,
};
