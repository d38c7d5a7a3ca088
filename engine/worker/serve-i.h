/*
 * serve-i.h - tickets of a client at the far end of ssh.
 */
#pragma once

#include <signal.h>
#include <stdlib.h>

#include "engine/api/worker.h"
#include "engine/worker/perform.h"
#include "engine/worker/tray.h"
#include "remote/ticket-line.h"

struct serve {
	const struct engine_serve_ssh_options *options;
	struct tray tray;
	char *store, *dir; /* owned; NULL until the first ticket */
	char host[256];
	const volatile sig_atomic_t
	    *ended; /* set when this worker shall end: no result counts; NULL: never */
};

static inline void serve_done(struct serve *v)
{
	tray_done(&v->tray);
	free(v->store);
	free(v->dir);
}

/* A ticket that the client asks for. */
struct asked {
	struct serve *serve;
	struct stream *stream;
	const struct ticket_question *question;
	const char *depot; /* NULL: the ticket's own address */
	struct ticket ticket;
	char id[QUEUE_ID_SIZE];
};

/* 1: stored; 0: it has another result already. */
NODISCARD int serve_put_result(struct asked *a, const char *outcome, int code, const char *why,
			       uint64_t attempt, struct err *err);
/* With the claim of it in hand: 1 and a result if it must not begin, else 0. */
NODISCARD int serve_decline(struct asked *a, const struct tray_holder *mine, struct err *err);
/* Then do it, and store what came of it. */
void serve_do(struct asked *a, const int fds[2], uint64_t attempt);

/* Start it, unless it runs or has a result, and pass on what comes until the result is sent. */
NODISCARD int serve_follow(struct asked *a, struct err *err);
/* See to it that it has a result and that nothing of it runs. */
NODISCARD int serve_cancel(struct asked *a, struct err *err);
/* The one that it has, or none; 1 when sent. */
NODISCARD int serve_send_result(struct asked *a, struct err *err);
