/*
 * walker-process-i.h - starting and ending the process that reads a warm clone (walker.h).
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/attr.h"

/*
 * Read the tree below the descriptor `tree`: its names, or, if `ahead`, what is in small files.
 * The store's path is shown in the list of processes.
 */
NODISCARD int walker_start(const char *store, int tree, bool ahead, pid_t *ret);

/* Its number stays its own until walker_reap(). */
void walker_kill(pid_t walker);
void walker_await(pid_t walker);

/* After walker_await().  True if it read everything. */
bool walker_reap(pid_t walker);
