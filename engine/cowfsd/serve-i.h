/*
 * serve-i.h - cowfsd's end of the control socket: connections, and the work in progress.
 *
 * Each connection has a thread that answers its requests one after the other, so long work delays
 * nobody else. If the client leaves, the work stops and leaves nothing, unless it has already begun
 * to change what others see; then it runs to its end.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "engine/host/host-i.h"

struct connection;

enum serve_state {
	SERVE_OPEN,
	SERVE_CLOSING, /* clones are being unmounted; requests wait for the outcome */
	SERVE_ENDED,   /* nothing begins any more */
};

struct server {
	struct host *host;
	int run_fd;  /* of CONTROL_DIR; borrowed */
	int wake_fd; /* a byte in it wakes the main thread; borrowed */
	int fd;      /* the socket that listens */
	bool given;  /* it belongs to a service manager, which keeps it when we end */
	int64_t began;

	pthread_mutex_t lock;   /* guards what follows; no other is taken while it is held */
	pthread_cond_t changed; /* state, acts or connections */
	enum serve_state state;
	struct connection *connections;
	size_t n_connections;
	size_t n_acts;      /* questions being answered */
	uint64_t last_used; /* engine_clock_ms() */
	char notice[256];   /* a warning for the next request; "": none */
};

/* Take `listen_fd`, or if that is -1 make the socket, in place of one that a dead daemon left. */
NODISCARD int server_init(struct server *s, struct host *h, int run_fd, int wake_fd, int listen_fd,
			  struct err *err);
void server_done(struct server *s);

/* Warn the next caller, once. */
void server_set_notice(struct server *s, const char *text);

/* Somebody connects. */
void server_accept(struct server *s);

/* Milliseconds since somebody was connected or a clone was mounted; 0: right now. */
uint64_t server_idle_ms(struct server *s);

/* Is somebody waiting for an answer? */
bool server_is_busy(struct server *s);

/*
 * Unmount everything, refuse new questions and wake the main thread.  On failure, for instance if
 * a clone is in use and `force` is not set, everything is as before.
 */
NODISCARD int server_end(struct server *s, bool force, struct err *err);

/* The same, but only if there is nothing to do. */
bool server_end_idle(struct server *s);

bool server_has_ended(struct server *s);

/* Wait until the last question is answered; false if some are not after that time. */
bool server_drain(struct server *s, unsigned ms);
