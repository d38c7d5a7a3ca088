/*
 * signals.h - catch signals that ask a long act to end: each makes a descriptor readable.
 *
 * A signal that was ignored when the process began, as after nohup, stays ignored. One struct at a
 * time.
 */
#pragma once

#include <signal.h>

#include "base/attr.h"
#include "base/err.h"

/* SIGINT, SIGTERM, SIGHUP, and one that the caller may name. */
#define SIGNALS_MAX 4

struct signals {
	int pipe[2]; /* the first can be read when one came */
	int also;    /* 0: none */
	struct sigaction was[SIGNALS_MAX];
};

#define SIGNALS_INIT ((struct signals){ .pipe = { -1, -1 } })

/* `also` 0: none beside the three. */
NODISCARD int signals_begin(struct signals *s, int also, struct err *err);

/* From here on a signal ends the process.  Gives the first that came before and was not read; 0: none. */
int signals_end(struct signals *s);
