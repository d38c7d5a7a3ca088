#include <errno.h>
#include <string.h>

#include "cli/out.h"
#include "engine/api/clone.h"
#include "engine/api/since.h"

#define VERSION "2" /* of git's protocol */

struct fsmonitor_args {
	bool setup;
};

static const struct opt fsmonitor_opts[] = {
	OPT_FLAG(0, "setup", struct fsmonitor_args, setup, "make git in the clone ask it"),
	OPT_END,
};
_Static_assert(sizeof(struct fsmonitor_args) <= CMD_ARGS_MAX, "grow CMD_ARGS_MAX");

/* As githooks(5) has it: the new token, then each path, with a zero byte behind each. */
static void print_hook(const struct invocation *inv, const struct engine_since *s)
{
	fputs(s->token, inv->out);
	fputc('\0', inv->out);
	if (s->all) {
		fputc('/', inv->out);
		fputc('\0', inv->out);
	}
	for (size_t i = 0; i < s->paths.n; i++) {
		fputs(s->paths.list[i], inv->out);
		fputc('\0', inv->out);
	}
}

static int print(const struct invocation *inv, const struct engine_since *s, struct err *err)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	struct json j;

	if (!inv->json) {
		print_hook(inv, s);
		return CMD_OK;
	}
	j = out_json_begin(inv, &doc);
	json_set_text(j, "act", "since");
	json_set_text(j, "token", s->token);
	json_set_bool(j, "all", s->all);
	json_set_names(j, "paths", s->paths.list, s->paths.n);
	return json_print(&doc, inv->out, err);
}

static int answer(struct invocation *inv, struct err *err)
{
	CLEANUP(engine_since_done) struct engine_since s = { 0 };
	int r;

	if (inv->n_words != 2)
		return err_set(err, -EINVAL, "'fsmonitor' needs VERSION TOKEN or --setup");
	if (strcmp(inv->words[0], VERSION) != 0)
		return err_set(err, -EINVAL,
			       "git's protocol is spoken in version " VERSION " only");
	r = engine_since(inv->engine, inv->words[1], &s, err);
	return r < 0 ? r : print(inv, &s, err);
}

static int set_up(struct invocation *inv, struct err *err)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	AUTO_FREE char *here = inv->n_words == 0 ? engine_clone_here(inv->engine) : NULL;
	AUTO_FREE char *path = NULL;
	const char *clone = inv->n_words == 1 ? inv->words[0] : here;
	struct json j;
	int r;

	if (inv->n_words > 1 || !clone)
		return err_set(err, -EDESTADDRREQ,
			       "name the clone: the current directory is in none");
	r = engine_mount(inv->engine, clone, &path, err);
	r = r < 0 ? r : engine_since_setup(inv->engine, path, err);
	if (r == -ENOENT)
		cmd_hint(inv, "list");
	if (r < 0)
		return r;
	if (!inv->json) {
		if (!inv->quiet)
			fprintf(inv->out, "git in clone %s asks snap what changed\n", clone);
		return CMD_OK;
	}
	j = out_json_begin(inv, &doc);
	json_set_text(j, "act", "setup");
	json_set_name(j, "clone", clone);
	json_set_name(j, "path", path);
	return json_print(&doc, inv->out, err);
}

static int fsmonitor_run(struct invocation *inv, struct err *err)
{
	const struct fsmonitor_args *args = inv->args;
	int r = args->setup ? set_up(inv, err) : answer(inv, err);

	if (r == -EINVAL)
		cmd_hint(inv, "help fsmonitor");
	return r;
}

const struct command cmd_fsmonitor = {
	.name = "fsmonitor",
	.group = "Daemon and mounts",
	.rare = true,
	.summary = "tell git what changed in a clone, so it need not read all files",
	.words = "[VERSION TOKEN | CLONE]",
	.max_words = 2,
	.opts = fsmonitor_opts,
	.details =
	    "A hook for git (core.fsmonitor, version 2). `snap fsmonitor --setup` sets it in the\n"
	    "configuration of the clone's own repository; `snap clone --fsmonitor` makes a clone\n"
	    "that has it. `git status` there then looks only at files that changed since it was\n"
	    "last run, in a tree of any size. Where that cannot be known (after a rollback, a\n"
	    "rebase, a restart of the daemon, in a clone of the clone) git looks at everything\n"
	    "once. Within a run there is no daemon to ask: git looks at everything, as ever.\n",
	.examples = "clone -n idea --fsmonitor\nfsmonitor --setup idea\n",
	.run = fsmonitor_run,
};
