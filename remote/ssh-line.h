/*
 * ssh-line.h - messages (stream.h) with a `snapcow` that ssh has started on another machine.
 *
 * Any failure on the way ends the line; the next ssh_line_open() makes another.
 */
#pragma once

#include "remote/ssh.h"
#include "remote/stream.h"

struct ssh_line {
	struct ssh_place place; /* owned; where to */
	struct ssh_child child;
	struct stream stream;
	int stop_fd;  /* when it can be read, nobody waits for the greeting any more; -1: none */
	int greet_ms; /* that the greeting may take, with whatever ssh asks a person; -1: any time */
};

#define SSH_LINE_INIT                                                                      \
	{                                                                                  \
		.child = SSH_CHILD_INIT, .stream = { .in = -1, .out = -1 }, .stop_fd = -1, \
		.greet_ms = -1,                                                            \
	}

/*
 * Start `snapcow WORDS` there, unless it runs, and hear its greeting.  1 if it is new.  SNAPCOW_SSH_PROGRAM names
 * another program than snapcow.  With `stays`, SIGINT from the terminal does not end the ssh.  -EINTR, without a
 * sentence: `stop_fd`.  -ETIMEDOUT: `greet_ms` were over.
 */
NODISCARD int ssh_line_open(struct ssh_line *l, const char *words, bool stays, struct err *err);
void ssh_line_close(struct ssh_line *l); /* `place` stays */
void ssh_line_done(struct ssh_line *l);

/* Send the message that was begun. */
NODISCARD int ssh_line_send(struct ssh_line *l, struct err *err);
/*
 * The type of the next message; a failure that the far end tells, or -ECONNRESET and such, with a sentence.  Of a
 * stream that is guarded also -EINTR, without one, and -ETIMEDOUT; the line is closed then.
 */
NODISCARD int ssh_line_receive(struct ssh_line *l, struct err *err);
/* Close it, with -EPROTO and a sentence: what came is nothing that the protocol has. */
NODISCARD int ssh_line_strange(struct ssh_line *l, struct err *err);

/* Is it worth another connection? */
bool ssh_line_may_pass(int r);
