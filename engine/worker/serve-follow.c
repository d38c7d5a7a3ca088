/*
 * A ticket between the process that runs it, which belongs to no client, and the client that
 * follows it.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "base/await.h"
#include "base/fdio.h"
#include "base/path.h"
#include "base/sys.h"
#include "engine/find/engine-i.h"
#include "engine/worker/serve-i.h"

#define LOOK_MS       1000
#define READS_AT_ONCE 8
#define GRACE_MS      UINT64_C(5000)  /* after SIGTERM */
#define KILLED_MS     UINT64_C(10000) /* what a kernel under load takes to end a process */

/* --- the process that does it --------------------------------------------------------------- */

/* Nothing of the connection may stay open here, or ssh would wait for us. */
_Noreturn static void hold(struct asked *a, const int fds[2], uint64_t attempt)
{
	const int none = open("/dev/null", O_RDWR | O_CLOEXEC);
	const bool cut =
	    none >= 0 && dup2(none, 0) >= 0 && dup2(none, 1) >= 0 && dup2(none, 2) >= 0;

	setsid();
	sys_name_process("snap-ticket");
	/* There is nobody else who could try later: whoever asks posts another ticket. */
	if (cut)
		serve_do(a, fds, attempt);
	_exit(0);
}

static int start(struct asked *a, struct err *err)
{
	int fds[2] = { -1, -1 };
	struct tray_holder mine;
	pid_t pid;
	int r = tray_claim(&a->serve->tray, a->id, fds, &mine, err);

	if (r <= 0)
		return r;
	r = serve_decline(a, &mine, err);
	if (r == 0) {
		pid = fork();
		if (pid == 0)
			hold(a, fds, mine.attempt);
		r = pid < 0 ? err_sys(err, "making a process for a ticket") : 0;
	}
	cleanup_close(&fds[0]);
	cleanup_close(&fds[1]);
	return r < 0 ? r : 0;
}

/* --- what the client hears ------------------------------------------------------------------ */

struct follower {
	struct asked *asked;
	int at;           /* to wait at */
	uint64_t attempt; /* that the client hears of */
	uint64_t next[2];
};

static int watch(struct follower *f, struct err *err)
{
	for (enum tray_file file = TRAY_LOCK; file <= TRAY_ERR; file++) {
		char name[TRAY_NAME_SIZE];
		AUTO_FREE char *path =
		    path_join(f->asked->serve->tray.dir, tray_name(f->asked->id, file, name));
		int r = path ? await_file(f->at, path) : -ENOMEM;

		/* A ticket that was cancelled before it began has no output. */
		if (r < 0 && r != -ENOENT)
			return err_set(err, r, "following a ticket");
	}
	return 0;
}

static int note_attempt(struct follower *f, struct err *err)
{
	struct asked *a = f->asked;
	struct tray_holder who;
	char names[2 * sizeof(a->serve->host) + 2];
	struct ticket_piece note = { .stream = TICKET_NOTE, .data = names };
	int r = tray_holder(&a->serve->tray, a->id, &who, err);

	if (r < 0 || who.attempt == f->attempt || who.attempt == 0)
		return r;
	f->attempt = note.attempt = who.attempt;
	for (int i = 0; i < 2; i++)
		f->next[i] = a->question->attempt == who.attempt ? a->question->at[i] : 0;
	note.len = (size_t)snprintf(names, sizeof(names), "%s\n%s", a->serve->host, a->serve->host);
	return ticket_send_piece(a->stream, &note) < 0 ? -EPIPE : 0;
}

/* 1 if there is more. */
static int pass_output(struct follower *f, bool of_stderr, struct err *err)
{
	struct asked *a = f->asked;
	char name[TRAY_NAME_SIZE], data[TICKET_PIECE_MAX];
	AUTO_CLOSE int fd =
	    openat(a->serve->tray.fd, tray_name(a->id, of_stderr ? TRAY_ERR : TRAY_OUT, name),
		   O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

	if (fd < 0)
		return errno == ENOENT ? 0 : err_sys(err, "'%s/%s'", a->serve->tray.dir, name);
	for (int i = 0; i < READS_AT_ONCE; i++) {
		struct ticket_piece piece = { .attempt = f->attempt,
					      .stream = of_stderr ? TICKET_ERR : TICKET_OUT,
					      .at = f->next[of_stderr],
					      .data = data };
		const ssize_t n = pread(fd, data, sizeof(data), (off_t)piece.at);

		if (n <= 0)
			return n < 0 ? err_sys(err, "'%s/%s'", a->serve->tray.dir, name) : 0;
		piece.len = (size_t)n;
		f->next[of_stderr] += (uint64_t)n;
		if (ticket_send_piece(a->stream, &piece) < 0)
			return -EPIPE;
	}
	return 1;
}

static int pass_all(struct follower *f, struct err *err)
{
	int out, errs, r = note_attempt(f, err);

	if (r < 0 || f->attempt == 0)
		return r;
	out = pass_output(f, false, err);
	errs = out < 0 ? 0 : pass_output(f, true, err);
	return out < 0 ? out : errs < 0 ? errs : out > 0 || errs > 0;
}

/* The client said something, or is gone. */
static int hear_client(struct follower *f, struct err *err)
{
	const int type = stream_receive(f->asked->stream);

	if (type == STREAM_STOP)
		return serve_cancel(f->asked, err);
	return type <= 0 ? -EPIPE : err_set(err, -EPROTO, "the client asks before it has heard");
}

static int follow(struct follower *f, struct err *err)
{
	struct asked *a = f->asked;

	for (;;) {
		CLEANUP(buf_done) struct buf result = BUF_INIT;
		/* The result first: what was said before it is there when it is. */
		int over = tray_result(&a->serve->tray, a->id, &result, err), r = over;

		/* Also when the process that did it was killed. */
		if (r == 0)
			r = start(a, err);
		if (r < 0)
			return r;
		r = watch(f, err);
		if (r < 0)
			return r;
		r = pass_all(f, err);
		if (r < 0)
			return r;
		if (over > 0 && r == 0)
			return ticket_send_result(a->stream, &result) < 0 ? -EPIPE : 1;
		r = await_next(f->at, a->stream->in, over > 0 || r > 0 ? 0 : LOOK_MS, NULL, NULL);
		if (r == -EINTR)
			return hear_client(f, err);
		if (r < 0)
			return err_set(err, r, "following a ticket");
	}
}

int serve_follow(struct asked *a, struct err *err)
{
	struct follower f = { .asked = a, .at = await_open() };
	int r = f.at < 0 ? err_set(err, f.at, "following a ticket") : follow(&f, err);

	cleanup_close(&f.at);
	return r;
}

/* --- cancelling ----------------------------------------------------------------------------- */

static bool is_gone(const struct asked *a, uint64_t ms)
{
	const uint64_t until = engine_clock_ms() + ms;

	while (tray_is_held(&a->serve->tray, a->id)) {
		if (engine_clock_ms() >= until)
			return false;
		poll(NULL, 0, 20);
	}
	return true;
}

static int say_busy(struct err *err)
{
	return err_set(err, -EBUSY, "the process that does the ticket does not end");
}

/* The process has ended, and the disk was full before that.  If it still is, nobody begins the ticket again either. */
static int put_late(struct asked *a, struct err *err)
{
	int fds[2] = { -1, -1 };
	struct tray_holder who;
	struct err ignored = { 0 };
	int r = tray_claim(&a->serve->tray, a->id, fds, &who, err);

	if (r == 0 && tray_is_held(&a->serve->tray, a->id))
		return say_busy(err);
	if (r <= 0)
		return r;
	r = serve_put_result(a, RESULT_CANCELLED, 130, NULL, who.attempt, err);
	if (r < 0)
		IGNORE_RESULT(tray_sign_over(fds, who.attempt, &ignored),
			      "the line is there, and needs no room");
	cleanup_close(&fds[0]);
	cleanup_close(&fds[1]);
	return r;
}

/*
 * First the result, so that nobody begins it any more and nothing that still comes of it counts.  The process ends
 * even if the result cannot be stored: a full disk is no reason to go on.
 */
int serve_cancel(struct asked *a, struct err *err)
{
	struct tray_holder who;
	int r, put = tray_holder(&a->serve->tray, a->id, &who, err);

	if (put == 0)
		put = serve_put_result(a, RESULT_CANCELLED, 130, NULL, who.attempt, err);
	r = tray_signal(&a->serve->tray, a->id, SIGTERM);
	if ((r >= 0 || r == -ESRCH) && !is_gone(a, GRACE_MS))
		r = tray_signal(&a->serve->tray, a->id, SIGKILL);
	if (!is_gone(a, r >= 0 ? KILLED_MS : 0))
		return say_busy(err);
	if (put < 0)
		put = put_late(a, err);
	return put < 0 ? put : serve_send_result(a, err);
}

int serve_send_result(struct asked *a, struct err *err)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	int r = tray_result(&a->serve->tray, a->id, &text, err);

	if (r < 0)
		return r;
	return ticket_send_result(a->stream, &text) < 0 ? -EPIPE : 1;
}
