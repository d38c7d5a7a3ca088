#include <errno.h>
#include <string.h>

#include "cli/complete/complete.h"
#include "cli/out.h"
#include "engine/api/experiment.h"
#include "engine/api/names.h"
#include "engine/api/profile.h"
#include "engine/api/run.h"

static const struct {
	const char *name;
	void (*print)(const struct command *const *commands, FILE *out);
} shells[] = {
	{ "bash", complete_bash },
	{ "zsh", complete_zsh },
	{ "fish", complete_fish },
};

/* --- what the scripts ask for ----------------------------------------------------------- */

/* What would break the form of a line is not offered. */
static void print_name(const char *name, const char *about, void *ctx)
{
	FILE *out = ctx;

	if (strpbrk(name, "\t\n"))
		return;
	fprintf(out, "%s\t%.*s\n", name, (int)strcspn(about, "\t\n"), about);
}

/* A user who presses TAB wants names, and no word about errors. */
static int print_names(struct invocation *inv, enum engine_names what)
{
	const struct engine_options options = { .dir = inv->dir, .store = inv->store };
	CLEANUP(engine_close_p) struct engine *engine = NULL;

	if (engine_open(&options, &engine, NULL) < 0)
		return CMD_OK;
	IGNORE_RESULT(engine_names(engine, what, inv->n_words > 1 ? inv->words[1] : NULL,
				   print_name, inv->out, NULL),
		      "then there is nothing more to offer");
	return CMD_OK;
}

static void print_runs(struct engine *e, FILE *out)
{
	CLEANUP(engine_runs_done) struct engine_runs runs = { 0 };
	const struct engine_runs_options options = { .all = false };

	if (engine_runs(e, &options, &runs, NULL) < 0)
		return;
	for (size_t i = 0; i < runs.n; i++) {
		const struct engine_run *r = &runs.list[i];

		print_name(r->id, r->argv.n > 0 ? r->argv.list[0] : "run", out);
	}
}

static void print_profiles(struct engine *e, FILE *out)
{
	CLEANUP(engine_profiles_done) struct engine_profiles profiles = { 0 };

	if (engine_profiles(e, &profiles, NULL) < 0)
		return;
	for (size_t i = 0; i < profiles.n; i++)
		print_name(profiles.list[i].name, profiles.list[i].description, out);
}

static void print_experiments(struct engine *e, FILE *out)
{
	CLEANUP(engine_experiments_done) struct engine_experiments l = { 0 };

	if (engine_experiments(e, false, &l, NULL) < 0)
		return;
	for (size_t i = 0; i < l.n; i++)
		print_name(l.list[i].name, "experiment", out);
}

static int print_with(const struct invocation *inv, void (*print)(struct engine *e, FILE *out))
{
	const struct engine_options options = { .dir = inv->dir, .store = inv->store };
	CLEANUP(engine_close_p) struct engine *engine = NULL;

	if (engine_open(&options, &engine, NULL) >= 0)
		print(engine, inv->out);
	return CMD_OK;
}

/* --- the command ------------------------------------------------------------------------ */

static int print_json(const struct invocation *inv, size_t shell, struct err *err)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	AUTO_FREE char *script = NULL;
	struct json j = out_json_begin(inv, &doc);
	size_t len = 0;
	FILE *to = open_memstream(&script, &len);

	if (!to)
		return err_nomem(err);
	shells[shell].print(inv->commands, to);
	if (fclose(to) == EOF)
		return err_nomem(err);
	json_set_text(j, "shell", shells[shell].name);
	json_set_text_len(j, "script", script, len);
	return json_print(&doc, inv->out, err);
}

static int completion_run(struct invocation *inv, struct err *err)
{
	const char *word = inv->words[0];

	for (size_t i = 0; i < ARRAY_LEN(shells); i++) {
		if (strcmp(shells[i].name, word) != 0)
			continue;
		if (inv->n_words > 1)
			return err_set(err, -EINVAL, "'completion %s' takes no further word", word);
		if (inv->json)
			return print_json(inv, i, err);
		shells[i].print(inv->commands, inv->out);
		return CMD_OK;
	}
	if (strcmp(word, "clones") == 0)
		return print_names(inv, ENGINE_NAMES_CLONES);
	if (strcmp(word, "states") == 0)
		return print_names(inv, ENGINE_NAMES_STATES);
	if (strcmp(word, "promotions") == 0)
		return print_names(inv, ENGINE_NAMES_PROMOTIONS);
	if (strcmp(word, "runs") == 0)
		return print_with(inv, print_runs);
	if (strcmp(word, "profiles") == 0)
		return print_with(inv, print_profiles);
	if (strcmp(word, "experiments") == 0)
		return print_with(inv, print_experiments);
	cmd_hint(inv, "help completion");
	return err_set(err, -EINVAL, "there is no completion for '%s': bash, zsh and fish have one",
		       word);
}

const struct command cmd_completion = {
	.name = "completion",
	.group = "Other",
	.rare = true,
	.summary = "print a script for your shell to complete commands",
	.words = "bash|zsh|fish",
	.min_words = 1,
	.max_words = 2, /* "states CLONE", which scripts ask for */
	.details =
	    "If snap is installed, this is already in place. Otherwise let your shell read it when\n"
	    "it starts.\n",
	.examples = "completion bash >> ~/.bash_completion\n"
		    "completion zsh > ~/.zfunc/_snapcow\n"
		    "completion fish > ~/.config/fish/completions/snapcow.fish\n",
	.no_engine = true,
	.run = completion_run,
};
