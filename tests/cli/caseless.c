/*
 * caseless.c - a directory as a file system that ignores the case of names shows it, and keeps it.
 *
 *     caseless MOUNT-POINT -o OPTIONS, with the directory in $CASELESS_DIR
 *
 * For kernels that have no such file system of their own.
 */
#define FUSE_USE_VERSION 314
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fuse.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

static int top;

/* Append the name that is in the directory `at` for `name`, or `name` itself. */
static void add_name(char *at, const char *name)
{
	const size_t len = strlen(at);
	DIR *d = fdopendir(openat(top, at, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	struct dirent *e;

	snprintf(at + len, PATH_MAX - len, "/%s", name);
	while (d && (e = readdir(d)))
		if (strcasecmp(e->d_name, name) == 0)
			snprintf(at + len, PATH_MAX - len, "/%s", e->d_name);
	if (d)
		closedir(d);
}

/* Where it really is, relative to `top`. */
static const char *real(const char *path, char at[PATH_MAX])
{
	char copy[PATH_MAX], *rest = copy;

	snprintf(copy, sizeof(copy), "%s", path);
	strcpy(at, ".");
	for (char *name; (name = strsep(&rest, "/"));)
		if (*name != '\0')
			add_name(at, name);
	return at;
}

static int done(long rc)
{
	return rc < 0 ? -errno : (int)rc;
}

static void *on_init(struct fuse_conn_info *conn, struct fuse_config *config)
{
	(void)conn;
	config->use_ino = config->hard_remove = 1;
	config->entry_timeout = config->attr_timeout = config->negative_timeout = 0;
	return NULL;
}

static int on_getattr(const char *path, struct stat *st, struct fuse_file_info *fi)
{
	char at[PATH_MAX];

	return done(fi ? fstat((int)fi->fh, st)
		       : fstatat(top, real(path, at), st, AT_SYMLINK_NOFOLLOW));
}

static int on_readlink(const char *path, char *target, size_t size)
{
	char at[PATH_MAX];
	ssize_t n = readlinkat(top, real(path, at), target, size - 1);

	if (n >= 0)
		target[n] = '\0';
	return n < 0 ? -errno : 0;
}

static int on_mkdir(const char *path, mode_t mode)
{
	char at[PATH_MAX];

	return done(mkdirat(top, real(path, at), mode));
}

static int on_symlink(const char *target, const char *path)
{
	char at[PATH_MAX];

	return done(symlinkat(target, top, real(path, at)));
}

static int on_unlink(const char *path)
{
	char at[PATH_MAX];

	return done(unlinkat(top, real(path, at), 0));
}

static int on_rmdir(const char *path)
{
	char at[PATH_MAX];

	return done(unlinkat(top, real(path, at), AT_REMOVEDIR));
}

/* A name that only changes its case is a name of the same file. */
static int on_rename(const char *from, const char *to, unsigned flags)
{
	char old[PATH_MAX], new[PATH_MAX];
	const char *name = strrchr(to, '/') + 1;

	real(from, old);
	real(to, new);
	if (strcmp(old, new) == 0 && flags == 0)
		strcpy(strrchr(new, '/') + 1, name);
	return done(renameat2(top, old, top, new, flags));
}

static int on_link(const char *from, const char *to)
{
	char old[PATH_MAX], new[PATH_MAX];

	return done(linkat(top, real(from, old), top, real(to, new), 0));
}

static int on_chmod(const char *path, mode_t mode, struct fuse_file_info *fi)
{
	char at[PATH_MAX];

	return done(fi ? fchmod((int)fi->fh, mode) : fchmodat(top, real(path, at), mode, 0));
}

static int on_chown(const char *path, uid_t uid, gid_t gid, struct fuse_file_info *fi)
{
	char at[PATH_MAX];

	return done(fi ? fchown((int)fi->fh, uid, gid)
		       : fchownat(top, real(path, at), uid, gid, AT_SYMLINK_NOFOLLOW));
}

static int on_utimens(const char *path, const struct timespec ts[2], struct fuse_file_info *fi)
{
	char at[PATH_MAX];

	return done(fi ? futimens((int)fi->fh, ts)
		       : utimensat(top, real(path, at), ts, AT_SYMLINK_NOFOLLOW));
}

static int on_open(const char *path, struct fuse_file_info *fi)
{
	char at[PATH_MAX];
	const int fd = openat(top, real(path, at), (fi->flags & ~O_NOFOLLOW) | O_CLOEXEC);

	fi->fh = (uint64_t)fd;
	return fd < 0 ? -errno : 0;
}

static int on_create(const char *path, mode_t mode, struct fuse_file_info *fi)
{
	char at[PATH_MAX];
	const int fd = openat(top, real(path, at), fi->flags | O_CREAT | O_CLOEXEC, mode);

	fi->fh = (uint64_t)fd;
	return fd < 0 ? -errno : 0;
}

static int on_truncate(const char *path, off_t size, struct fuse_file_info *fi)
{
	struct fuse_file_info own = { .flags = O_WRONLY };
	int r = fi ? 0 : on_open(path, &own);

	if (r < 0)
		return r;
	r = done(ftruncate(fi ? (int)fi->fh : (int)own.fh, size));
	if (!fi)
		close((int)own.fh);
	return r;
}

static int on_read(const char *path, char *data, size_t n, off_t at, struct fuse_file_info *fi)
{
	(void)path;
	return done(pread((int)fi->fh, data, n, at));
}

static int on_write(const char *path, const char *data, size_t n, off_t at,
		    struct fuse_file_info *fi)
{
	(void)path;
	return done(pwrite((int)fi->fh, data, n, at));
}

static int on_release(const char *path, struct fuse_file_info *fi)
{
	(void)path;
	close((int)fi->fh);
	return 0;
}

static int on_readdir(const char *path, void *to, fuse_fill_dir_t fill, off_t off,
		      struct fuse_file_info *fi, enum fuse_readdir_flags flags)
{
	char at[PATH_MAX];
	DIR *d = fdopendir(openat(top, real(path, at), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	struct dirent *e;

	(void)off;
	(void)fi;
	(void)flags;
	if (!d)
		return -errno;
	while ((e = readdir(d))) {
		const struct stat st = { .st_ino = e->d_ino, .st_mode = (mode_t)e->d_type << 12 };

		if (fill(to, e->d_name, &st, 0, 0) != 0)
			break;
	}
	closedir(d);
	return 0;
}

/* There are none, which is not to say that there could not be any. */
static int on_listxattr(const char *path, char *names, size_t size)
{
	(void)path;
	(void)names;
	(void)size;
	return 0;
}

static int on_fsync(const char *path, int data_only, struct fuse_file_info *fi)
{
	(void)path;
	(void)data_only;
	(void)fi;
	return 0;
}

int main(int argc, char **argv)
{
	static const struct fuse_operations ops = {
		.init = on_init,
		.getattr = on_getattr,
		.readlink = on_readlink,
		.mkdir = on_mkdir,
		.symlink = on_symlink,
		.unlink = on_unlink,
		.rmdir = on_rmdir,
		.rename = on_rename,
		.link = on_link,
		.chmod = on_chmod,
		.chown = on_chown,
		.utimens = on_utimens,
		.open = on_open,
		.create = on_create,
		.truncate = on_truncate,
		.read = on_read,
		.write = on_write,
		.release = on_release,
		.readdir = on_readdir,
		.listxattr = on_listxattr,
		.fsync = on_fsync,
		.fsyncdir = on_fsync,
	};
	const char *dir = getenv("CASELESS_DIR");

	top = dir ? open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	umask(0);
	return top < 0 ? 2 : fuse_main(argc, argv, &ops, NULL);
}
