/*
 * base64.h - bytes as base64 (RFC 4648, padded), and back.
 */
#pragma once

#include <stddef.h>

#include "base/attr.h"
#include "base/buf.h"

/* Append the text of these bytes.  -ENOMEM, and nothing changed. */
NODISCARD int base64_append(struct buf *out, const void *data, size_t len);

/* Append the bytes of a text.  -EINVAL if it is not exactly one, -ENOMEM; nothing has changed then. */
NODISCARD int base64_decode(struct buf *out, const char *text, size_t len);
