#include "cowfs/fuse/platform.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/fdio.h"
#include "base/path.h"
#include "base/sys.h"
#include "cowfs/core/layer.h"
#include "cowfs/fuse/fusermount.h"

#define DEVICE  "/dev/fuse"
#define SUBTYPE "snapcow"
#define FS_TYPE "fuse." SUBTYPE

#ifndef STATX_MNT_ID_UNIQUE /* Linux 6.8 */
#define STATX_MNT_ID_UNIQUE 0x4000u
#endif
#ifndef PR_SET_IO_FLUSHER /* Linux 5.6 */
#define PR_SET_IO_FLUSHER 57
#endif

struct flag {
	unsigned theirs, ours;
};

static bool translate(unsigned theirs, const struct flag *known, size_t n, unsigned *ret_ours)
{
	*ret_ours = 0;
	for (size_t i = 0; i < n; i++) {
		if (theirs & known[i].theirs)
			*ret_ours |= known[i].ours;
		theirs &= ~known[i].theirs;
	}
	return theirs == 0;
}

bool platform_rename_flags(unsigned theirs, unsigned *ret_ours)
{
	static const struct flag known[] = {
		{ RENAME_NOREPLACE, LAYER_RENAME_NOREPLACE },
		{ RENAME_EXCHANGE, LAYER_RENAME_EXCHANGE },
		{ RENAME_WHITEOUT, LAYER_RENAME_WHITEOUT },
	};

	return translate(theirs, known, ARRAY_LEN(known), ret_ours);
}

bool platform_allocate_flags(int theirs, unsigned *ret_ours)
{
	static const struct flag known[] = {
		{ FALLOC_FL_KEEP_SIZE, LAYER_ALLOC_KEEP_SIZE },
		{ FALLOC_FL_PUNCH_HOLE, LAYER_ALLOC_PUNCH },
		{ FALLOC_FL_ZERO_RANGE, LAYER_ALLOC_ZERO },
	};

	return translate((unsigned)theirs, known, ARRAY_LEN(known), ret_ours);
}

void platform_serve_thread(void)
{
	/* Root may; without it, a machine short of memory could wait for us while we wait for it. */
	prctl(PR_SET_IO_FLUSHER, 1, 0, 0, 0);
}

/* --- which mount ------------------------------------------------------------------------ */

/*
 * AT_STATX_DONT_SYNC: no request goes to the mount's server, which may be this process or dead.
 * Before Linux 6.8 the kernel uses mount ids again, so one counts only together with the device's
 * number.
 */
static int identify_at(int fd, const char *path, struct platform_id *ret)
{
	const int flags =
	    AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | AT_STATX_DONT_SYNC | AT_EMPTY_PATH;
	struct statx st;

	if (statx(fd, path, flags, STATX_MNT_ID | STATX_MNT_ID_UNIQUE, &st) < 0)
		return -errno;
	ret->mount = st.stx_mnt_id;
	ret->dev = makedev(st.stx_dev_major, st.stx_dev_minor);
	return 0;
}

static int identify(const char *path, struct platform_id *ret)
{
	return identify_at(AT_FDCWD, path, ret);
}

/* --- mounting --------------------------------------------------------------------------- */

static int no_device(struct err *err)
{
	return err_set(err, -ENOTSUP,
		       "there is no " DEVICE
		       ": load the module with 'modprobe fuse', or give the container the device "
		       "with '--device " DEVICE "'");
}

/*
 * A tree may hold set-id programs and devices from a medium on which they meant nothing.  That
 * something was read is never noted, and the mount says so.
 */
#define MOUNT_FLAGS (MS_NOSUID | MS_NODEV | MS_NOATIME)

/* The connection, or -EPERM: somebody with more rights must do it. */
static int open_device(struct err *err)
{
	const int fd = open(DEVICE, O_RDWR | O_CLOEXEC | O_NONBLOCK);

	if (fd >= 0)
		return fd;
	if (errno == ENOENT || errno == ENODEV || errno == ENXIO)
		return no_device(err);
	if (errno == EACCES || errno == EPERM)
		return -EPERM;
	return err_sys(err, "opening " DEVICE);
}

static int mount_here(const struct mount_options *o, int *ret_fd, struct err *err)
{
	AUTO_CLOSE int fd = open_device(err);
	char text[160];

	if (fd < 0)
		return fd;
	snprintf(text, sizeof(text), "fd=%d,rootmode=%o,user_id=%u,group_id=%u%s%s", fd, S_IFDIR,
		 geteuid(), getegid(), o->unchecked ? "" : ",default_permissions",
		 o->others ? ",allow_other" : "");
	if (mount(o->source, o->path, FS_TYPE, MOUNT_FLAGS, text) < 0) {
		if (errno == EPERM)
			return -EPERM;
		if (errno == ENODEV)
			return no_device(err);
		return err_sys(err, "mounting at '%s'", o->path);
	}
	*ret_fd = TAKE_FD(fd);
	return 0;
}

static int append_escaped(struct buf *b, const char *s)
{
	int r = 0;

	for (; *s != '\0' && r == 0; s++) {
		if (*s == ',' || *s == '\\')
			r = buf_append(b, "\\", 1);
		if (r == 0)
			r = buf_append(b, s, 1);
	}
	return r;
}

static int mount_by_helper(const struct mount_options *o, int *ret_fd, struct err *err)
{
	CLEANUP(buf_done) struct buf options = BUF_INIT;
	const char *text;
	int r;

	if (buf_append_str(&options, "noatime,subtype=" SUBTYPE ",fsname=") < 0 ||
	    append_escaped(&options, o->source) < 0 ||
	    (!o->unchecked && buf_append_str(&options, ",default_permissions") < 0) ||
	    (o->others && buf_append_str(&options, ",allow_other") < 0) ||
	    (text = buf_str(&options)) == NULL)
		return err_nomem(err);
	r = fusermount_mount(o->path, text, ret_fd, err);
	if (r < 0)
		return r;
	if (fcntl(*ret_fd, F_SETFL, O_NONBLOCK) == 0)
		return 0;
	r = err_sys(err, "setting up the connection");
	close(*ret_fd);
	return r;
}

int platform_mount(const struct mount_options *options, int *ret_fd, struct platform_id *ret_id,
		   struct err *err)
{
	int r, fd = -1;

	r = mount_here(options, &fd, err);
	if (r == -EPERM)
		r = mount_by_helper(options, &fd, err);
	if (r < 0)
		return r;
	r = identify(options->path, ret_id);
	if (r < 0) {
		close(fd);
		umount2(options->path, MNT_DETACH);
		return err_wrap(err, r, "looking at '%s'", options->path);
	}
	*ret_fd = fd;
	return 0;
}

/* --- nowhere ---------------------------------------------------------------------------- */

static bool set_string(int context, const char *key, const char *value)
{
	return fsconfig(context, FSCONFIG_SET_STRING, key, value, 0) == 0;
}

static bool set_number(int context, const char *key, unsigned value)
{
	char text[16];

	snprintf(text, sizeof(text), "%u", value);
	return set_string(context, key, text);
}

static bool set_flag(int context, const char *key, bool wanted)
{
	return !wanted || fsconfig(context, FSCONFIG_SET_FLAG, key, NULL, 0) == 0;
}

/* What mount_here() says in one string.  With errno. */
static bool configure(int context, int fd, const struct mount_options *o)
{
	return set_string(context, "source", o->source) &&
	       set_string(context, "subtype", SUBTYPE) && set_number(context, "fd", (unsigned)fd) &&
	       set_string(context, "rootmode", "40000") &&
	       set_number(context, "user_id", geteuid()) &&
	       set_number(context, "group_id", getegid()) &&
	       set_flag(context, "default_permissions", !o->unchecked) &&
	       set_flag(context, "allow_other", o->others) &&
	       fsconfig(context, FSCONFIG_CMD_CREATE, NULL, NULL, 0) == 0;
}

static int make_tree(const struct mount_options *o, int fd)
{
	AUTO_CLOSE int context = fsopen("fuse", FSOPEN_CLOEXEC);
	int tree;

	if (context < 0 || !configure(context, fd, o))
		return -errno;
	tree = fsmount(context, FSMOUNT_CLOEXEC,
		       MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOATIME);
	return tree < 0 ? -errno : tree;
}

/* Linux 5.2; a container may forbid the calls though it allows mount(2). */
int platform_mount_nowhere(const struct mount_options *options, int *ret_fd, int *ret_tree,
			   struct platform_id *ret_id, struct err *err)
{
	AUTO_CLOSE int fd = open_device(err), tree = -1;
	char text[64];
	int r;

	if (fd == -EPERM)
		return err_set(err, -ENOTSUP, "only root has mounts that are attached nowhere");
	if (fd < 0)
		return fd;
	tree = make_tree(options, fd);
	if (tree < 0)
		return err_set(err, -ENOTSUP, "no mount that is attached nowhere: %s",
			       sys_errno_text(-tree, text, sizeof(text)));
	r = identify_at(tree, "", ret_id);
	if (r < 0)
		return err_wrap(err, r, "looking at a mount");
	*ret_fd = TAKE_FD(fd);
	*ret_tree = TAKE_FD(tree);
	return 0;
}

/*
 * A mount has its source for life; but a connection can be mounted again (Linux 5.15), and what
 * the kernel knows of it belongs to the connection.
 */
int platform_attach(int tree, int fd, const struct mount_options *options,
		    struct platform_id *ret_id, struct err *err)
{
	AUTO_CLOSE int renamed = make_tree(options, fd);
	const int from = renamed >= 0 ? renamed : tree;
	struct platform_id id;
	int r = identify_at(from, "", &id);

	if (r < 0)
		return err_wrap(err, r, "looking at a mount");
	if (move_mount(from, "", AT_FDCWD, options->path, MOVE_MOUNT_F_EMPTY_PATH) < 0)
		return err_sys(err, "mounting at '%s'", options->path);
	*ret_id = id;
	return 0;
}

/* --- unmounting ------------------------------------------------------------------------- */

int platform_hold(const char *path)
{
	return open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

static int unmount(const char *path, bool lazy, struct err *err)
{
	if (umount2(path, UMOUNT_NOFOLLOW | (lazy ? MNT_DETACH : 0)) == 0)
		return 0;
	if (errno == EINVAL || errno == ENOENT) /* not a mount any more */
		return 0;
	if (errno == EPERM)
		return fusermount_unmount(path, lazy, err);
	if (errno == EBUSY)
		return err_set(err, -EBUSY, "'%s' is in use", path);
	return err_sys(err, "unmounting '%s'", path);
}

static bool is_same(const struct platform_id *a, const struct platform_id *b)
{
	return a->mount == b->mount && a->dev == b->dev;
}

bool platform_is_at(const char *path, const struct platform_id *id)
{
	struct platform_id now;

	return identify(path, &now) >= 0 && is_same(&now, id);
}

bool platform_is_of(int fd, const struct platform_id *id)
{
	struct platform_id now;

	return identify_at(fd, "", &now) >= 0 && is_same(&now, id);
}

int platform_unmount(const char *path, const struct platform_id *id, bool lazy, struct err *err)
{
	/* Somebody may have unmounted it, and somebody else mounted there what is not ours. */
	if (!platform_is_at(path, id))
		return 0;
	return unmount(path, lazy, err);
}

/* --- what a dead process left ----------------------------------------------------------- */

/* In mountinfo, blanks, newlines and backslashes are \ooo. */
static bool shown_as(const char *shown, size_t len, const char *path)
{
	size_t i = 0;

	for (; i < len && *path != '\0'; path++) {
		unsigned char c = (unsigned char)shown[i++];

		if (c == '\\' && i + 3 <= len) {
			c = (unsigned char)((shown[i] - '0') << 6 | (shown[i + 1] - '0') << 3 |
					    (shown[i + 2] - '0'));
			i += 3;
		}
		if (c != (unsigned char)*path)
			return false;
	}
	return i == len && *path == '\0';
}

/* The n-th of the words between blanks; NULL if there are fewer. */
static const char *word(const char *line, int n, size_t *ret_len)
{
	for (; n > 0; n--) {
		line += strcspn(line, " \n");
		if (*line != ' ')
			return NULL;
		line++;
	}
	*ret_len = strcspn(line, " \n");
	return line;
}

/* Does this line of mountinfo show a mount of ours at `path`? */
static bool line_is(const char *line, const char *path)
{
	const char *at, *type;
	size_t len, type_len;

	at = word(line, 4, &len);
	if (at == NULL || !shown_as(at, len, path))
		return false;
	type = strstr(at, " - ");
	if (type == NULL)
		return false;
	type = word(type + 3, 0, &type_len);
	return type_len == strlen(FS_TYPE) && memcmp(type, FS_TYPE, type_len) == 0;
}

/* Is what is mounted last at `path` one of ours?  1, 0 or a negative errno. */
static int ours_at(const char *path, struct err *err)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	const char *line;
	bool ours = false;
	size_t len;
	int r = fdio_read_file(AT_FDCWD, "/proc/self/mountinfo", (size_t)64 << 20, &text, err);

	if (r < 0)
		return r;
	line = buf_str(&text);
	if (line == NULL)
		return err_nomem(err);
	for (; *line != '\0'; line += strcspn(line, "\n"), line += *line == '\n') {
		const char *at = word(line, 4, &len);

		if (at != NULL && shown_as(at, len, path))
			ours = line_is(line, path);
	}
	return ours;
}

/* The path as mountinfo has it: the directory resolved, the last name as it is. */
static int resolve(const char *path, char **ret, struct err *err)
{
	AUTO_FREE char *dir = path_clean("/", path), *real = NULL;
	const char *base;
	char *end;

	if (dir == NULL)
		return err_nomem(err);
	base = path_base(dir);
	end = strrchr(dir, '/');
	if (base == dir || end == dir) { /* "/" and what lies in it */
		*ret = TAKE_PTR(dir);
		return 0;
	}
	*end = '\0';
	real = realpath(dir, NULL);
	if (real == NULL)
		return -errno;
	*ret = path_join(real, end + 1);
	return *ret != NULL ? 0 : err_nomem(err);
}

int platform_clear(const char *path, struct err *err)
{
	AUTO_FREE char *real = NULL;
	struct statfs st;
	int r;

	assert(path[0] == '/');
	r = resolve(path, &real, err);
	if (r == -ENOENT)
		return 0;
	if (r < 0)
		return err_wrap(err, r, "looking for '%s'", path);
	assert(real);
	/* One may lie on another. */
	while ((r = ours_at(real, err)) == 1) {
		/* statfs(2) is the one question that the kernel never answers from memory. */
		if (statfs(real, &st) == 0 || (errno != ENOTCONN && errno != ECONNABORTED))
			return err_set(err, -EBUSY, "'%s' is mounted and somebody answers it",
				       path);
		r = unmount(real, true, err);
		if (r < 0)
			return r;
	}
	return r;
}
