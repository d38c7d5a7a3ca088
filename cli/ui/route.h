/*
 * route.h - which command line answers a request of the page.
 *
 * A request is a name and a JSON object of values. The table in route.c holds all there are: a
 * request that is not in it, a value that it does not name and a value that could be read as an
 * option are refused.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/attr.h"
#include "base/err.h"
#include "base/strlist.h"

/*
 * Append the words of the command line for question `name` with the JSON object body[0..len); nothing
 * at all counts as an empty object.  *ret_changes: it changes something.  -ENOENT, -EPERM (it changes something, and `read_only`) or
 * -EINVAL with a sentence.
 */
NODISCARD int route_find(const char *name, const char *body, size_t len, bool read_only,
			 struct strlist *ret, bool *ret_changes, struct err *err);
