/*
 * acl.h - POSIX ACLs of an archive as the extended attributes that Linux keeps them in.
 *
 * Some archives have ACLs as attributes, others as text of their own (SCHILY.acl.*), which libarchive
 * parses.  A clone keeps attributes only.
 */
#pragma once

#include <stdint.h>

#include "base/attr.h"
#include "image/libarchive.h"

#define ACL_ENTRIES_MAX 64
#define ACL_BYTES_MAX   (4 + 8 * ACL_ENTRIES_MAX)

enum acl_which { ACL_ACCESS, ACL_DEFAULT, ACL_WHICH_N };

extern const char *const acl_names[ACL_WHICH_N]; /* of the attributes */

struct acl_xattrs {
	struct {
		uint8_t bytes[ACL_BYTES_MAX];
		size_t len; /* 0: there is none */
	} list[ACL_WHICH_N];
};

/* -E2BIG with a sentence if there are too many; an ACL that is no more than the mode gives nothing. */
NODISCARD int acl_of_entry(const struct libarchive *lib, struct archive_entry *e,
			   struct acl_xattrs *ret, struct err *err);
