#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "base/path.h"
#include "base/size.h"
#include "base/strlist.h"
#include "cli/progress.h"
#include "cli/show/clones.h"
#include "cli/show/fetched.h"
#include "engine/api/history.h"
#include "engine/api/since.h"

struct clone_args {
	const char *name, *from, *durability, *path;
	uint64_t count, ttl, quota;
	bool private, no_xattrs, skip_unreadable, fsmonitor, root, lazy, wait;
	struct opt_list include;
};

static const struct opt clone_opts[] = {
	OPT_STR('n', "name", "NAME", struct clone_args, name,
		"name of the clone (default: two words not in use)"),
	OPT_STR(0, "from", "STATE", struct clone_args, from,
		"start from a snapshot or clone (default: here)"),
	OPT_U64(0, "count", "N", struct clone_args, count, "make N, called NAME-1, NAME-2, ..."),
	OPT_DURATION(0, "ttl", "TIME", struct clone_args, ttl,
		     "remove it when it is this old and unused: 30m, 2h"),
	OPT_SIZE(0, "quota", "SIZE", struct clone_args, quota, "limit its growth: 2G"),
	OPT_STR(0, "durability", "HOW", struct clone_args, durability,
		"full (default): fsync survives power loss; or fast"),
	OPT_FLAG(0, "private", struct clone_args, private, "for root alone: faster, but no runs"),
	OPT_FLAG(0, "no-xattrs", struct clone_args, no_xattrs,
		 "with --private: no extended attributes"),
	OPT_FLAG(0, "fsmonitor", struct clone_args, fsmonitor,
		 "let git ask snap what changed; faster `git status`"),
	OPT_FLAG(0, "root", struct clone_args, root, "clone / of this machine, without its mounts"),
	OPT_STR(0, "path", "DIR", struct clone_args, path, "only this directory of the project"),
	OPT_FLAG(0, "lazy", struct clone_args, lazy, "do not wait until the files are read"),
	OPT_LIST(0, "include-mount", "PATH", struct clone_args, include,
		 "with --root: include the file system mounted at PATH"),
	OPT_FLAG(0, "wait", struct clone_args, wait, "return when all files are in the store"),
	OPT_FLAG(0, "skip-unreadable", struct clone_args, skip_unreadable,
		 "skip files that cannot be read, and list them"),
	OPT_END,
};
_Static_assert(sizeof(struct clone_args) <= CMD_ARGS_MAX, "grow CMD_ARGS_MAX");

#define UNSAID UINT64_MAX /* --count was not given */

static void clone_preset(void *args)
{
	((struct clone_args *)args)->count = UNSAID;
}

static void set_strays(struct json array, const struct engine_stray *list, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct json one = json_add_object(array);

		json_set_name(one, "path", list[i].path);
		json_set_name(one, "leads_to", list[i].to);
	}
}

/* What of the machine is in no clone of it. */
static void set_left_out(struct json j, const struct engine_taken *t)
{
	struct json list;

	json_set_names(j, "left_out", t->left_out, t->n_left_out);
	list = json_set_array(j, "unreadable");
	for (size_t i = 0; i < t->n_skipped; i++)
		json_add_name(list, t->skipped[i].path);
}

static int print_json(const struct invocation *inv, const struct engine_clones *c,
		      const struct engine_taken *taken, const struct engine_fetched *fetched,
		      struct err *err)
{
	const struct clone_args *args = inv->args;
	CLEANUP(json_done) struct json_doc doc = { 0 };
	struct json j = out_json_begin(inv, &doc), list;

	clones_set_json(j, &c->list[0]);
	if (args->count != UNSAID) {
		JSON_SET_LIST(j, "clones", c->list, c->n, clones_set_json);
	}
	json_set_name(j, "git_dir", c->git_dir);
	set_strays(json_set_array(j, "git_links"), c->links, c->n_links);
	set_strays(json_set_array(j, "warnings"), c->strays, c->n_strays);
	if (args->root)
		set_left_out(j, taken);
	if (fetched->name) {
		list = json_set_object(j, "fetched");
		fetched_set(list, fetched);
		json_set_bool(list, "complete", !c->list[0].capturing.open);
	}
	json_set_uint(j, "elapsed_ms", c->elapsed_ms);
	return json_print(&doc, inv->out, err);
}

static void print_git(const struct engine_clones *c)
{
	if (c->git_dir) {
		fputs("git: a copy of ", stderr);
		out_name(stderr, c->git_dir);
		fputs(", so commits stay in the clone; 'promote --git' brings them\n", stderr);
	}
	for (size_t i = 0; i < c->n_links; i++) {
		fputs("git: ", stderr);
		out_name(stderr, c->links[i].path);
		fputs(" leads to the clone's own ", stderr);
		out_name(stderr, c->links[i].to);
		fputs(", so commits stay in the clone\n", stderr);
	}
}

/* The path alone goes where `cd "$(snap clone)"` finds it. */
static void print_human(const struct invocation *inv, const struct engine_clones *c)
{
	const struct clone_args *args = inv->args;
	char time[DURATION_TEXT_MAX];

	for (size_t i = 0; i < c->n; i++)
		fprintf(inv->out, "%s\n", c->list[i].path);
	if (inv->quiet)
		return;
	if (c->n == 1)
		fprintf(stderr, "clone %s", c->list[0].name);
	else
		fprintf(stderr, "%zu clones", c->n);
	fprintf(stderr, " of snapshot %.*s, in %s\n", OUT_SHORT_ID, c->list[0].base,
		duration_format(c->elapsed_ms, time));
	print_git(c);
	if (!args->lazy && !args->root && inv->n_words == 0)
		clones_print_reading(stderr, c->list[0].name,
				     engine_capturing_left(&c->list[0].capturing), "\n");
}

static void warn(const struct engine_clones *c)
{
	for (size_t i = 0; i < c->n_strays; i++)
		log_warn("'%s' leads to '%s': git there works on that, not on a copy in the clone",
			 c->strays[i].path, c->strays[i].to);
}

/* The clones are there, and git works in them without it too. */
static void set_up_git(const struct invocation *inv, const struct engine_clones *c)
{
	struct err err = { 0 };

	for (size_t i = 0; i < c->n; i++)
		if (engine_since_setup(inv->engine, c->list[i].path, &err) < 0)
			log_warn("no fsmonitor in clone '%s': %s, continuing", c->list[i].name,
				 err.msg);
}

static void hint(struct invocation *inv, int r)
{
	const struct clone_args *args = inv->args;

	if (r == -EACCES)
		cmd_hint_unreadable(inv);
	else if (r == -EPERM && args->private && !args->no_xattrs)
		cmd_hint_again(inv, &(struct hint_again){ .without = "private" });
	else if (r == -ENOENT && !args->path)
		cmd_hint(inv, "log");
	else if (r == -EEXIST)
		cmd_hint(inv, "list --all");
}

/* The machine's own root; what the caller may not read is left out, and named. */
static int take_machine(const struct invocation *inv, struct engine_taken *ret, struct err *err)
{
	const struct clone_args *args = inv->args;
	CLEANUP(strlist_done) struct strlist include = { 0 };
	struct engine_take_options options = {
		.dir = "/",
		.message = "the machine",
		.automatic = true,
		.skip_unreadable = true,
		.lazy = args->lazy || !args->wait,
		.passing = true,
		.watch = progress_watch(inv->progress),
	};

	for (size_t i = 0; i < args->include.n; i++)
		if (strlist_take(&include, path_clean("/", args->include.items[i])) < 0)
			return err_nomem(err);
	options.include = (struct engine_list){ (const char *const *)include.list, include.n };
	return engine_take(inv->engine, &options, ret, err);
}

/* With a word it is a clone of what a remote has. */
static int check_words(const struct invocation *inv, struct err *err)
{
	const struct clone_args *args = inv->args;

	if (inv->n_words == 0)
		return 0;
	if (args->from || args->root || args->path)
		return err_set(err, -EINVAL,
			       "a clone of '%s' takes neither --from nor --root nor --path",
			       inv->words[0]);
	if (args->name && inv->n_words > 1)
		return err_set(err, -EINVAL, "the clone has two names: '%s' and '%s'", args->name,
			       inv->words[1]);
	return 0;
}

static int check(const struct invocation *inv, struct err *err)
{
	const struct clone_args *args = inv->args;

	if (args->count != UNSAID && (args->count < 1 || args->count > ENGINE_CLONES_MAX))
		return err_set(err, -EINVAL, "option '--count' takes 1 to %d", ENGINE_CLONES_MAX);
	if (args->no_xattrs && !args->private)
		return err_set(err, -EINVAL, "option '--no-xattrs' needs '--private'");
	if (args->include.n > 0 && !args->root)
		return err_set(err, -EINVAL, "option '--include-mount' needs '--root'");
	if (args->root && args->from)
		return err_set(err, -EINVAL, "options '--root' and '--from' exclude each other");
	if (args->path && (args->root || args->from))
		return err_set(err, -EINVAL, "options '--path' and '--%s' exclude each other",
			       args->root ? "root" : "from");
	return check_words(inv, err);
}

/* What the clone is made of, where that must be brought or captured first. */
static int prepare(struct invocation *inv, struct engine_clone_options *o, int *hold,
		   struct engine_taken *taken, struct engine_fetched *fetched, struct err *err)
{
	const struct clone_args *args = inv->args;
	int r = 0;

	if (args->root) {
		r = take_machine(inv, taken, err);
		o->from = taken->snapshot.id;
	} else if (inv->n_words > 0) {
		r = fetched_bring(inv, inv->words[0], args->wait ? NULL : hold, fetched, err);
		o->from = fetched->snapshot.id;
		if (r == -ENOENT && !strchr(inv->words[0], '/'))
			cmd_hint_words(inv, "clone -n", (const char *[]){ inv->words[0], NULL });
	}
	if (inv->n_words > 1)
		o->name = inv->words[1];
	return r;
}

static int clone_run(struct invocation *inv, struct err *err)
{
	CLEANUP(engine_clones_done) struct engine_clones clones = { 0 };
	const struct clone_args *args = inv->args;
	const int strict = clones_durability(args->durability, true, err);
	CLEANUP(engine_taken_done) struct engine_taken taken = { 0 };
	CLEANUP(engine_fetched_done) struct engine_fetched fetched = { 0 };
	struct engine_clone_options options = {
		.name = args->name,
		.from = args->from,
		.count = args->count == UNSAID ? 1 : args->count,
		.ttl_ms = args->ttl,
		.quota = args->quota,
		.strict = strict > 0,
		.private = args->private,
		.no_xattrs = args->no_xattrs,
		.skip_unreadable = args->skip_unreadable,
		.lazy = args->lazy,
		.eager = args->wait,
		.part = args->path,
		.watch = progress_watch(inv->progress),
	};
	AUTO_CLOSE int hold = -1; /* what was brought, until the clone is made */
	bool brought;
	int r;

	if (strict < 0)
		return strict;
	r = check(inv, err);
	if (r < 0)
		return r;
	r = prepare(inv, &options, &hold, &taken, &fetched, err);
	brought = r == 0;
	r = r < 0 ? r : engine_clone(inv->engine, &options, &clones, err);
	progress_done(inv->progress);
	if (r < 0 && brought)
		hint(inv, r);
	if (r < 0)
		return r;
	warn(&clones);
	if (args->wait)
		r = engine_settle(inv->engine, clones.list[0].name, &options.watch, err);
	progress_done(inv->progress);
	if (r < 0)
		return r;
	if (args->fsmonitor)
		set_up_git(inv, &clones);
	if (inv->json)
		return print_json(inv, &clones, &taken, &fetched, err);
	print_human(inv, &clones);
	return CMD_OK;
}

const struct command cmd_clone = {
	.name = "clone",
	.group = "Clones",
	.summary = "make a writable clone of the project and print its path",
	.opts = clone_opts,
	.preset = clone_preset,
	.details =
	    "Writing in a clone changes nothing else. `Here` is the clone that holds the current\n"
	    "directory, else the project. Of a large project (capture.eager in config.yaml) and of\n"
	    "REMOTE/NAME, files follow while you work. With --wait, all of them are there first.\n",
	.words = "[REMOTE/NAME [CLONE]]",
	.max_words = 2,
	.examples =
	    "clone -n idea\nclone origin/main theirs\nclone --from @-1 --count 8 -n agent --ttl 2h --quota 2G\n",
	.run = clone_run,
};
