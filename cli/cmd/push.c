#include <errno.h>
#include <string.h>

#include "base/size.h"
#include "cli/out.h"
#include "cli/progress.h"
#include "engine/api/remote.h"

struct push_args {
	const char *message, *sign, *identity;
	struct opt_list encrypt_to;
	bool force, whole, mount;
	uint64_t rate, jobs;
};

static const struct opt push_opts[] = {
	OPT_STR('m', "message", "TEXT", struct push_args, message,
		"message that others see (default: the snapshot's own)"),
	OPT_FLAG('f', "force", struct push_args, force,
		 "move NAME even if it has changes that STATE has not"),
	OPT_FLAG(0, "whole", struct push_args, whole,
		 "send everything in new packs, not only what is new"),
	OPT_FLAG(0, "mount", struct push_args, mount,
		 "take over packs of another repository as they are"),
	OPT_LIST(0, "encrypt-to", "KEY", struct push_args, encrypt_to,
		 "encrypt for an age or SSH key, or a file with keys"),
	OPT_STR(0, "identity", "FILE", struct push_args, identity,
		"your private key, to read encrypted packs there"),
	OPT_STR(0, "sign", "KEY", struct push_args, sign,
		"sign it with an SSH key, as `ssh-keygen -Y sign` does"),
	OPT_U64('j', "jobs", "N", struct push_args, jobs,
		"connections at once, 1 to 4 (default: 4)"),
	OPT_SIZE(0, "rate", "SIZE", struct push_args, rate, "bytes a second at most"),
	OPT_END,
};
_Static_assert(sizeof(struct push_args) <= CMD_ARGS_MAX, "grow CMD_ARGS_MAX");

static int print_json(const struct invocation *inv, const struct engine_pushed *p, struct err *err)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	struct json j = out_json_begin(inv, &doc);

	json_set_text(j, "remote", p->remote);
	json_set_text(j, "name", p->name);
	json_set_name(j, "state", p->state);
	json_set_text(j, "manifest", p->manifest);
	json_set_text(j, "root", p->root);
	json_set_text(j, "signed_as", p->signed_as);
	json_set_bool(j, "encrypted", p->encrypted);
	json_set_bool(j, "same", p->same);
	json_set_uint(j, "bytes_sent", p->bytes_sent);
	json_set_uint(j, "bytes_skipped", p->bytes_skipped);
	json_set_uint(j, "objects_sent", p->objects_sent);
	json_set_uint(j, "packs_sent", p->packs_sent);
	json_set_uint(j, "packs", p->packs);
	json_set_uint(j, "elapsed_ms", p->elapsed_ms);
	return json_print(&doc, inv->out, err);
}

/* "pushed  0c4f11d2e4b567aa to dir:/srv/depot:main  sent 1.2 MiB, 84 MiB were there, in 0.3 s" */
static void print_human(const struct invocation *inv, const struct engine_pushed *p)
{
	char sent[SIZE_TEXT_MAX], there[SIZE_TEXT_MAX], time[DURATION_TEXT_MAX];

	fprintf(inv->out, "%s  %s%.*s%s to ", p->same ? "nothing to push" : "pushed",
		out_style(inv, OUT_ID), OUT_SHORT_ID, p->state, out_style(inv, OUT_PLAIN));
	out_name(inv->out, p->remote);
	fprintf(inv->out, ":%s  ", p->name);
	if (!p->same)
		fprintf(inv->out, "sent %s, %s were there, ", size_format(p->bytes_sent, sent),
			size_format(p->bytes_skipped, there));
	if (p->encrypted)
		fputs("encrypted, ", inv->out);
	if (p->signed_as)
		fputs("signed, ", inv->out);
	fprintf(inv->out, "in %s\n", duration_format(p->elapsed_ms, time));
}

/* What somebody else pushed comes first: into the project, or beside a clone or an older state. */
static void hint_stale(struct invocation *inv, const char *to)
{
	const char *const words[] = { to, NULL };

	if (inv->n_words == 1 || strcmp(inv->words[0], ".") == 0) {
		cmd_hint_words(inv, "pull", words);
		cmd_hint_note(inv, "then push again");
	} else {
		cmd_hint_words(inv, "fetch", words);
		cmd_hint_note(inv, "to look at it");
	}
	cmd_hint_again(inv, &(struct hint_again){ .option = "force" });
}

static void hint(struct invocation *inv, int r, const char *to)
{
	if (r == -ESTALE) {
		hint_stale(inv, to);
	} else if (r == -ENOENT && !engine_remote_is(inv->engine, to)) {
		cmd_hint(inv, "remote list");
	} else if (r == -ENOENT && inv->n_words > 1) {
		cmd_hint(inv, "list --all");
		cmd_hint(inv, "log");
	}
}

static int push_run(struct invocation *inv, struct err *err)
{
	CLEANUP(engine_pushed_done) struct engine_pushed pushed = { 0 };
	const struct push_args *args = inv->args;
	const struct engine_push_options options = {
		.state = inv->n_words > 1 ? inv->words[0] : NULL,
		.to = inv->words[inv->n_words - 1],
		.message = args->message,
		.force = args->force,
		.whole = args->whole,
		.mount = args->mount,
		.rate = args->rate,
		.jobs = args->jobs,
		.sign = args->sign,
		.encrypt_to = args->encrypt_to.items,
		.n_encrypt_to = args->encrypt_to.n,
		.identity = args->identity,
		.watch = progress_watch(inv->progress),
	};
	int r = engine_push(inv->engine, &options, &pushed, err);

	progress_done(inv->progress);
	hint(inv, r, options.to);
	if (r < 0)
		return r;
	if (inv->json)
		return print_json(inv, &pushed, err);
	if (inv->quiet)
		fprintf(inv->out, "%s\n", pushed.manifest);
	else
		print_human(inv, &pushed);
	return CMD_OK;
}

const struct command cmd_push = {
	.name = "push",
	.group = "Snapshots",
	.rare = true,
	.summary = "send a snapshot to a remote; only what is missing travels",
	.words = "[STATE] REMOTE[:NAME]",
	.min_words = 1,
	.max_words = 2,
	.opts = push_opts,
	.details =
	    "STATE is a snapshot, a clone as it is now, or `.`, the project as it is now (default: the\n"
	    "clone that holds the current directory, else `.`). REMOTE is a name of `remote add` or an\n"
	    "address: dir:/path, oci://host/repository, s3://bucket/prefix or ssh://host/path. NAME\n"
	    "(default: latest) moves to the snapshot last, so it never names an incomplete one. If\n"
	    "NAME has changes that STATE has not, push ends with 6: `pull` or merge them (`clone\n"
	    "--from`, `promote`) and push again. -q prints the digest of the manifest.\n",
	.examples = "push origin\npush idea origin:idea\npush @ dir:/mnt/share/app:nightly\n",
	.run = push_run,
};
