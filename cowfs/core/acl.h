/*
 * acl.h - POSIX access control lists, in the byte form that Linux shows.
 *
 * A file's lists are two of its extended attributes: the access list, which extends its mode, and
 * for a directory the default list, which new entries get. This module keeps lists and modes in
 * step; it checks nobody's permissions.
 *
 * Everything but acl_check() requires a list that acl_check() has accepted.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"

#define ACL_ACCESS  "system.posix_acl_access"
#define ACL_DEFAULT "system.posix_acl_default"

bool acl_is_name(const char *name); /* is it one of the two? */

/* Good as Linux has it: 0, else -EINVAL. */
NODISCARD int acl_check(const void *acl, size_t len);

/* No entries at all: to set this is to remove the list. */
bool acl_is_empty(const void *acl, size_t len);

/* Let `map` replace the ids of users and groups; false at the first that it refuses. */
typedef bool (*acl_map_fn)(const void *ctx, uint32_t *id);
bool acl_map_ids(void *acl, size_t len, acl_map_fn map, const void *ctx);

/* The permissions of it that a mode shows, 0..0777: for the group, the mask if there is one. */
uint32_t acl_mode(const void *acl, size_t len);

/* Does acl_mode() say all of it? */
bool acl_is_mode(const void *acl, size_t len);

/* What chmod(2) makes of an access list. */
void acl_chmod(void *acl, size_t len, uint32_t mode);

/*
 * Make a default list the access list of something new that was asked for with `mode`; the
 * mode that it gets.  No more is granted than both of them grant.
 */
uint32_t acl_inherit(void *acl, size_t len, uint32_t mode);
