/*
 * The order matters: chown drops set-id bits and capabilities, an ACL and the mode change each
 * other, and everything changes times.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/sys.h"
#include "cowfs/store/xattrs.h"
#include "snapshot/apply/apply-i.h"

#define MODE_BITS 07777

static void mtime_of(const struct tree_entry *e, struct timespec ts[2])
{
	ts[0] = (struct timespec){ .tv_nsec = UTIME_OMIT };
	ts[1] = (struct timespec){ .tv_sec = e->mtime_s, .tv_nsec = (long)e->mtime_ns };
}

int attr_set_mtime(int fd, const struct tree_entry *e, struct err *err)
{
	struct timespec ts[2];

	mtime_of(e, ts);
	return futimens(fd, ts) < 0 ? err_sys(err, "setting its time") : 0;
}

/* --- extended attributes ---------------------------------------------------------------- */

/* The file's attribute names, each with its NUL. */
static int list_names(int fd, struct buf *names, struct err *err)
{
	ssize_t n;
	void *p;

	do {
		buf_reset(names);
		n = sys_list_xattrs(fd, NULL, 0);
		if (n <= 0)
			break;
		p = buf_extend(names, (size_t)n);
		if (!p)
			return err_nomem(err);
		n = sys_list_xattrs(fd, p, (size_t)n);
		names->len = n > 0 ? (size_t)n : 0;
	} while (n == -ERANGE);
	return n < 0 ? err_wrap(err, (int)n, "listing its attributes") : 0;
}

/* Remove attributes that are not in `wanted`; 1 if there were any. */
static int drop_others(int fd, const struct buf *wanted, struct err *err)
{
	CLEANUP(buf_done) struct buf names = BUF_INIT;
	struct xattr unused;
	int r = list_names(fd, &names, err), dropped = 0;

	if (r < 0 || names.len == 0)
		return r;
	names.data[names.len - 1] = '\0';
	for (const char *name = (const char *)names.data, *end = name + names.len; name < end;
	     name += strlen(name) + 1) {
		if (xattrs_find(wanted, name, strlen(name), &unused))
			continue;
		r = sys_remove_xattr(fd, name);
		if (r < 0 && r != -ENODATA && r != -ENOTSUP)
			return err_wrap(err, r, "removing its attribute '%s'", name);
		dropped = 1;
	}
	return dropped;
}

static bool has_value(int fd, const char *name, const struct xattr *x)
{
	AUTO_FREE void *value = malloc(x->value_len + 1);

	return value && sys_get_xattr(fd, name, value, x->value_len + 1) == (ssize_t)x->value_len &&
	       memcmp(value, x->value, x->value_len) == 0;
}

/* 1 if that changed anything. */
static int set_xattrs(struct acting *a, int fd, const struct object_id *id, struct err *err)
{
	CLEANUP(buf_done) struct buf wanted = BUF_INIT;
	char name[XATTR_NAME_LEN_MAX + 1];
	struct xattr x;
	size_t pos = 0;
	int r, changed;

	r = xattrs_get(a->store, id, &wanted, err);
	if (r < 0)
		return r;
	changed = drop_others(fd, &wanted, err);
	while (changed >= 0 && xattrs_next(&wanted, &pos, &x)) {
		memcpy(name, x.name, x.name_len);
		name[x.name_len] = '\0';
		if (has_value(fd, name, &x))
			continue;
		r = sys_set_xattr(fd, name, x.value, x.value_len);
		if (r < 0)
			return err_wrap(err, r, "setting its attribute '%s'", name);
		changed = 1;
	}
	return changed;
}

/* --- all of them ------------------------------------------------------------------------ */

int attr_set_but_mtime(struct acting *a, int fd, const struct tree_entry *e, struct err *err)
{
	const mode_t mode = e->mode & MODE_BITS;
	struct stat st;
	int r;

	if (fstat(fd, &st) < 0)
		return err_sys(err, "looking at it");
	if ((st.st_uid != e->uid || st.st_gid != e->gid) &&
	    (fchown(fd, e->uid, e->gid) < 0 || fstat(fd, &st) < 0))
		return err_sys(err, "giving it to %u:%u", e->uid, e->gid);
	if ((st.st_mode & MODE_BITS) != mode && fchmod(fd, mode) < 0)
		return err_sys(err, "setting its mode");
	r = set_xattrs(a, fd, &e->xattrs, err);
	if (r <= 0)
		return r;
	if (fstat(fd, &st) < 0 || ((st.st_mode & MODE_BITS) != mode && fchmod(fd, mode) < 0))
		return err_sys(err, "setting its mode");
	return 0;
}

int attr_set(struct acting *a, int fd, const struct tree_entry *e, struct err *err)
{
	int r = attr_set_but_mtime(a, fd, e, err);

	return r < 0 ? r : attr_set_mtime(fd, e, err);
}

int attr_set_at(struct acting *a, const char *slot, const struct tree_entry *e, struct err *err)
{
	AUTO_CLOSE int node = sys_open_node(a->stage_fd, slot);
	struct timespec ts[2];
	struct stat st;
	int r;

	if (fstatat(a->stage_fd, slot, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return err_sys(err, "looking at it");
	if ((st.st_uid != e->uid || st.st_gid != e->gid) &&
	    fchownat(a->stage_fd, slot, e->uid, e->gid, AT_SYMLINK_NOFOLLOW) < 0)
		return err_sys(err, "giving it to %u:%u", e->uid, e->gid);
	/* Nobody else can enter the stage, so the name still means what we made. */
	if (!S_ISLNK(e->mode) && fchmodat(a->stage_fd, slot, e->mode & MODE_BITS, 0) < 0)
		return err_sys(err, "setting its mode");
	r = node >= 0 ? set_xattrs(a, node, &e->xattrs, err) : 0;
	if (r < 0)
		return r;
	mtime_of(e, ts);
	if (utimensat(a->stage_fd, slot, ts, AT_SYMLINK_NOFOLLOW) < 0)
		return err_sys(err, "setting its time");
	return 0;
}
