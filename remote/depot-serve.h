/*
 * depot-serve.h - a depot in a directory of this machine, for a client at the other end of two pipes.
 *
 * What `snapcow serve` does at the far end of an ssh connection.  The client may do to the directory
 * that it names what this process may; ssh has decided who that is.
 */
#pragma once

#include "base/attr.h"
#include "base/err.h"

/*
 * Answer until the input ends.  With `root`, the client's path lies below that directory, and ".." is
 * refused; NULL: anywhere.  -EPROTO with a sentence if the client says something that the protocol has not.
 */
NODISCARD int depot_serve(int in, int out, const char *root, struct err *err);
