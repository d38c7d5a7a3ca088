/*
 * ssh.h - a program on another machine, through ssh.
 *
 * It runs this machine's ssh, with the user's own keys, agent, known hosts and configuration, which
 * asks its questions on the terminal. SNAPCOW_SSH names another program, with options, in words
 * that blanks separate.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/attr.h"
#include "base/err.h"

/* "ssh://[user@]host[:port]/path" in its parts. */
struct ssh_place {
	char *host; /* owned: "user@host", as ssh takes it */
	char *port; /* owned; NULL: ssh's own choice */
	char *path; /* owned: "/srv/depot" */
};

void ssh_place_done(struct ssh_place *p);

/* -EINVAL with a sentence; also for what ssh could take for an option. */
NODISCARD int ssh_place_parse(const char *url, struct ssh_place *ret, struct err *err);

/* "ssh:[user@]host[:port]": a machine, without a path. */
NODISCARD int ssh_place_parse_host(const char *text, struct ssh_place *ret, struct err *err);
bool ssh_is_host(const char *text); /* does it begin so? */

struct ssh_child {
	pid_t pid;   /* 0: none */
	int in, out; /* what it prints, and what it reads */
	int errors;  /* a file with what it said beside; may be -1 */
};

#define SSH_CHILD_INIT                             \
	{                                          \
		.in = -1, .out = -1, .errors = -1, \
	}

/*
 * Start `command`, words for the shell at the far end.  With `stays`, SIGINT from the terminal does not end the ssh:
 * the caller has something left to say.
 */
NODISCARD int ssh_start(const struct ssh_place *p, const char *command, bool stays,
			struct ssh_child *ret, struct err *err);

/*
 * Why it ended: a sentence from its status and the last line that it printed, with -EACCES, -EHOSTUNREACH,
 * -ENOTSUP (no such program there) or -ECONNRESET.  Waits for its end, and lets go of it as ssh_end() does.
 */
NODISCARD int ssh_explain(struct ssh_child *c, const struct ssh_place *p, struct err *err);

/*
 * Close what it reads and prints, so that it ends, and wait for that; one that does not end is killed after
 * some seconds.  Also for one that was not started.
 */
void ssh_end(struct ssh_child *c);
