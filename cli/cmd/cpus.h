/*
 * cpus.h - a number of processors as people write it: 2, 0.5.
 */
#pragma once

#include <stdint.h>

#include "base/attr.h"
#include "base/err.h"

/* Thousandths of a processor; *ret stays if `text` is NULL.  -EINVAL with a sentence about --cpus. */
NODISCARD int cpus_read(const char *text, uint64_t *ret, struct err *err);
