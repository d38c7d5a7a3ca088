/*
 * err.h - a failure as a number for the machine and a sentence for the person.
 *
 * A struct err is plain data on the caller's stack: nothing to free, usable when
 * memory is gone, and small enough to travel down a pipe from a child in one
 * write.  Every function here accepts err == NULL and then only returns the code.
 *
 * Sentences are lower case, without full stop, subject in single quotes, what
 * failed before why.  House meanings of codes: docs/dev/style.md, "Errors".
 */
#pragma once

#include "base/attr.h"

struct err {
	int code;      /* negative errno, or 0 when nothing was recorded */
	char msg[252]; /* one line, no trailing newline or full stop */
};

/* Record `code` and the formatted sentence; return `code`. */
int err_set(struct err *err, int code, const char *fmt, ...) PRINTF_LIKE(3, 4);

/* The same with -errno, appending ": " and its description.  Call right after the syscall. */
int err_sys(struct err *err, const char *fmt, ...) PRINTF_LIKE(2, 3);

/*
 * Put "context: " before the sentence recorded for `code`, writing one from the
 * code's own description if there is none.  Returns `code`.
 */
int err_wrap(struct err *err, int code, const char *fmt, ...) PRINTF_LIKE(3, 4);

/* Out of memory, with the sentence for it; returns -ENOMEM. */
int err_nomem(struct err *err);
