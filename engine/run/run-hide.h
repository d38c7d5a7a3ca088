/*
 * run-hide.h - what a run that nobody trusts must not see of its clone: the files that look like secrets.
 */
#pragma once

#include "engine/find/engine-i.h"
#include "engine/wire/control-i.h"
#include "engine/wire/wire-i.h"
#include "runner/layout.h"

/* All borrowed. */
struct run_hiding {
	struct engine *engine;
	const struct stage *stage;
	const char *shown; /* the path of the clone that the run's layout mounts */
	int clone_fd;      /* the clone */
	const char *like;  /* another clone; what was hidden in that is hidden, too; NULL: none */
};

/*
 * Add a mask for each of them to the layout, which has none yet, wherever that shows the clone.  They are right as long as no
 * directory of the clone is moved, for which `names` is open: until all is mounted, which must be before
 * *ret_by_ms of the monotonic clock.
 */
NODISCARD int run_hide_paths(const struct run_hiding *h, struct layout *l, struct control *names,
			     uint64_t *ret_by_ms, struct err *err);

/* The inode number of each, rising, in *ret, which is owned.  For a mount on which cowfsd refuses these. */
NODISCARD int run_hide_numbers(const struct run_hiding *h, uint64_t **ret, size_t *ret_n,
			       struct err *err);
