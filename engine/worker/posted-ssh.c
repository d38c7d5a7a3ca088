/*
 * A ticket that a machine at the far end of ssh runs. The run there does not depend on the
 * connection: a broken one is made again, with the same ticket, and continues.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/text.h"
#include "engine/find/engine-i.h"
#include "engine/worker/posted-i.h"
#include "remote/ticket-line.h"

#define PAUSE_MS     1000
#define PATIENCE_MS  UINT64_C(60000) /* with a machine that has answered before */
#define CANCEL_TRIES 3
#define STOP_MS      20000 /* that the far end has to end a run */
/* To connect, and for a person to log in: sshd itself ends that after two minutes. */
#define GREET_MS 150000

/* --- one connection ----------------------------------------------------------------------- */

/* The depot's path, if it is on that machine. */
static int find_path(struct posted *p, struct err *err)
{
	CLEANUP(ssh_place_done) struct ssh_place depot = { 0 };
	const struct ssh_place *there = &p->line.place;
	int r;

	if (strncmp(p->options->remote, "ssh://", 6) != 0)
		return text_set(&p->path, err, "%s", "");
	r = ssh_place_parse(p->options->remote, &depot, err);
	if (r < 0)
		return r;
	if (strcmp(depot.host, there->host) != 0 ||
	    strcmp(depot.port ? depot.port : "", there->port ? there->port : "") != 0)
		return text_set(&p->path, err, "%s", "");
	return text_set(&p->path, err, "%s", depot.path);
}

static int begin(struct posted *p, struct err *err)
{
	int r;

	p->line = (struct ssh_line)SSH_LINE_INIT;
	r = ssh_place_parse_host(p->options->queue, &p->line.place, err);
	return r < 0 ? r : find_path(p, err);
}

static void end(struct posted *p)
{
	ssh_line_done(&p->line);
	p->line = (struct ssh_line)SSH_LINE_INIT;
	free(TAKE_PTR(p->path));
}

static int ask(struct posted *p, enum ticket_mode mode, const struct buf *text, struct err *err)
{
	const struct ticket_question q = { .mode = mode,
					   .path = p->path,
					   .attempt = p->attempt,
					   .at = { p->next[0], p->next[1] },
					   .text = *text };

	/* Whoever cancels was asked to end already. */
	p->line.stop_fd = mode == TICKET_CANCEL ? -1 : p->options->stop_fd;
	p->line.greet_ms = mode == TICKET_CANCEL ? STOP_MS : GREET_MS;
	return ticket_line_ask(&p->line, &q, err);
}

static int pass(struct posted *p, const struct ticket_piece *piece, struct err *err)
{
	const struct queue_log log = { .attempt = piece->attempt,
				       .is_note = piece->stream == TICKET_NOTE,
				       .of_stderr = piece->stream == TICKET_ERR,
				       .at = piece->at,
				       .data = { .data = (uint8_t *)(uintptr_t)piece->data,
						 .len = piece->len } };

	return posted_pass(p, &log, err);
}

/*
 * Until the question is answered: 1 and the result in `p`, or 0 if there is none.  -EINTR when the caller is asked to
 * end; not with `ms` 0 or more, which is how long each message may take then.
 */
static int hear(struct posted *p, int ms, struct err *err)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	int r = 1;

	p->line.stream.guarded = true;
	p->line.stream.stop_fd = ms < 0 ? p->options->stop_fd : -1;
	p->line.stream.wait_ms = ms;
	while (r > 0) {
		struct pollfd fds[2] = { { .fd = p->line.stream.in, .events = POLLIN },
					 { .fd = ms < 0 ? p->options->stop_fd : -1,
					   .events = POLLIN } };
		const int n = poll(fds, 2, ms);
		struct ticket_piece piece;

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? err_sys(err, "waiting")
				     : err_set(err, -ETIMEDOUT, "'%s' does not answer",
					       p->line.place.host);
		if (fds[1].revents != 0)
			return -EINTR;
		r = ticket_line_next(&p->line, &piece, &text, err);
		p->heard += r >= 0;
		if (r > 0 && pass(p, &piece, err) < 0)
			return err->code;
	}
	if (r < 0 || text.len == 0)
		return r;
	r = posted_take_result(p, &text, err);
	return r < 0 ? r : 1;
}

/* --- until it is answered ----------------------------------------------------------------- */

static int give_up(const struct posted *p, int r, const struct err *why, struct err *err)
{
	return p->attempt == 0
		   ? err_set(err, r, "%s", why->msg)
		   : err_set(err, r,
			     "%s: the command goes on there, and what comes of it stays for 8 days",
			     why->msg);
}

static uint64_t patience(const struct posted *p)
{
	return p->heard > 0 && p->options->patience_ms < PATIENCE_MS ? PATIENCE_MS
								     : p->options->patience_ms;
}

/* As hear().  A connection that breaks is made again, for a while. */
static int converse(struct posted *p, enum ticket_mode mode, const struct buf *text,
		    struct err *err)
{
	uint64_t broke = 0, heard = p->heard;
	bool told = false;

	for (;;) {
		struct err why = { 0 };
		int r = ask(p, mode, text, &why);

		if (r == 0)
			r = hear(p, -1, &why);
		if (!ssh_line_may_pass(r))
			return r >= 0 || why.code == 0 ? r : err_set(err, r, "%s", why.msg);
		ssh_line_close(&p->line);
		if (broke == 0 || p->heard > heard)
			broke = engine_clock_ms();
		heard = p->heard;
		if (engine_clock_ms() - broke >= patience(p))
			return give_up(p, r, &why, err);
		if (!told)
			log_warn("%s, trying again", why.msg);
		told = true;
		if (posted_is_interrupted(p, PAUSE_MS))
			return -EINTR;
	}
}

/* What hear() said is `r`: 0 if it is the result of this ticket. */
static int end_with(struct posted *p, const char *id, int r, struct err *err)
{
	if (r == 0)
		return err_set(err, -EPROTO, "'%s' says nothing of what came of it",
			       p->line.place.host);
	if (r > 0 && strcmp(p->result.ticket, id) != 0)
		return err_set(err, -EPROTO, "'%s' answers with the result of another ticket",
			       p->line.place.host);
	if (r < 0)
		return r;
	p->is_over = true;
	posted_count_missing(p);
	return 0;
}

/* Over the line, or over another if that is gone. */
static int cancel(struct posted *p, const char *id, const struct buf *text, struct err *err)
{
	const bool is_open = p->line.child.pid > 0;
	struct err why = { 0 };
	int r = is_open ? ticket_line_stop(&p->line, &why) : -ECONNRESET;

	if (r == 0)
		r = hear(p, STOP_MS, &why);
	for (int tries = 0; r < 0 && tries < CANCEL_TRIES; tries++) {
		ssh_line_close(&p->line);
		if (tries > 0)
			poll(NULL, 0, PAUSE_MS);
		r = ask(p, TICKET_CANCEL, text, &why);
		if (r == 0)
			r = hear(p, STOP_MS, &why);
	}
	r = end_with(p, id, r, &why);
	if (r == 0)
		return posted_settle(p, err);
	log_warn("%s: '%s' may still run the command", why.msg, p->line.place.host);
	return err_set(err, -EINTR, "interrupted: the ticket could not be cancelled");
}

static int find(struct posted *p, const char *id, const struct buf *text, struct err *err)
{
	const int r = converse(p, TICKET_FIND, text, err);

	return r == -EINTR ? err_set(err, r, "interrupted") : r;
}

static int follow(struct posted *p, const char *id, const struct strlist *labels,
		  const struct buf *text, struct err *err)
{
	const int r = converse(p, TICKET_RUN, text, err);

	return r == -EINTR ? cancel(p, id, text, err) : end_with(p, id, r, err);
}

/* One that has a result does not run: what is missing is said, and then the result again. */
static int catch_up(struct posted *p, const char *id, const struct buf *text, struct err *err)
{
	const int r = converse(p, TICKET_RUN, text, err);

	/* Output is a courtesy; the result is here. */
	if (r >= 0 || ssh_line_may_pass(r))
		return 0;
	return r == -EINTR ? err_set(err, r, "interrupted") : r;
}

const struct posted_kind posted_by_ssh = {
	.begin = begin, .end = end, .find = find, .catch_up = catch_up, .follow = follow
};
