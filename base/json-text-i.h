/*
 * json-text-i.h - private to base: text of JSON, read alike by every release of json-c.
 */
#pragma once

#include <stddef.h>

#include "base/err.h"

struct json_object;

/* Read the one value that `text` is; NULL is JSON's null.  -EINVAL says at which byte it is none. */
NODISCARD int json_text_parse(const char *text, size_t len, struct json_object **ret,
			      struct err *err);
