/*
 * The command of an action: its input, and the notes about its run.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "engine/pipeline/pipeline-i.h"
#include "engine/watch/action-i.h"

/* A line cannot hold any name: one with a newline would be read as two that nobody changed. */
static bool fits_line(const char *path)
{
	return !strchr(path, '\n');
}

/* The paths as a file: an unlinked one that the run reads as its input. */
static int paths_file(const struct engine_firing *f, bool nul, int *ret, struct err *err)
{
	FILE *file = tmpfile();

	if (!file)
		return err_sys(err, "making a file of changed paths");
	for (size_t i = 0; i < f->n_paths; i++)
		if (nul || fits_line(f->paths[i]))
			fprintf(file, "%s%c", f->paths[i], nul ? '\0' : '\n');
	rewind(file);
	*ret = ferror(file) ? -1 : dup(fileno(file));
	fclose(file);
	return *ret < 0 ? err_sys(err, "writing a file of changed paths") : 0;
}

static int add_env(struct strlist *env, const char *name, const char *value, struct err *err)
{
	char *text = NULL;

	if (value && asprintf(&text, "SNAPCOW_TRIGGER_%s=%s", name, value) < 0)
		text = NULL;
	return value && strlist_take(env, text) < 0 ? err_nomem(err) : 0;
}

/* How many paths changed that its file does not name. */
static uint64_t more_paths(const struct engine_firing *f, bool nul)
{
	uint64_t more = f->more_paths;

	for (size_t i = 0; i < f->n_paths && !nul; i++)
		more += !fits_line(f->paths[i]);
	return more;
}

static int trigger_env(const struct engine_firing *f, bool nul, struct strlist *env,
		       struct err *err)
{
	char number[3][24];
	const char *const facts[][2] = {
		{ "RULE", f->rule },
		{ "KIND", engine_trigger_name(f->trigger) },
		{ "ID", f->id },
		{ "DETAIL", f->detail },
		{ "TIME", number[0] },
		{ "COUNT", number[1] },
		{ "PATHS", f->n_paths > 0 ? "/dev/stdin" : NULL },
		{ "MORE", f->n_paths > 0 ? number[2] : NULL },
	};
	int r = 0;

	snprintf(number[0], sizeof(number[0]), "%" PRId64, f->created / NS_PER_S);
	snprintf(number[1], sizeof(number[1]), "%" PRIu64, f->merged + 1);
	snprintf(number[2], sizeof(number[2]), "%" PRIu64, more_paths(f, nul));
	for (size_t i = 0; i < ARRAY_LEN(facts) && r >= 0; i++)
		r = add_env(env, facts[i][0], facts[i][1], err);
	return r;
}

static void began(const struct engine_run *run, void *ctx)
{
	struct action *a = ctx;

	memcpy(a->firing->run, run->id, sizeof(a->firing->run));
	if (a->lock.fd >= 0)
		IGNORE_RESULT(firing_save(a->engine, &a->lock, a->firing, "watch-began", NULL),
			      "it is written again at the end");
}

static int note_run(struct action *a, const struct engine_run *run, struct err *err)
{
	struct engine_firing *f = a->firing;

	memcpy(f->run, run->id, sizeof(f->run));
	f->exit_code = run->exit_code;
	f->cpu_ms += run->cpu_ms;
	a->counted = true;
	f->duration_ms = run->duration_ms;
	if (run->exit_code == 0)
		return 0;
	action_sign(f, run);
	if (*run->limit != '\0')
		return text_set(&f->why, err, "the action met its limit of %s", run->limit);
	return text_set(&f->why, err, "the action ended with %d (snap logs %s)", run->exit_code,
			run->id);
}

int action_run_command(struct action *a, struct err *err)
{
	CLEANUP(strlist_done) struct strlist env = { 0 };
	CLEANUP(engine_run_done) struct engine_run run = { 0 };
	AUTO_CLOSE int paths = -1;
	const char *const argv[] = { "/bin/sh", "-c", a->rule->run, NULL };
	struct engine_run_options options = {
		.clone = a->firing->clone,
		.argv = argv,
		.profile = a->rule->profile,
		.ask_ms = 0,
		.in_fd = -1,
		.out_fd = -1,
		.err_fd = -1,
		.began = began,
		.began_ctx = a,
	};
	int r = trigger_env(a->firing, a->rule->nul, &env, err);

	if (r < 0)
		return r;
	if (a->firing->n_paths > 0)
		r = paths_file(a->firing, a->rule->nul, &paths, err);
	if (r < 0)
		return r;
	engine_run_limits_init(&options.limits);
	options.limits.time_ms = a->rule->budget.wall_ms;
	if (a->rule->budget.disk > 0)
		options.limits.disk = a->rule->budget.disk;
	options.env = (struct engine_list){ (const char *const *)env.list, env.n };
	options.in_fd = paths;
	r = engine_run(a->there, &options, &run, err);
	return r < 0 ? r : note_run(a, &run, err);
}
