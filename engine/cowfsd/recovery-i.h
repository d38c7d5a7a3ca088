/*
 * recovery-i.h - what a new cowfsd does about what its predecessor left.
 */
#pragma once

#include <stdbool.h>

#include "base/attr.h"
#include "base/err.h"

struct host;

/* What a cowfsd that crashed left in CONTROL_ALIVE. */
struct dead {
	int pid;       /* 0: there is none */
	bool starting; /* it died while starting */
};

void dead_read(int alive_fd, struct dead *ret);

/*
 * Mount what was mounted, unless that may have killed the dead one; then end what runs and changes of
 * projects left half done.  How many clones are mounted.  `word` gets what users should hear of the
 * dead one; `log` is the path that it names.
 */
NODISCARD int recovery_run(struct host *h, const struct dead *dead, const char *log,
			   struct err *word, struct err *err);
