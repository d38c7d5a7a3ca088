/*
 * self-process-i.h - start this program under another name, for work that no thread of cowfsd can
 * do.
 */
#pragma once

#include <sys/types.h>

#include "base/attr.h"

#define SELF_FD 3 /* where `fd` is in the other process */

/* With the words of `argv`, the first of which is the name; `fd` -1: none.  The caller reaps it. */
NODISCARD int self_start(char *const argv[], int fd, pid_t *ret);
