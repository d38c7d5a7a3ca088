#include "remote/slurm.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/path.h"
#include "base/strlist.h"
#include "base/vec.h"
#include "remote/program.h"

#define OUTPUT_MAX ((size_t)64 << 10)
#define WAIT_MS    120000 /* sbatch itself waits for a controller that restarts */
#define LOOK_MS    20000
#define TOLD_MAX   140
#define START_MS   600000 /* that fetching a state may take beyond the time of the command */

bool slurm_is_place(const char *text)
{
	return strncmp(text, "slurm", 5) == 0 && (text[5] == '\0' || text[5] == ':');
}

int slurm_partition(const char *place, const char **ret, struct err *err)
{
	static const char fine[] =
	    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-,";
	const char *name = place[5] == ':' ? place + 6 : NULL;

	if (name && (*name == '\0' || *name == '-' || strspn(name, fine) != strlen(name)))
		return err_set(err, -EINVAL, "'%.100s' is no partition: slurm or slurm:PARTITION",
			       place);
	*ret = name;
	return 0;
}

/* --- commands ----------------------------------------------------------------------------- */

/* The last line of what a program said, printable. */
static int say(struct buf *output, const char *what, int code, struct err *err)
{
	CLEANUP(buf_done) struct buf shown = BUF_INIT;
	const char *text, *line;
	size_t len;

	while (output->len > 0 && strchr("\n ", output->data[output->len - 1]))
		output->len--;
	text = buf_str(output);
	line = text ? strrchr(text, '\n') : NULL;
	line = line ? line + 1 : text ? text : "";
	len = strlen(line);
	if (path_append_shown(&shown, line, len < TOLD_MAX ? len : TOLD_MAX) < 0)
		return err_nomem(err);
	text = buf_str(&shown);
	return err_set(err, code, "%s: %s", what,
		       text && *text ? text : "it failed and says nothing");
}

static int run(const struct strlist *words, const char *input, uint64_t wait_ms, struct buf *output,
	       int failed, struct err *err)
{
	const struct program p = {
		.argv = (const char *const *)words->list,
		.input = input,
		.input_len = input ? strlen(input) : 0,
		.output_max = OUTPUT_MAX,
		.wait_ms = wait_ms,
		.quiet = true,
		.apart = true,
	};
	int r = program_run(&p, output);

	if (r == 0)
		return 0;
	if (r == -ENOENT)
		return err_set(err, -ENOTSUP,
			       "there is no '%s' here: `--on slurm` is for a machine that submits "
			       "jobs (Debian: slurm-client)",
			       words->list[0]);
	if (r < 0)
		return err_set(err, r == -ETIMEDOUT ? -EAGAIN : r, "%s: %s", words->list[0],
			       strerror(-r));
	return say(output, words->list[0], failed, err);
}

static int add(struct strlist *l, const char *fmt, ...) PRINTF_LIKE(2, 3);

static int add(struct strlist *l, const char *fmt, ...)
{
	char *text;
	va_list args;
	int n;

	va_start(args, fmt);
	n = vasprintf(&text, fmt, args);
	va_end(args);
	return n < 0 ? -ENOMEM : strlist_take(l, text);
}

static uint64_t up(uint64_t n, uint64_t unit)
{
	return n / unit + (n % unit > 0);
}

int slurm_submit(const struct slurm_job *job, struct err *err)
{
	CLEANUP(strlist_done) struct strlist words = { 0 };
	CLEANUP(buf_done) struct buf output = BUF_INIT;

	/* A node that dies has its job begun again elsewhere (--requeue); the tray counts the attempts. */
	if (add(&words, "sbatch") < 0 || add(&words, "--parsable") < 0 ||
	    add(&words, "--job-name=%s", job->name) < 0 ||
	    add(&words, "--output=%s", job->log) < 0 || add(&words, "--open-mode=append") < 0 ||
	    add(&words, "--ntasks=1") < 0 || add(&words, "--requeue") < 0 ||
	    (job->partition && add(&words, "--partition=%s", job->partition) < 0) ||
	    (job->mem > 0 && add(&words, "--mem=%" PRIu64 "K", up(job->mem, 1024)) < 0) ||
	    (job->cpus_milli > 0 &&
	     add(&words, "--cpus-per-task=%" PRIu64, up(job->cpus_milli, 1000)) < 0) ||
	    (job->time_ms > 0 &&
	     add(&words, "--time=%" PRIu64, up(job->time_ms + START_MS, 60000)) < 0))
		return err_nomem(err);
	return run(&words, job->script, WAIT_MS, &output, -EACCES, err);
}

static bool is_over(const char *state)
{
	static const char *const over[] = { "COMPLETED",     "FAILED",    "CANCELLED",   "TIMEOUT",
					    "NODE_FAIL",     "PREEMPTED", "BOOT_FAIL",   "DEADLINE",
					    "OUT_OF_MEMORY", "REVOKED",   "SPECIAL_EXIT" };

	return VEC_HAS(it, over, ARRAY_LEN(over), strcmp(state, *it) == 0);
}

/* "12|PENDING|Resources" on each line; a job that is under way counts before those that are over. */
static void read_state(const char *text, struct slurm_state *ret)
{
	*ret = (struct slurm_state){ .is_over = true };
	for (; *text; text += strcspn(text, "\n") + (text[strcspn(text, "\n")] != '\0')) {
		struct slurm_state s = { 0 };

		if (sscanf(text, "%63[0-9_]|%63[A-Z_]|%63[A-Za-z0-9_() ]", s.id, s.state, s.why) <
		    2)
			continue;
		s.is_over = is_over(s.state);
		if (ret->id[0] == '\0' || ret->is_over)
			*ret = s;
	}
}

int slurm_look(const char *name, struct slurm_state *ret, struct err *err)
{
	CLEANUP(strlist_done) struct strlist words = { 0 };
	CLEANUP(buf_done) struct buf output = BUF_INIT;
	const char *text;
	int r;

	if (add(&words, "squeue") < 0 || add(&words, "--noheader") < 0 ||
	    add(&words, "--states=all") < 0 || add(&words, "--user=%u", (unsigned)geteuid()) < 0 ||
	    add(&words, "--name=%s", name) < 0 || add(&words, "--format=%s", "%i|%T|%r") < 0)
		return err_nomem(err);
	r = run(&words, NULL, LOOK_MS, &output, -EAGAIN, err);
	if (r < 0)
		return r;
	text = buf_str(&output);
	if (!text)
		return err_nomem(err);
	read_state(text, ret);
	return 0;
}

int slurm_cancel(const char *name, struct err *err)
{
	CLEANUP(strlist_done) struct strlist words = { 0 };
	CLEANUP(buf_done) struct buf output = BUF_INIT;

	if (add(&words, "scancel") < 0 || add(&words, "--user=%u", (unsigned)geteuid()) < 0 ||
	    add(&words, "--name=%s", name) < 0)
		return err_nomem(err);
	return run(&words, NULL, LOOK_MS, &output, -EAGAIN, err);
}
