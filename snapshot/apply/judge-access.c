/*
 * judge-access.c - who owns a file of a machine, and who may read and write it.
 */
#include <string.h>
#include <sys/stat.h>

#include "cowfs/store/xattrs.h"
#include "snapshot/apply/judge.h"

#define ACL_PREFIX "system.posix_acl_"

/* 1 if an ACL of `a` is not the same in `b`. */
static int lacks_acl(const struct buf *a, const struct buf *b)
{
	struct xattr one, other;
	size_t pos = 0;

	while (xattrs_next(a, &pos, &one)) {
		if (one.name_len < strlen(ACL_PREFIX) ||
		    memcmp(one.name, ACL_PREFIX, strlen(ACL_PREFIX)) != 0)
			continue;
		if (!xattrs_find(b, one.name, one.name_len, &other) ||
		    other.value_len != one.value_len ||
		    memcmp(other.value, one.value, one.value_len) != 0)
			return 1;
	}
	return 0;
}

static int acls_differ(struct store *s, const struct object_id *before,
		       const struct object_id *after, struct err *err)
{
	CLEANUP(buf_done) struct buf a = BUF_INIT, b = BUF_INIT;
	int r;

	if (object_id_equal(before, after))
		return 0;
	r = xattrs_get(s, before, &a, err);
	r = r < 0 ? r : xattrs_get(s, after, &b, err);
	return r < 0 ? r : lacks_acl(&a, &b) || lacks_acl(&b, &a);
}

/* Everybody may write to what is new, or more people may read or write it than before. */
static bool is_wider(const struct plan_step *step, bool had)
{
	const uint32_t mode = step->after.mode;

	if (S_ISLNK(mode))
		return false;
	return (mode & (had ? ~step->before.mode & 0066 : S_IWOTH)) != 0;
}

int judge_access(struct store *s, const struct plan_step *step, const struct guard_rule **ret,
		 struct err *err)
{
	const bool had = step->act != PLAN_CREATE;
	const struct tree_entry *a = &step->after, *b = &step->before;
	int r;

	if (a->uid != (had ? b->uid : 0) || a->gid != (had ? b->gid : 0)) {
		*ret = guard_system_rule_named(GUARD_OWNER);
		return 0;
	}
	r = acls_differ(s, &b->xattrs, &a->xattrs, err);
	if (r > 0 || (r == 0 && is_wider(step, had)))
		*ret = guard_system_rule_named(GUARD_ACCESS);
	return r < 0 ? r : 0;
}
