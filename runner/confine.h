/*
 * confine.h - confine a process to the descriptors that it has.
 *
 * For a child that parses bytes nobody trusts: it can read and write what is open, use memory and processor
 * time up to a limit, and end.  It can open, connect, signal, trace, map code and start nothing.
 */
#pragma once

#include <stdint.h>

#include "base/err.h"

/*
 * From now on, for good.  `seconds` of processor time: then SIGXCPU ends it.  Whatever libraries it needs must be loaded.  -ENOTSUP with a sentence where
 * that cannot be had: then nothing is to be parsed.
 */
NODISCARD int confine_parser(uint64_t seconds, struct err *err);

/* Close all descriptors but those; `keep` is sorted. */
void confine_close_others(const int *keep, unsigned n);
