/*
 * Running a ticket of a tray, for any client.
 */
#include <fcntl.h>
#include <unistd.h>

#include "engine/find/engine-i.h"
#include "engine/worker/serve-i.h"

#define ATTEMPTS_MAX 3
#define NOT_STORED   "it ended, and its result could not be stored: the disk was full"

/* --- results that we write ------------------------------------------------------------------ */

int serve_put_result(struct asked *a, const char *outcome, int code, const char *why,
		     uint64_t attempt, struct err *err)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	const struct result res = { .ticket = a->id,
				    .outcome = (char *)(uintptr_t)outcome,
				    .worker = a->serve->host,
				    .host = a->serve->host,
				    .problem = (char *)(uintptr_t)why,
				    .experiment = a->ticket.experiment,
				    .arm = a->ticket.arm,
				    .attempt = attempt,
				    .code = (uint64_t)code,
				    .started = engine_now(),
				    .ended = engine_now() };
	int r = result_encode(&res, &text, err);

	return r < 0 ? r : tray_put_result(&a->serve->tray, a->id, &text, err);
}

/* --- the process that does it --------------------------------------------------------------- */

static int open_output(const struct asked *a, enum tray_file file)
{
	char name[TRAY_NAME_SIZE];

	return openat(a->serve->tray.fd, tray_name(a->id, file, name),
		      O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW);
}

static uint64_t size_of(int fd)
{
	const off_t size = lseek(fd, 0, SEEK_END);

	return size > 0 ? (uint64_t)size : 0;
}

/* Slurm ends a job for reasons of its own, and says so itself; it may begin it again. */
static bool is_ended(const struct asked *a)
{
	return a->serve->ended && *a->serve->ended;
}

static int perform(struct asked *a, uint64_t attempt, struct err *err)
{
	static const char *const by_itself[] = { "default" };
	const struct engine_serve_ssh_options *o = a->serve->options;
	struct perform_rules rules = {
		.url = a->ticket.remote,
		.remote = a->depot ? a->depot : a->ticket.remote,
		.worker = a->serve->host,
		.host = a->serve->host,
		.profiles = o->profiles.n > 0 ? o->profiles : (struct engine_list){ by_itself, 1 },
		.pass_env = o->pass_env,
		.keys = o->keys,
		.any = !o->root && o->profiles.n == 0 && o->pass_env.n == 0,
	};
	const struct perform_config config = { .store = a->serve->store,
					       .dir = a->serve->dir,
					       .rules = &rules };
	AUTO_CLOSE int out = open_output(a, TRAY_OUT), errs = open_output(a, TRAY_ERR);
	CLEANUP(result_done) struct result res = { 0 };
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	int r = out < 0 || errs < 0 ? err_sys(err, "'%s'", a->serve->tray.dir)
				    : perform_check_keys(&rules.keys, err);

	if (r == 0)
		r = perform_text(&config, &a->question->text, out, errs, &res, err);
	if (r < 0)
		return r;
	if (is_ended(a))
		return 0;
	res.attempt = attempt;
	res.out = size_of(out);
	res.err = size_of(errs);
	r = result_encode(&res, &text, err);
	return r < 0 ? r : tray_put_result(&a->serve->tray, a->id, &text, err);
}

/* A command that has run does not run again because nothing can be said of it. */
static void put_failure(struct asked *a, const int fds[2], uint64_t attempt, const char *why)
{
	struct err ignored = { 0 };

	if (serve_put_result(a, RESULT_FAILED, 125, why, attempt, &ignored) < 0)
		IGNORE_RESULT(tray_sign_over(fds, attempt, &ignored),
			      "the line is there, and needs no room");
}

void serve_do(struct asked *a, const int fds[2], uint64_t attempt)
{
	CLEANUP(buf_done) struct buf result = BUF_INIT;
	struct err err = { 0 };
	int r = tray_sign(fds, attempt, &err);

	/* Whoever cancelled it before could not know us. */
	if (r == 0)
		r = tray_result(&a->serve->tray, a->id, &result, &err);
	if (r == 0)
		r = perform(a, attempt, &err);
	if (r < 0 && !is_ended(a))
		put_failure(a, fds, attempt, err.msg);
	tray_sweep(&a->serve->tray);
}

int serve_decline(struct asked *a, const struct tray_holder *mine, struct err *err)
{
	int r;

	if (mine->pid == TRAY_OVER)
		r = serve_put_result(a, RESULT_FAILED, 125, NOT_STORED, mine->attempt, err);
	else if (mine->attempt > ATTEMPTS_MAX)
		r = serve_put_result(a, RESULT_LOST, 125, "each process that did it was killed",
				     mine->attempt, err);
	else if (a->ticket.deadline > 0 && a->ticket.deadline < engine_now())
		r = serve_put_result(a, RESULT_EXPIRED, 125, "its deadline has passed",
				     mine->attempt, err);
	else
		return 0;
	return r < 0 ? r : 1;
}
