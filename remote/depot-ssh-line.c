/*
 * The connection of a depot at the far end of ssh, and questions over it.
 */
#include <time.h>

#include "remote/depot-ssh-i.h"

#define PAUSE_MS 500

void ssh_hang_up(struct ssh_depot *s)
{
	ssh_line_close(&s->line);
}

int ssh_receive(struct ssh_depot *s, struct err *err)
{
	return ssh_line_receive(&s->line, err);
}

int ssh_send(struct ssh_depot *s, struct err *err)
{
	return ssh_line_send(&s->line, err);
}

int ssh_strange(struct ssh_depot *s, struct err *err)
{
	return ssh_line_strange(&s->line, err);
}

int ssh_receive_ok(struct ssh_depot *s, struct err *err)
{
	const int type = ssh_receive(s, err);

	return type < 0 ? type : type != STREAM_OK ? ssh_strange(s, err) : 0;
}

int ssh_connect(struct ssh_depot *s, struct err *err)
{
	int r = ssh_line_open(&s->line, "serve", false, err);

	if (r <= 0)
		return r;
	stream_begin(&s->line.stream, STREAM_OPEN);
	stream_add_text(&s->line.stream, s->line.place.path);
	r = ssh_send(s, err);
	if (r == 0)
		r = ssh_receive_ok(s, err);
	if (r < 0)
		ssh_hang_up(s);
	return r;
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
		if (!ssh_line_may_pass(r) || n + 1 == s->tries) {
			if (r < 0 && err && why.code != 0)
				*err = why;
			break;
		}
	}
	return r;
}
