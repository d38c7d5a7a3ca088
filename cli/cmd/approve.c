#include <errno.h>

#include "cli/screen.h"
#include "cli/show/changes.h"
#include "engine/api/desk.h"
#include "engine/api/diff.h"

struct approve_args {
	const char *message, *at, *stage, *digest;
	bool show, dry_run;
};

static const struct opt approve_opts[] = {
	OPT_STR('m', "message", "WHY", struct approve_args, message,
		"a reason, kept with the receipt"),
	OPT_STR(0, "at", "ADDRESS", struct approve_args, at,
		"a store of another user, as `pipeline serve` prints it"),
	OPT_STR(0, "stage", "STAGE", struct approve_args, stage,
		"only if the change waits for this stage"),
	OPT_STR(0, "digest", "SHA256", struct approve_args, digest,
		"only if its diff has this digest"),
	OPT_FLAG(0, "show", struct approve_args, show, "only print the change as a patch"),
	OPT_FLAG(0, "dry-run", struct approve_args, dry_run,
		 "only say what would be approved, with its paths"),
	OPT_END,
};

static const struct opt reject_opts[] = {
	OPT_STR('m', "message", "WHY", struct approve_args, message, "the reason (required)"),
	OPT_STR(0, "at", "ADDRESS", struct approve_args, at,
		"a store of another user, as `pipeline serve` prints it"),
	OPT_END,
};
_Static_assert(sizeof(struct approve_args) <= CMD_ARGS_MAX, "grow CMD_ARGS_MAX");

static int print_json(struct invocation *inv, const struct engine_change *c, struct err *err)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };

	changes_set(out_json_begin(inv, &doc), c);
	return json_print(&doc, inv->out, err);
}

static int decide(struct invocation *inv, bool reject, struct err *err)
{
	CLEANUP(engine_change_done) struct engine_change c = { 0 };
	const struct approve_args *args = inv->args;
	const struct engine_decision what = {
		.reject = reject,
		.reason = args->message,
		.stage = args->stage,
		.digest = args->digest,
	};
	int r;

	if (reject && (!args->message || *args->message == '\0'))
		return err_set(err, -EINVAL, "'reject' needs -m WHY: the reason");
	r = args->at ? engine_desk_decide(args->at, inv->words[0], &what, &c, err)
		     : engine_approve(inv->engine, inv->words[0], &what, &c, err);
	if (!args->at && (r == -ENOENT || r == -ECANCELED))
		cmd_hint(inv, "pipeline");
	if (r < 0)
		return r;
	if (inv->json)
		return print_json(inv, &c, err);
	if (inv->quiet)
		return CMD_OK;
	fprintf(inv->out, "%s %.*s", reject ? "rejected" : "approved", OUT_SHORT_ID, c.id);
	if (!reject)
		fprintf(inv->out, " for stage %s", c.stage ? c.stage : "");
	if (!reject && !args->at)
		fprintf(inv->out, ": snap ship --continue %.*s", OUT_SHORT_ID, c.id);
	fputc('\n', inv->out);
	return CMD_OK;
}

/* What waits for this user at somebody else's store. */
static int list(struct invocation *inv, const char *at, struct err *err)
{
	CLEANUP(engine_changes_done) struct engine_changes l = { 0 };
	CLEANUP(json_done) struct json_doc doc = { 0 };
	int r = engine_desk_list(at, &l, err);

	if (r < 0)
		return r;
	for (size_t i = 0; inv->quiet && !inv->json && i < l.n; i++)
		fprintf(inv->out, "%s\n", l.list[i].id);
	for (size_t i = 0; !inv->quiet && !inv->json && i < l.n; i++)
		changes_print_asked(inv, &l.list[i], at);
	if (!inv->quiet && !inv->json && l.n == 0)
		fputs("nothing waits for you there\n", inv->out);
	if (!inv->json)
		return CMD_OK;
	JSON_SET_LIST(out_json_begin(inv, &doc), "changes", l.list, l.n, changes_set);
	return json_print(&doc, inv->out, err);
}

static int show(struct invocation *inv, const char *at, struct err *err)
{
	CLEANUP(engine_change_done) struct engine_change c = { 0 };
	CLEANUP(screen_done) struct screen screen = { 0 };
	CLEANUP(buf_done) struct buf patch = BUF_INIT;
	int r = engine_desk_look(at, inv->words[0], &c, &patch, err);

	if (r < 0)
		return r;
	if (inv->json) {
		CLEANUP(json_done) struct json_doc doc = { 0 };
		const struct json j = out_json_begin(inv, &doc);

		changes_set(j, &c);
		json_set_name(j, "patch", buf_str(&patch));
		json_set_bool(j, "cut", r > 0);
		return json_print(&doc, inv->out, err);
	}
	screen_begin(&screen, inv);
	if (screen_write(&screen, patch.data, patch.len, err) < 0 || screen_flush(&screen, err) < 0)
		return err->code;
	if (r > 0)
		fprintf(inv->out,
			"\nthe patch is longer: this is its beginning; the digest of all is %s\n",
			c.sha256);
	return CMD_OK;
}

struct paths {
	struct invocation *inv;
	struct json list; /* with --json */
};

static int add_file(const struct delta_file *f, const struct patch_counts *n, void *ctx,
		    struct err *err)
{
	const char *const word = f->status == DELTA_ADDED     ? "added"
				 : f->status == DELTA_DELETED ? "deleted"
							      : "modified";
	const struct paths *p = ctx;
	struct json one;

	if (!p->inv->json) {
		fprintf(p->inv->out, "  %s ", word);
		out_name_line(p->inv->out, f->path);
		return 0;
	}
	one = json_add_object(p->list);
	json_set_name(one, "path", f->path);
	json_set_text(one, "status", word);
	return 0;
}

/* What an approval would be for. */
static int plan(struct invocation *inv, struct err *err)
{
	CLEANUP(engine_change_done) struct engine_change c = { 0 };
	CLEANUP(json_done) struct json_doc doc = { 0 };
	struct paths paths = { .inv = inv };
	const struct engine_diff_sink sink = { .file = add_file, .ctx = &paths };
	const struct json j = out_json_begin(inv, &doc);
	int r = engine_change_find(inv->engine, inv->words[0], &c, err);

	if (r < 0)
		return r;
	if (c.state != ENGINE_CHANGE_WAITING || c.approved_by)
		return err_set(err, -ECANCELED, "change %s is %s: there is nothing to decide", c.id,
			       c.approved_by ? "approved" : engine_change_state_name(c.state));
	if (inv->json)
		changes_set(j, &c);
	else
		changes_print(inv, &c);
	paths.list = json_set_array(j, "changed");
	r = engine_diff(inv->engine, &(struct engine_diff_options){ .a = c.base, .b = c.state_id },
			&sink, err);
	return r < 0 || !inv->json ? r : json_print(&doc, inv->out, err);
}

static int approve_run(struct invocation *inv, struct err *err)
{
	const struct approve_args *args = inv->args;

	if (args->at && inv->n_words == 0)
		return list(inv, args->at, err);
	if (inv->n_words == 0) {
		cmd_hint(inv, "pipeline");
		return err_set(err, -EINVAL, "'approve' needs CHANGE");
	}
	if (args->show && !args->at)
		return err_set(err, -EINVAL, "--show needs --at: here, 'snap diff' shows it");
	if (args->dry_run && !args->at)
		return plan(inv, err);
	if (args->dry_run)
		return err_set(err, -EINVAL, "with --at, --show says what would be approved");
	return args->show ? show(inv, args->at, err) : decide(inv, false, err);
}

static int reject_run(struct invocation *inv, struct err *err)
{
	return decide(inv, true, err);
}

const struct command cmd_approve = {
	.name = "approve",
	.group = "Changes",
	.rare = true,
	.summary = "let a change that waits enter its next stage",
	.words = "[CHANGE]",
	.max_words = 1,
	.opts = approve_opts,
	.details =
	    "Only the users and groups that the stage or the policy names may approve; without\n"
	    "such names, the owner of the store. The approval is for this change at this stage.\n"
	    "Paths that the guard holds pass with it.\n"
	    "\n"
	    "A store is open to its owner alone. While the owner runs `pipeline serve`, others approve\n"
	    "with --at; without CHANGE, --at lists what waits for you there. If a patch is too long\n"
	    "to be shown there, the approval needs the --digest of all of it.\n",
	.examples = "approve 3f2a\napprove 3f2a -m 'looked at the diff'\n"
		    "approve --at /tmp/snapcow-1000/5d41402a.sock --show 3f2a\n",
	.run = approve_run,
};

const struct command cmd_reject = {
	.name = "reject",
	.group = "Changes",
	.rare = true,
	.summary = "end a change that is on its way, and bar the same content",
	.words = "CHANGE",
	.min_words = 1,
	.max_words = 1,
	.opts = reject_opts,
	.details = "What has landed in earlier stages stays; `undo` takes it back.\n",
	.examples = "reject 3f2a -m 'not before the release'\n",
	.run = reject_run,
};
