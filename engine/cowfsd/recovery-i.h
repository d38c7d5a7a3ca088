/*
 * recovery-i.h - how a new cowfsd cleans up after its predecessor.
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

/* Mount what was mounted, unless that may have killed the dead one.  How many clones are mounted. */
NODISCARD int recovery_mount(struct host *h, const struct dead *dead, struct err *err);

/*
 * Then end the changes of projects that were left half done.  `mounted` is what recovery_mount() returned;
 * `word` gets what users should hear of the dead one, and `log` is the path that it names.
 */
void recovery_end(struct host *h, const struct dead *dead, int mounted, const char *log,
		  struct err *word);
