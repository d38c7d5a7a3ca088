#include "cli/mcp/job-i.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/sys.h"
#include "cli/mcp/failure.h"

#define OUTPUT_SHOWN ((size_t)32 << 10) /* bytes of a run's output: what a model can read */

/* --- steps ------------------------------------------------------------------------------ */

/* When a run began and ended; "": not known, not yet. */
struct times {
	char started[40], ended[40];
};

static void copy_time(struct json from, const char *key, char to[40])
{
	const char *text = json_text_if(from, key);

	snprintf(to, 40, "%s", text ? text : "");
}

/* Only a whole id of a run of this project: the beginning of one could find somebody else's. */
static bool is_of_project(const struct mcp_options *o, const char *id, struct times *ret)
{
	CLEANUP(printed_done) struct printed p = { 0 };
	char *words[] = { (char[]){ "runs" }, NULL };
	struct json list;

	if (job_capture(o, words, &p) < 0 || json_kind(p.j, "runs") != JSON_ARRAY)
		return false;
	list = json_get_array(p.j, "runs");
	for (size_t i = 0; i < json_length(list); i++) {
		const struct json one = json_at_object(list, i);

		if (json_kind(one, "run") != JSON_TEXT ||
		    strcmp(json_get_text(one, "run"), id) != 0)
			continue;
		copy_time(one, "started", ret->started);
		copy_time(one, "ended", ret->ended);
		return true;
	}
	return false;
}

static void wait_for(const struct mcp_options *o, char *id, uint64_t seconds)
{
	CLEANUP(printed_done) struct printed p = { 0 };
	char timeout[48];
	char *words[] = { (char[]){ "wait" }, timeout, id, NULL };

	if (seconds == 0)
		return;
	snprintf(timeout, sizeof(timeout), "--timeout=%llus", (unsigned long long)seconds);
	if (job_capture(o, words, &p) < 0)
		return; /* its log says how far it is */
}

/* The end of a text, from the beginning of a line if there is one. */
static const char *tail_of(const char *text, size_t len)
{
	const char *from = text + (len > OUTPUT_SHOWN ? len - OUTPUT_SHOWN : 0);
	const char *line = from > text ? memchr(from, '\n', (size_t)(text + len - from)) : NULL;

	/* Not in the middle of a character. */
	while (!line && from > text && (*from & 0xc0) == 0x80)
		from++;
	return line ? line + 1 : from;
}

/* What it was refused, and what a person is asked about: if there is anything. */
static void set_list(struct json j, struct json from, const char *key)
{
	if (json_kind(from, key) == JSON_ARRAY && json_length(json_get_array(from, key)) > 0)
		json_set_value(j, key, from, key);
}

static int print_job(const struct printed *p, const struct times *times, FILE *out)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	const char *text =
	    json_kind(p->j, "output") == JSON_TEXT ? json_get_text(p->j, "output") : "";
	const char *tail = tail_of(text, strlen(text));
	const char *state = json_get_text(p->j, "state");
	struct json j = json_begin(&doc);

	json_set_value(j, "run", p->j, "run");
	json_set_value(j, "status", p->j, "state");
	json_set_value(j, "exit_code", p->j, "exit_code");
	json_set_value(j, "problem", p->j, "problem");
	json_set_text(j, "output", tail);
	json_set_bool(j, "cut", tail > text);
	json_set_value(j, "next", p->j, "next");
	if (*times->started != '\0') {
		json_set_text(j, "started", times->started);
		json_set_text(j, "ended", *times->ended != '\0' ? times->ended : NULL);
	}
	set_list(j, p->j, "refusals");
	set_list(j, p->j, "questions");
	if (state && strcmp(state, "running") == 0)
		json_set_text(
		    j, "hint",
		    "It goes on. Call snap_wait with this run to wait for it, or snap_cancel "
		    "to end it.");
	return json_print(&doc, out, NULL) < 0 ? 1 : 0;
}

static int print_log(const struct mcp_options *o, char *id, const char *since, FILE *out)
{
	struct times times = { 0 };
	CLEANUP(printed_done) struct printed p = { 0 };
	AUTO_FREE char *option = NULL;
	char *words[4] = { (char[]){ "logs" }, id, NULL, NULL };

	if (since && asprintf(&option, "--since=%s", since) < 0)
		return 1;
	words[2] = option;
	if (job_capture(o, words, &p) < 0)
		return failure_print(out, "E_FAILED", "the log of the run cannot be read");
	if (job_failed(&p))
		return job_pass_on(&p, out);
	IGNORE_RESULT(is_of_project(o, id, &times), "then its times are not told");
	return print_job(&p, &times, out);
}

/* --- tools ------------------------------------------------------------------------------ */

static int start_job(const struct mcp_options *o, struct tool_line *line, FILE *out)
{
	CLEANUP(printed_done) struct printed p = { 0 };
	char id[JOB_ID_MAX];

	job_begin();
	if (job_capture(o, line->argv, &p) < 0)
		return failure_print(out, "E_FAILED", "the run could not be started");
	if (job_failed(&p) || json_kind(p.j, "run") != JSON_TEXT)
		return job_pass_on(&p, out);
	snprintf(id, sizeof(id), "%s", json_get_text(p.j, "run"));
	job_say_id(out, id);
	wait_for(o, id, line->wait_s);
	return print_log(o, id, NULL, out);
}

int job_run(const struct mcp_options *o, struct tool_line *line, FILE *out)
{
	struct times unused;
	char *id = line->job;

	if (strcmp(line->argv[0], "experiment") == 0)
		return job_experiment(o, line, out);
	if (!id)
		return start_job(o, line, out);
	if (!is_of_project(o, id, &unused))
		return failure_print(
		    out, "E_NOT_FOUND",
		    "this project has no run of that id, or its record was removed");
	if (strcmp(line->argv[0], "cancel") == 0) {
		CLEANUP(printed_done) struct printed p = { 0 };
		char *words[] = { line->argv[0], id, NULL };

		if (job_capture(o, words, &p) >= 0 && job_failed(&p))
			return job_pass_on(&p, out);
	}
	wait_for(o, id, line->wait_s);
	return print_log(o, id, line->since, out);
}

/* Through a process in between, which ends at once: nobody has to wait for the other. */
void job_cancel(const struct mcp_options *o, const char *id)
{
	const pid_t pid = fork();
	char name[JOB_ID_MAX];
	char *words[] = { (char[]){ "experiment" }, (char[]){ "cancel" }, name, NULL };
	const bool is_run = *id != JOB_EXPERIMENT;
	int status;

	if (pid > 0) {
		while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
			continue;
		return;
	}
	if (pid < 0 || fork() != 0)
		_exit(0);
	signal(SIGPIPE, SIG_DFL);
	sys_close_from(STDERR_FILENO + 1);
	snprintf(name, sizeof(name), "%s", is_run ? id : id + 1);
	if (freopen("/dev/null", "r+", stdout))
		o->run_line(is_run ? 2 : 3, is_run ? words + 1 : words, stdout, o->ctx);
	_exit(0);
}
