/*
 * interrupt.h - signals as a descriptor, so that they are noticed whatever the program is doing.
 */
#pragma once

#include <stddef.h>

#include "base/err.h"

/* From now on these are bytes in a pipe, their numbers.  Gives the end to be read, which stays open. */
NODISCARD int interrupt_catch(const int *signals, size_t n, struct err *err);
