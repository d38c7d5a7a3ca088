/*
 * confine.h - confine a process to the descriptors that it has.
 *
 * For a child that parses untrusted bytes: it can read and write its open descriptors, use memory
 * and processor time up to a limit, and end. It cannot open, connect, signal, trace, map code or
 * start anything.
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
