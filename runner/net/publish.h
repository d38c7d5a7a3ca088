/*
 * publish.h - a server in a run, reachable on the loopback of this machine.
 *
 * Two halves speak through one socket. The publisher lives outside: it listens on 127.0.0.1 and
 * ::1, and carries the bytes. The door lives inside, in the run's network namespace: for each
 * client it connects to the server there and passes that connection out. Only the number of a
 * published port goes in, so no process of the run reaches anything through it. The publisher does
 * not trust the door: it uses a descriptor only if it is a TCP connection.
 *
 * One loop, no threads. The caller waits for publish_fd() to be readable and calls publish_step(),
 * which never blocks.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"

#define PUBLISH_MAX 16 /* ports */

struct publish_port {
	uint16_t inside;
	uint16_t outside; /* 0: any that is free */
};

/* "PORT" or "PORT:HOSTPORT" in text[0..len); -EINVAL with a sentence. */
NODISCARD int publish_parse(const char *text, size_t len, struct publish_port *ret,
			    struct err *err);

struct publish;

/*
 * Listen, and set what was 0 in `ports`.  *ret_inside is the door's end of their socket, the
 * caller's to close.  -EADDRINUSE and -EACCES with a sentence that names the port.
 */
NODISCARD int publish_open(struct publish_port *ports, size_t n, struct publish **ret,
			   int *ret_inside, struct err *err);
void publish_close(struct publish *p); /* with all its connections; NULL is fine */
DEFINE_CLEANUP(struct publish *, publish_close)

int publish_fd(const struct publish *p);

/* 0, or 1 when the door is gone and no connection is left; a failure is of all of it. */
NODISCARD int publish_step(struct publish *p, struct err *err);

/*
 * The run has ended: listen no more, and deliver what its servers had still said, as long as clients
 * take it and for a second at most.
 */
void publish_drain(struct publish *p);

/* The door, until the other end of `fd` is closed; `fd` and `ready_fd` as bridge_main() has them. */
NODISCARD int publish_door(int fd, int ready_fd, struct err *err);
