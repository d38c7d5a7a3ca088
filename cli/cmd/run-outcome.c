/*
 * The outcome of a run: the members of its JSON, and the messages that the command cannot print
 * itself.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/path.h"
#include "base/size.h"
#include "cli/cmd/run-args.h"
#include "cli/show/refusals.h"
#include "cli/show/runs.h"

void run_set_json(struct json j, const struct engine_run *r)
{
	runs_set_json(j, r);
	json_set_text_len(j, "stdout", (const char *)r->out.data, r->out.len);
	json_set_text_len(j, "stderr", (const char *)r->err.data, r->err.len);
	runs_set_changed(j, r);
}

/* For a person, who can change that, and not again at each run that follows. */
static void print_memory_hint(const struct invocation *inv, const struct engine_run *r)
{
	AUTO_FREE char *line = isatty(STDERR_FILENO) ? cmd_line(inv, "doctor", NULL) : NULL;

	if (line && !engine_runs_lacked(inv->engine, "memory", r->id))
		fprintf(stderr, "hint: %s  # 'cgroups' says how to limit all of a run\n", line);
}

static void print_missing(const struct invocation *inv, const struct engine_run *r)
{
	for (size_t i = 0; i < r->missing.n; i++) {
		const char *wall = r->missing.list[i].wall, *why = r->missing.list[i].reason;

		if (strcmp(wall, "memory") != 0) {
			log_warn("the run was without the wall '%s': %s", wall, why);
			continue;
		}
		log_warn("memory was limited for each process, not for all of the run: %s", why);
		print_memory_hint(inv, r);
	}
}

/* Where the caller's shell would find it; NULL: nowhere. */
static char *find_program(const char *name)
{
	const char *at = getenv("PATH");

	if (strchr(name, '/'))
		return *name == '/' && access(name, F_OK) == 0 ? strdup(name) : NULL;
	while (at && *at != '\0') {
		const size_t len = strcspn(at, ":");
		AUTO_FREE char *path = NULL;

		if (*at == '/' && asprintf(&path, "%.*s/%s", (int)len, at, name) >= 0 &&
		    access(path, X_OK) == 0)
			return TAKE_PTR(path);
		at += len + (at[len] == ':');
	}
	return NULL;
}

/* Folders of which a run has an empty one of its own. */
static bool is_private(const char *path)
{
	const char *home = getenv("HOME");

	return path_is_below(path, "/tmp") || path_is_below(path, "/var/tmp") ||
	       (home && *home == '/' && path_is_below(path, home)) ||
	       path_is_below(path, "/home") || path_is_below(path, "/root");
}

/* `given` as it was typed, `here`. */
static bool is_given(const struct opt_list *given, const char *here, const char *path)
{
	for (size_t i = 0; i < given->n; i++) {
		AUTO_FREE char *dir = path_clean(here, given->items[i]);

		if (dir && path_is_below(path, dir))
			return true;
	}
	return false;
}

/* A command that failed, and a word of it that is a file here and not inside. */
static void print_unseen(const struct invocation *inv, const struct engine_run *run)
{
	const struct run_args *args = inv->args;
	AUTO_FREE char *cwd = getcwd(NULL, 0);
	AUTO_FREE char *here = cwd ? path_clean(cwd, inv->dir ? inv->dir : ".") : NULL;

	for (size_t i = 0; here && run->exit_code != 0 && i < run->argv.n; i++) {
		const char *word = run->argv.list[i];
		AUTO_FREE char *path = i == 0 && run->exit_code == 127 ? find_program(word)
				       : *word == '/' && access(word, F_OK) == 0 ? strdup(word)
										 : NULL;

		if (!path || !is_private(path) || path_is_below(path, run->project) ||
		    is_given(&args->ro, here, path) || is_given(&args->rw, here, path))
			continue;
		log_warn("'%s' exists here but is not visible in the run", path);
		refusals_print_hint(inv, run,
				    &(struct hint_again){ .option = "ro", .value = path });
		return;
	}
}

static void print_artifacts(const struct engine_run *r)
{
	for (size_t i = 0; i < r->n_artifacts; i++) {
		const struct engine_run_artifact *a = &r->artifacts[i];

		if (a->problem)
			log_warn("'%s' is not saved: %s", a->path, a->problem);
		else
			fprintf(stderr, "artifact %s  %s\n", a->id, a->path);
	}
}

/* The command has had its say; what it does not know itself is added. */
void run_tell(const struct invocation *inv, const struct engine_run *r)
{
	char text[DURATION_TEXT_MAX], size[SIZE_TEXT_MAX];

	if (r->problem)
		log_error("%s", r->problem);
	if (inv->quiet)
		return;
	if (!r->problem)
		print_missing(inv, r);
	if (r->state == ENGINE_RUN_CANCELLED)
		log_warn("the run was cancelled");
	if (strcmp(r->limit, "time") == 0)
		log_warn("the run was ended after %s (--time)",
			 duration_format(r->limits.time_ms, text));
	else if (strcmp(r->limit, "memory") == 0)
		log_warn("the run had no more than %s of memory (--mem)",
			 size_format(r->limits.mem, size));
	else if (strcmp(r->limit, "disk") == 0)
		log_warn("the clone could not grow by more than %s (--disk)",
			 size_format(r->limits.disk, size));
	else if (strcmp(r->limit, "inodes") == 0)
		log_warn("no more than %" PRIu64 " files and directories could be made (--inodes)",
			 r->limits.inodes);
	else if (strcmp(r->limit, "net-out") == 0)
		log_warn("no more than %s could be sent out (--net-out)",
			 size_format(r->limits.net_out, size));
	else if (*r->limit != '\0')
		log_warn("the run met its limit of '%s' (--%s)", r->limit, r->limit);
	refusals_print(inv, r);
	print_artifacts(r);
	print_unseen(inv, r);
}

void run_tell_kept(const struct invocation *inv, FILE *out, const struct engine_run *r)
{
	static const char *const next[] = { "diff", "promote", "rm" };

	fprintf(out, "clone %s\n", r->clone);
	for (size_t i = 0; i < ARRAY_LEN(next); i++) {
		AUTO_FREE char *line = cmd_line(inv, next[i], (const char *[]){ r->clone, NULL });

		if (line)
			fprintf(out, "hint: %s\n", line);
	}
}
