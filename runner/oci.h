/*
 * oci.h - a filter that a profile names, in the JSON of OCI and Docker, instead of our own list.
 *
 * A run has no capability, so rules that need one are left out, and rules for processes without it
 * are kept. Names that libseccomp does not know are left out too, as in runc; the default of the
 * profile then applies to them. A call of another architecture kills the process, whatever the
 * profile says.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"

/* Append the struct sock_filters.  -EINVAL with a sentence for what is no such profile. */
NODISCARD int oci_compile(const char *text, size_t len, struct buf *out, struct err *err);
