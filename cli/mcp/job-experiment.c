/*
 * A job of its own kind: an experiment has a name, not the id of a run, and its answers are those of
 * the command line.
 */
#include "cli/mcp/job-i.h"

#include <string.h>

#include "base/cleanup.h"
#include "cli/mcp/failure.h"

/* Only of this project: names are those of the whole store. */
static bool is_of_project(const struct mcp_options *o, const char *name)
{
	CLEANUP(printed_done) struct printed p = { 0 };
	char *words[] = { (char[]){ "experiment" }, (char[]){ "list" }, NULL };
	struct json list;

	if (job_capture(o, words, &p) < 0 || json_kind(p.j, "experiments") != JSON_ARRAY)
		return false;
	list = json_get_array(p.j, "experiments");
	for (size_t i = 0; i < json_length(list); i++) {
		const char *one = json_text_if(json_at_object(list, i), "experiment");

		if (one && strcmp(one, name) == 0)
			return true;
	}
	return false;
}

/* With a time: wait that long; else only look. */
static int tell(const struct mcp_options *o, char *name, uint64_t seconds, FILE *out)
{
	CLEANUP(printed_done) struct printed p = { 0 };
	char timeout[48];
	char *words[] = { (char[]){ "experiment" },
			  seconds > 0 ? (char[]){ "wait" } : (char[]){ "show" }, name,
			  seconds > 0 ? timeout : NULL, NULL };

	snprintf(timeout, sizeof(timeout), "--timeout=%llus", (unsigned long long)seconds);
	if (job_capture(o, words, &p) < 0)
		return failure_print(out, "E_FAILED", "the experiment cannot be read");
	job_pass_on(&p, out);
	return job_failed(&p) ? p.status : 0;
}

static int start(const struct mcp_options *o, struct tool_line *line, FILE *out)
{
	CLEANUP(printed_done) struct printed p = { 0 };
	char id[JOB_ID_MAX];

	job_begin();
	if (job_capture(o, line->argv, &p) < 0)
		return failure_print(out, "E_FAILED", "the experiment could not be started");
	if (job_failed(&p) || json_kind(p.j, "experiment") != JSON_TEXT)
		return job_pass_on(&p, out);
	snprintf(id, sizeof(id), "%c%s", JOB_EXPERIMENT, json_get_text(p.j, "experiment"));
	job_say_id(out, id);
	return tell(o, id + 1, line->wait_s, out);
}

int job_experiment(const struct mcp_options *o, struct tool_line *line, FILE *out)
{
	const char *act = line->argv[1];

	if (!line->job && strcmp(act, "--detach") == 0)
		return start(o, line, out);
	if (!line->job)
		return o->run_line(line->argc, line->argv, out, o->ctx);
	if (!is_of_project(o, line->job))
		return failure_print(out, "E_NOT_FOUND",
				     "this project has no experiment of that name");
	if (strcmp(act, "cancel") == 0) {
		CLEANUP(printed_done) struct printed p = { 0 };
		char *words[] = { line->argv[0], line->argv[1], line->job, NULL };

		if (job_capture(o, words, &p) < 0)
			return failure_print(out, "E_FAILED", "the experiment cannot be read");
		return job_pass_on(&p, out);
	}
	return tell(o, line->job, line->wait_s, out);
}
