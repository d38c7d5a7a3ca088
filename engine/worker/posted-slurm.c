/*
 * A ticket that a Slurm job runs (job.c). Only the files of a tray, in a directory shared with the
 * nodes, pass between us: the result there counts, and Slurm is only asked whether a job still
 * exists that could make one.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/path.h"
#include "base/text.h"
#include "engine/find/engine-i.h"
#include "engine/worker/on-i.h"
#include "engine/worker/posted-i.h"
#include "remote/slurm.h"
#include "remote/ticket-line.h"

#define PROGRAM_VARIABLE "SNAPCOW_SLURM_PROGRAM"
#define FILES_MS         250
#define LOOK_MS          UINT64_C(5000)
#define SETTLE_MS        UINT64_C(10000) /* until a shared directory shows what a node wrote */
#define END_MS           UINT64_C(60000) /* that Slurm has to end a job: its KillWait is 30 s */
#define PAUSE_MS         1000
#define LOG_MAX          ((size_t)64 << 10)
#define READS_AT_ONCE    8
#define NAME_SIZE        (sizeof("snapcow-") + 32)

static char *job_name(const char *id, char name[NAME_SIZE])
{
	snprintf(name, NAME_SIZE, "snapcow-%.32s", id);
	return name;
}

static int begin(struct posted *p, struct err *err)
{
	AUTO_FREE char *dir = NULL, *tickets = NULL;
	int r = slurm_partition(p->options->queue, &p->partition, err);

	p->tray = (struct tray)TRAY_INIT;
	if (r == 0)
		r = on_slurm_dir(&dir, err);
	if (r == 0)
		r = text_set(&tickets, err, "%s/tickets", dir);
	return r < 0 ? r : tray_open_shared(tickets, &p->tray, err);
}

static void end(struct posted *p)
{
	tray_done(&p->tray);
}

/* --- submitting --------------------------------------------------------------------------- */

/* For sh, between quotes. */
static int append_quoted(struct buf *out, const char *text)
{
	int r = buf_append_str(out, "'");

	for (; r == 0 && *text; text++)
		r = *text == '\'' ? buf_append_str(out, "'\\''") : buf_append(out, text, 1);
	return r < 0 ? r : buf_append_str(out, "'");
}

static int make_script(const struct posted *p, const char *id, struct buf *out, struct err *err)
{
	const char *program = getenv(PROGRAM_VARIABLE);
	char name[TRAY_NAME_SIZE];
	AUTO_FREE char *file = path_join(p->tray.dir, tray_name(id, TRAY_TICKET, name));
	int r = file ? buf_printf(out, "#!/bin/sh\nexec %s worker --ticket ",
				  program && *program ? program : "snapcow")
		     : -ENOMEM;

	if (r == 0)
		r = append_quoted(out, file);
	if (r == 0)
		r = buf_append_str(out, "\n");
	return r < 0 ? err_nomem(err) : 0;
}

static int submit(struct posted *p, const char *id, const struct buf *text, struct err *err)
{
	CLEANUP(buf_done) struct buf script = BUF_INIT;
	CLEANUP(ticket_done) struct ticket t = { 0 };
	char name[NAME_SIZE], file[TRAY_NAME_SIZE];
	AUTO_FREE char *log = path_join(p->tray.dir, tray_name(id, TRAY_LOG, file));
	struct slurm_job job = { .name = job_name(id, name),
				 .partition = p->partition,
				 .log = log };
	int r = ticket_decode(text, &t, err);

	if (!log)
		return err_nomem(err);
	if (r == 0)
		r = make_script(p, id, &script, err);
	if (r == 0)
		r = tray_put(&p->tray, id, TRAY_TICKET, text->data, text->len, err);
	if (r < 0)
		return r;
	job.script = buf_str(&script);
	if (!job.script)
		return err_nomem(err);
	job.mem = t.limits.mem;
	job.cpus_milli = t.limits.cpus_milli;
	job.time_ms = t.limits.time_ms;
	return slurm_submit(&job, err);
}

/* Unless it has a result, or a job that is under way. */
static int post(struct posted *p, const char *id, const struct buf *text, struct err *err)
{
	const uint64_t began = engine_clock_ms();
	CLEANUP(buf_done) struct buf result = BUF_INIT;
	struct slurm_state job;
	char name[NAME_SIZE];
	int r = tray_result(&p->tray, id, &result, err);

	if (r != 0)
		return r < 0 ? r : 0;
	for (;;) {
		r = slurm_look(job_name(id, name), &job, err);
		if (r != -EAGAIN || engine_clock_ms() - began >= p->options->patience_ms)
			break;
		if (posted_is_interrupted(p, PAUSE_MS))
			return -EINTR;
	}
	return r < 0 || !job.is_over ? r : submit(p, id, text, err);
}

/* --- following ---------------------------------------------------------------------------- */

/* Who has it, when an attempt begins. */
static int note_attempt(struct posted *p, const char *id, uint64_t attempt, struct err *err)
{
	CLEANUP(buf_done) struct buf host = BUF_INIT, both = BUF_INIT;
	struct queue_log log = { .attempt = attempt, .is_note = true };
	const char *name;
	int r = tray_get(&p->tray, id, TRAY_HOST, 256, &host, err);

	if (r <= 0)
		return r;
	name = buf_str(&host);
	if (!name || buf_printf(&both, "%s\n%s", name, name) < 0)
		return err_nomem(err);
	log.data = both;
	return posted_pass(p, &log, err);
}

/* 1 if there is more. */
static int pass_output(struct posted *p, const char *id, bool of_stderr, struct err *err)
{
	char name[TRAY_NAME_SIZE], data[TICKET_PIECE_MAX];
	AUTO_CLOSE int fd = openat(p->tray.fd, tray_name(id, of_stderr ? TRAY_ERR : TRAY_OUT, name),
				   O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

	if (fd < 0)
		return errno == ENOENT ? 0 : err_sys(err, "'%s/%s'", p->tray.dir, name);
	for (int i = 0; i < READS_AT_ONCE; i++) {
		struct queue_log log = { .attempt = p->attempt,
					 .of_stderr = of_stderr,
					 .at = p->next[of_stderr] };
		const ssize_t n = pread(fd, data, sizeof(data), (off_t)log.at);
		int r;

		if (n <= 0)
			return n < 0 ? err_sys(err, "'%s/%s'", p->tray.dir, name) : 0;
		log.data = (struct buf){ .data = (uint8_t *)data, .len = (size_t)n };
		r = posted_pass(p, &log, err);
		if (r < 0)
			return r;
	}
	return 1;
}

static int pass_all(struct posted *p, const char *id, struct err *err)
{
	struct tray_holder who;
	int out, errs, r = tray_holder(&p->tray, id, &who, err);

	if (r == 0 && who.attempt > p->attempt)
		r = note_attempt(p, id, who.attempt, err);
	if (r < 0 || p->attempt == 0)
		return r;
	out = pass_output(p, id, false, err);
	errs = out < 0 ? 0 : pass_output(p, id, true, err);
	return out < 0 ? out : errs < 0 ? errs : out > 0 || errs > 0;
}

/* The last line that the job itself said: "snapcow: not found". */
static void read_log(const struct posted *p, const char *id, struct buf *out)
{
	CLEANUP(buf_done) struct buf log = BUF_INIT;
	struct err ignored = { 0 };
	const char *text, *line;

	if (tray_get(&p->tray, id, TRAY_LOG, LOG_MAX, &log, &ignored) <= 0)
		return;
	while (log.len > 0 && log.data[log.len - 1] == '\n')
		log.len--;
	text = buf_str(&log);
	line = text ? strrchr(text, '\n') : NULL;
	line = line ? line + 1 : text;
	if (line && *line)
		IGNORE_RESULT(path_append_shown(out, line, strnlen(line, 120)),
			      "the sentence does without it");
}

static int put_result(struct posted *p, const char *id, const char *outcome, int code,
		      const char *problem, struct err *err)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	const struct result res = { .ticket = (char *)(uintptr_t)id,
				    .outcome = (char *)(uintptr_t)outcome,
				    .problem = (char *)(uintptr_t)problem,
				    .attempt = p->attempt,
				    .code = (uint64_t)code,
				    .out = p->next[0],
				    .err = p->next[1],
				    .started = engine_now(),
				    .ended = engine_now() };
	int r = result_encode(&res, &text, err);

	return r < 0 ? r : tray_put_result(&p->tray, id, &text, err);
}

static int give_up(struct posted *p, const char *id, const struct slurm_state *job, struct err *err)
{
	CLEANUP(buf_done) struct buf log = BUF_INIT;
	AUTO_FREE char *problem = NULL;
	const char *said;
	int r;

	read_log(p, id, &log);
	said = log.len > 0 ? buf_str(&log) : NULL;
	r = job->id[0] == '\0'
		? text_set(&problem, err, "slurm knows no job of the ticket any more")
		: text_set(&problem, err, "job %s of slurm ended without a result (%s)%s%s",
			   job->id, job->state, said ? ": " : "", said ? said : "");
	if (r == 0)
		r = put_result(p, id, p->attempt > 0 ? RESULT_LOST : RESULT_FAILED, 125, problem,
			       err);
	return r < 0 ? r : 0;
}

/* Is there still a job?  If there was none for a while, the ticket gets a result that says so. */
static int look_at_job(struct posted *p, const char *id, struct err *err)
{
	struct slurm_state job;
	char name[NAME_SIZE];
	struct err why = { 0 };
	const uint64_t now = engine_clock_ms();
	int r = slurm_look(job_name(id, name), &job, &why);

	if (r < 0) {
		if (!p->told)
			log_warn("%s, continuing", why.msg);
		p->told = true;
		return 0;
	}
	p->told = false;
	if (!job.is_over) {
		p->over_ms = 0;
		return 0;
	}
	if (p->over_ms == 0)
		p->over_ms = now;
	return now - p->over_ms < SETTLE_MS ? 0 : give_up(p, id, &job, err);
}

static int step(struct posted *p, const char *id, struct err *err)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	/* The result first: what was said before it is there when it is. */
	int over = tray_result(&p->tray, id, &text, err);
	int more = over < 0 ? over : pass_all(p, id, err), r;

	if (more < 0)
		return more;
	if (over > 0 && more == 0) {
		r = posted_take_result(p, &text, err);
		p->is_over = r == 0;
		if (r == 0)
			posted_count_missing(p);
		return r;
	}
	if (posted_is_interrupted(p, over > 0 || more > 0 ? 0 : FILES_MS))
		return -EINTR;
	if (over > 0 || engine_clock_ms() - p->looked_ms < LOOK_MS)
		return 0;
	r = look_at_job(p, id, err);
	p->looked_ms = engine_clock_ms();
	return r;
}

/* --- cancelling --------------------------------------------------------------------------- */

/* A job that waited is gone at once; one that runs, when Slurm has ended its processes. */
static int end_job(const char *id, struct err *err)
{
	const uint64_t until = engine_clock_ms() + END_MS;
	struct slurm_state job = { 0 };
	char name[NAME_SIZE];
	int r = slurm_cancel(job_name(id, name), err);

	while (r == 0 && !job.is_over) {
		r = slurm_look(name, &job, err);
		if (r == 0 && !job.is_over && engine_clock_ms() > until)
			r = err_set(err, -EBUSY, "job %s of slurm does not end", job.id);
		if (r == 0 && !job.is_over)
			poll(NULL, 0, FILES_MS);
	}
	return r;
}

/* First the result, so that no job begins it any more and nothing that still comes of it counts. */
static int cancel(struct posted *p, const char *id, struct err *err)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	struct err why = { 0 };
	char name[NAME_SIZE];
	int put = put_result(p, id, RESULT_CANCELLED, 130, NULL, &why), r;

	if (put == 0) {
		r = tray_result(&p->tray, id, &text, &why);
		if (r > 0)
			r = posted_take_result(p, &text, &why);
		if (r == 0)
			return posted_settle(p, err);
	}
	r = end_job(id, &why);
	p->cancelled = put > 0;
	if (r < 0)
		log_warn("%s: the command may still run (scancel --name=%s)", why.msg,
			 job_name(id, name));
	return err_set(err, -EINTR,
		       put > 0 ? "interrupted: the ticket is cancelled"
			       : "interrupted: the ticket could not be cancelled");
}

/* --- the kind ----------------------------------------------------------------------------- */

static int find(struct posted *p, const char *id, const struct buf *ticket, struct err *err)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	int r = tray_result(&p->tray, id, &text, err);

	if (r <= 0)
		return r;
	r = posted_take_result(p, &text, err);
	return r < 0 ? r : 1;
}

static int catch_up(struct posted *p, const char *id, const struct buf *text, struct err *err)
{
	int r;

	while ((r = pass_all(p, id, err)) > 0)
		;
	return r;
}

static int follow(struct posted *p, const char *id, const struct strlist *labels,
		  const struct buf *text, struct err *err)
{
	int r = post(p, id, text, err);

	p->looked_ms = engine_clock_ms();
	while (r == 0 && !p->is_over)
		r = step(p, id, err);
	return r == -EINTR ? cancel(p, id, err) : r;
}

const struct posted_kind posted_by_slurm = {
	.begin = begin, .end = end, .find = find, .catch_up = catch_up, .follow = follow
};
