/*
 * mover-process-i.h - moving a mount that fusermount3 made (mover.h).
 */
#pragma once

#include "base/attr.h"
#include "base/err.h"

/*
 * The directory `from`, on which something is mounted, becomes `to`, which is not there yet or is empty.
 * -ENOTSUP if this system does not let us.  Any other failure may pass: -ETIMEDOUT if it was not done after
 * so many milliseconds, and then the mover is dead.  One that was killed may have done it all the same.
 */
NODISCARD int mover_move(const char *from, const char *to, unsigned ms, struct err *err);
