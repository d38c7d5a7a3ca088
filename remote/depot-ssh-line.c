/*
 * The connection of a depot at the far end of ssh, and questions that go over it.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/fdio.h"
#include "base/path.h"
#include "remote/depot-ssh-i.h"

#define PAUSE_MS         500
#define PROGRAM_VARIABLE "SNAPCOW_SSH_PROGRAM"
#define PROGRAM          "snapcow"

void ssh_hang_up(struct ssh_depot *s)
{
	ssh_end(&s->child);
	stream_done(&s->stream);
	s->stream = (struct stream){ .in = -1, .out = -1 };
}

/* The other end said something that a depot does not say. */
static int not_a_depot(struct ssh_depot *s, const void *said, size_t len, struct err *err)
{
	CLEANUP(buf_done) struct buf shown = BUF_INIT;

	IGNORE_RESULT(path_append_shown(&shown, said, len), "then it is not shown");
	ssh_hang_up(s);
	return err_set(err, -EPROTO, "'%s' does not answer as snapcow does: '%s'", s->depot.url,
		       buf_str(&shown) ? buf_str(&shown) : "");
}

/* The connection broke; why, if ssh says so. */
static int lost(struct ssh_depot *s, struct err *err)
{
	int r = ssh_explain(&s->child, &s->place, err);

	ssh_hang_up(s);
	return r;
}

int ssh_receive(struct ssh_depot *s, struct err *err)
{
	const int type = stream_receive(&s->stream);

	if (type == STREAM_FAIL)
		return stream_take_fail(&s->stream, err);
	if (type == -ENOMEM)
		return err_nomem(err);
	return type <= 0 ? lost(s, err) : type;
}

int ssh_send(struct ssh_depot *s, struct err *err)
{
	const int r = stream_send(&s->stream);

	if (r == -ENOMEM)
		return err_nomem(err);
	return r < 0 ? lost(s, err) : 0;
}

int ssh_strange(struct ssh_depot *s, struct err *err)
{
	ssh_hang_up(s);
	return err_set(err, -EPROTO, "'%s' answers something that this version cannot read",
		       s->depot.url);
}

int ssh_receive_ok(struct ssh_depot *s, struct err *err)
{
	const int type = ssh_receive(s, err);

	return type < 0 ? type : type != STREAM_OK ? ssh_strange(s, err) : 0;
}

static int greet(struct ssh_depot *s, struct err *err)
{
	char magic[STREAM_MAGIC_SIZE];
	const ssize_t n = fdio_read(s->child.in, magic, sizeof(magic));
	int r;

	if (n <= 0)
		return lost(s, err);
	if (n < STREAM_MAGIC_SIZE || memcmp(magic, STREAM_MAGIC, sizeof(magic)) != 0)
		return not_a_depot(s, magic, (size_t)n, err);
	stream_begin(&s->stream, STREAM_OPEN);
	stream_add_text(&s->stream, s->place.path);
	r = ssh_send(s, err);
	if (r == 0)
		r = ssh_receive_ok(s, err);
	if (r < 0)
		ssh_hang_up(s);
	return r;
}

int ssh_connect(struct ssh_depot *s, struct err *err)
{
	const char *program = getenv(PROGRAM_VARIABLE);
	AUTO_FREE char *command = NULL;
	int r;

	if (s->child.pid > 0)
		return 0;
	if (asprintf(&command, "%s serve", program && *program ? program : PROGRAM) < 0) {
		command = NULL;
		return err_nomem(err);
	}
	r = ssh_start(&s->place, command, &s->child, err);
	if (r < 0)
		return r;
	s->stream = (struct stream){ .in = s->child.in, .out = s->child.out };
	return greet(s, err);
}

/* Is it worth another connection? */
static bool may_pass(int r)
{
	return r == -ECONNRESET || r == -ECONNREFUSED || r == -EHOSTUNREACH;
}

static void pause_before(unsigned n)
{
	const struct timespec t = { .tv_sec = n * PAUSE_MS / 1000,
				    .tv_nsec = (long)(n * PAUSE_MS % 1000) * 1000000 };

	nanosleep(&t, NULL);
}

int ssh_ask(struct ssh_depot *s, ssh_ask_fn fn, void *ctx, struct err *err)
{
	int r = 0;

	for (unsigned n = 0; n < s->tries; n++) {
		struct err why = { 0 };

		if (n > 0)
			pause_before(n);
		r = ssh_connect(s, &why);
		if (r == 0)
			r = fn(s, ctx, &why);
		if (!may_pass(r) || n + 1 == s->tries) {
			if (r < 0 && err && why.code != 0)
				*err = why;
			break;
		}
	}
	return r;
}
