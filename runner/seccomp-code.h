/*
 * seccomp-code.h - the table as a program for the kernel.
 */
#pragma once

#include <linux/filter.h>

#include "base/buf.h"
#include "base/err.h"

/* Bits. */
enum seccomp_part {
	SECCOMP_WHOLE = 0,  /* the list: what it does not know does not exist */
	SECCOMP_STRICT = 1, /* the same, with fewer calls */
	SECCOMP_SETID = 2, /* set-id bits alone, beside somebody else's list; the rest is allowed */
	SECCOMP_ROOT = 4,  /* of the list: what root of a root file system of its own may do */
	SECCOMP_ONE_ID = 8, /* with that: changes of owner and of ids are answered, and not made */
};

/*
 * Append the struct sock_filters that judge the calls of `arch`, an AUDIT_ARCH_ of x86_64 or
 * aarch64; -ENOTSUP for any other.  Calls of another architecture than that are answered
 * with death.
 */
NODISCARD int seccomp_compile(uint32_t arch, unsigned int parts, struct buf *out, struct err *err);

/* Let a listener hear of what it refuses with EPERM and EAFNOSUPPORT, or says to have worked, and answer that. */
void seccomp_tell(struct buf *code);
