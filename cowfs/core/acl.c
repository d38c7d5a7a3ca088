/*
 * acl.c - a version and entries of eight bytes, in a fixed order of their tags: owner, users,
 * group, groups, mask, others. The mask bounds the rights of users, group and groups, and must be
 * there if users or groups are. Ids do not have to be sorted, nor to differ.
 */
#include "cowfs/core/acl.h"

#include <errno.h>
#include <string.h>

#include "base/le.h"

#define VERSION     2
#define HEADER_SIZE 4
#define ENTRY_SIZE  8
#define NO_ID       UINT32_MAX
#define RWX         7

enum tag {
	TAG_OWNER = 0x01,
	TAG_USER = 0x02,
	TAG_OWN_GROUP = 0x04,
	TAG_GROUP = 0x08,
	TAG_MASK = 0x10,
	TAG_OTHERS = 0x20,
};

bool acl_is_name(const char *name)
{
	return strcmp(name, ACL_ACCESS) == 0 || strcmp(name, ACL_DEFAULT) == 0;
}

bool acl_is_empty(const void *acl, size_t len)
{
	return len == 0 || (len == HEADER_SIZE && le32_load(acl) == VERSION);
}

/* --- entries ---------------------------------------------------------------------------- */

static size_t count(size_t len)
{
	return (len - HEADER_SIZE) / ENTRY_SIZE;
}

static const uint8_t *entry(const void *acl, size_t i)
{
	return (const uint8_t *)acl + HEADER_SIZE + i * ENTRY_SIZE;
}

static uint16_t tag_of(const uint8_t *e)
{
	return le16_load(e);
}

static uint16_t perm_of(const uint8_t *e)
{
	return le16_load(e + 2);
}

/* What may come behind a tag, or first of all (0). */
static unsigned may_follow(unsigned tag, bool named)
{
	switch (tag) {
	case 0:
		return TAG_OWNER;
	case TAG_OWNER:
	case TAG_USER:
		return TAG_USER | TAG_OWN_GROUP;
	case TAG_OWN_GROUP:
	case TAG_GROUP:
		return TAG_GROUP | TAG_MASK | (named ? 0 : TAG_OTHERS);
	case TAG_MASK:
		return TAG_OTHERS;
	default:
		return 0;
	}
}

static bool is_one_tag(unsigned tag)
{
	return tag != 0 && (tag & (tag - 1)) == 0;
}

int acl_check(const void *acl, size_t len)
{
	unsigned last = 0, tag;
	bool named = false;

	if (len < HEADER_SIZE || (len - HEADER_SIZE) % ENTRY_SIZE != 0 || le32_load(acl) != VERSION)
		return -EINVAL;
	for (size_t i = 0; i < count(len); i++, last = tag) {
		const uint8_t *e = entry(acl, i);

		tag = tag_of(e);
		named = named || tag == TAG_USER || tag == TAG_GROUP;
		if (!is_one_tag(tag) || !(may_follow(last, named) & tag) || perm_of(e) & ~RWX)
			return -EINVAL;
		if ((tag == TAG_USER || tag == TAG_GROUP) && le32_load(e + 4) == NO_ID)
			return -EINVAL;
	}
	return last == TAG_OTHERS ? 0 : -EINVAL;
}

/* --- lists and modes -------------------------------------------------------------------- */

/* Where in a mode an entry stands, as a shift; -1: nowhere. */
static int place(unsigned tag, bool masked)
{
	switch (tag) {
	case TAG_OWNER:
		return 6;
	case TAG_OWN_GROUP:
		return masked ? -1 : 3;
	case TAG_MASK:
		return 3;
	case TAG_OTHERS:
		return 0;
	default:
		return -1;
	}
}

/* The mask is the last entry but one. */
static bool is_masked(const void *acl, size_t len)
{
	return tag_of(entry(acl, count(len) - 2)) == TAG_MASK;
}

uint32_t acl_mode(const void *acl, size_t len)
{
	const bool masked = is_masked(acl, len);
	uint32_t mode = 0;
	int at;

	for (size_t i = 0; i < count(len); i++) {
		at = place(tag_of(entry(acl, i)), masked);
		if (at >= 0)
			mode |= (uint32_t)perm_of(entry(acl, i)) << at;
	}
	return mode;
}

bool acl_is_mode(const void *acl, size_t len)
{
	return !is_masked(acl, len); /* and then there are no users and no groups */
}

void acl_chmod(void *acl, size_t len, uint32_t mode)
{
	const bool masked = is_masked(acl, len);
	uint8_t *e = (uint8_t *)acl + HEADER_SIZE;
	int at;

	for (size_t i = 0; i < count(len); i++, e += ENTRY_SIZE) {
		at = place(tag_of(e), masked);
		if (at >= 0)
			le16_store(e + 2, (uint16_t)(mode >> at & RWX));
	}
}

uint32_t acl_inherit(void *acl, size_t len, uint32_t mode)
{
	const uint32_t all = 0777;
	const uint32_t both = mode & acl_mode(acl, len);

	acl_chmod(acl, len, both);
	return (mode & ~all) | both;
}

bool acl_map_ids(void *acl, size_t len, acl_map_fn map, const void *ctx)
{
	for (size_t i = 0; i < count(len); i++) {
		uint8_t *e = (uint8_t *)acl + HEADER_SIZE + i * ENTRY_SIZE;
		uint32_t id = le32_load(e + 4);

		if (!(tag_of(e) & (TAG_USER | TAG_GROUP)))
			continue;
		if (!map(ctx, &id))
			return false;
		le32_store(e + 4, id);
	}
	return true;
}
