#include "tests/model/side.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "tests/model/names.h"

uint64_t hash_bytes(uint64_t hash, const void *data, size_t len)
{
	const uint8_t *p = data;
	uint64_t word;

	for (; len >= sizeof(word); p += sizeof(word), len -= sizeof(word)) {
		memcpy(&word, p, sizeof(word));
		hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
		hash ^= hash >> 29;
	}
	for (; len; p++, len--)
		hash = (hash ^ *p) * 0x100000001b3u;
	return hash;
}

int side_open(struct side *s, const char *root)
{
	int i;

	*s = (struct side){ .root = root };
	for (i = 0; i < OP_SLOTS; i++)
		s->slots[i] = -1;
	s->dir = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return s->dir < 0 ? -errno : 0;
}

void side_close_slots(struct side *s)
{
	int i;

	for (i = 0; i < OP_SLOTS; i++) {
		if (s->slots[i] >= 0)
			close(s->slots[i]);
		s->slots[i] = -1;
	}
}

void side_close(struct side *s)
{
	side_close_slots(s);
	if (s->dir >= 0)
		close(s->dir);
	s->dir = -1;
}

bool outcome_equal(const struct outcome *a, const struct outcome *b)
{
	return a->ret == b->ret && a->errnum == b->errnum && a->hash == b->hash;
}

void outcome_print(const struct outcome *o, FILE *f)
{
	if (o->errnum)
		fprintf(f, "%s", strerrorname_np(o->errnum));
	else
		fprintf(f, "%" PRId64 "%s%s", o->ret, o->told[0] ? ", " : "", o->told);
}

/* --- operations -------------------------------------------------------------------------- */

static void tell(struct outcome *o, const void *data, size_t len)
{
	o->hash = hash_bytes(o->hash, data, len);
	snprintf(o->told, sizeof(o->told), "%zu bytes with hash %016" PRIx64, len, o->hash);
}

static void *bytes_for(int64_t len, int64_t seed)
{
	uint8_t *p = malloc((size_t)len + 1);
	int64_t i;

	/* Some of it zeros, as files have. */
	for (i = 0; p && i < len; i++)
		p[i] = i / 8192 % 4 == 3 ? 0 : (uint8_t)(i * 7 + seed + i / 251);
	return p;
}

static int64_t write_at(int fd, int64_t off, int64_t len, int64_t seed, bool append)
{
	AUTO_FREE void *data = bytes_for(len, seed);

	return append ? write(fd, data, (size_t)len) : pwrite(fd, data, (size_t)len, off);
}

static int64_t do_write(struct side *s, const struct op *op)
{
	bool append = op->kind == OP_APPEND;
	AUTO_CLOSE int fd = openat(s->dir, op->path[0],
				   O_WRONLY | O_NONBLOCK | O_CLOEXEC | (append ? O_APPEND : 0));

	if (fd < 0)
		return -1;
	if (append)
		return write_at(fd, 0, op->n[0], op->n[1], true);
	return write_at(fd, op->n[0], op->n[1], op->n[2], false);
}

static int64_t do_create(struct side *s, const struct op *op)
{
	int fd =
	    openat(s->dir, op->path[0], O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, (mode_t)op->n[0]);

	return fd < 0 ? -1 : close(fd);
}

static int64_t do_truncate(struct side *s, const struct op *op)
{
	AUTO_CLOSE int fd = openat(s->dir, op->path[0], O_WRONLY | O_NONBLOCK | O_CLOEXEC);

	return fd < 0 ? -1 : ftruncate(fd, op->n[0]);
}

int64_t outcome_read_all(int fd, struct outcome *o)
{
	char data[65536];
	ssize_t n;
	int64_t all = 0;

	while ((n = pread(fd, data, sizeof(data), all)) > 0) {
		tell(o, data, (size_t)n);
		all += n;
	}
	return n < 0 ? -1 : all;
}

static int64_t do_read(struct side *s, const struct op *op, struct outcome *o)
{
	AUTO_CLOSE int fd = openat(s->dir, op->path[0], O_RDONLY | O_NONBLOCK | O_CLOEXEC);

	return fd < 0 ? -1 : outcome_read_all(fd, o);
}

static void describe_stat(struct outcome *o, const struct stat *st)
{
	int64_t told[] = { st->st_mode,
			   st->st_uid,
			   st->st_gid,
			   st->st_nlink,
			   st->st_rdev,
			   S_ISDIR(st->st_mode) ? 0 : st->st_size,
			   st->st_mtim.tv_sec < SET_TIMES_END ? st->st_mtim.tv_sec : -1,
			   st->st_mtim.tv_sec < SET_TIMES_END ? st->st_mtim.tv_nsec : -1 };

	tell(o, told, sizeof(told));
	snprintf(o->told, sizeof(o->told),
		 "mode %o uid %d gid %d links %d size %jd mtime %jd.%09jd", (unsigned)told[0],
		 (int)told[1], (int)told[2], (int)told[3], (intmax_t)told[5], (intmax_t)told[6],
		 (intmax_t)told[7]);
}

static int64_t do_stat(struct side *s, const struct op *op, struct outcome *o)
{
	struct stat st;

	if (fstatat(s->dir, op->path[0], &st, AT_SYMLINK_NOFOLLOW) != 0)
		return -1;
	describe_stat(o, &st);
	return 0;
}

static int64_t do_readlink(struct side *s, const struct op *op, struct outcome *o)
{
	char target[4096];
	ssize_t n = readlinkat(s->dir, op->path[0], target, sizeof(target));

	if (n > 0)
		tell(o, target, (size_t)n);
	return n;
}

static int64_t do_readdir(struct side *s, const struct op *op, struct outcome *o)
{
	CLEANUP(names_done) struct names l = { 0 };
	size_t i;
	int r = names_of(s->dir, op->path[0], &l);

	if (r < 0) {
		errno = -r;
		return -1;
	}
	for (i = 0; i < l.n; i++)
		tell(o, l.list[i], strlen(l.list[i]) + 1);
	return (int64_t)l.n;
}

static int64_t do_utimens(struct side *s, const struct op *op, struct outcome *o)
{
	struct timespec t[2] = { { op->n[0], op->n[1] }, { op->n[2], op->n[3] } };
	struct stat st;

	if (utimensat(s->dir, op->path[0], t, AT_SYMLINK_NOFOLLOW) != 0 ||
	    fstatat(s->dir, op->path[0], &st, AT_SYMLINK_NOFOLLOW) != 0)
		return -1;
	tell(o, &st.st_atim, sizeof(st.st_atim));
	tell(o, &st.st_mtim, sizeof(st.st_mtim));
	return 0;
}

/* xattr calls take no directory; a path through /proc has one. */
const char *side_path(const struct side *s, const char *path)
{
	static char full[1024];

	snprintf(full, sizeof(full), "/proc/self/fd/%d/%s", s->dir, path);
	return full;
}

static int64_t do_xattr(struct side *s, const struct op *op, struct outcome *o)
{
	const char *path = side_path(s, op->path[0]);
	char value[4096];
	ssize_t n;

	if (op->kind == OP_SETXATTR) {
		AUTO_FREE void *data = bytes_for(op->n[0], op->n[1]);

		return lsetxattr(path, op->path[1], data, (size_t)op->n[0], (int)op->n[2]);
	}
	if (op->kind == OP_RMXATTR)
		return lremovexattr(path, op->path[1]);
	n = lgetxattr(path, op->path[1], value, sizeof(value));
	if (n > 0)
		tell(o, value, (size_t)n);
	return n;
}

/* --- open files -------------------------------------------------------------------------- */

static int64_t keep_slot(struct side *s, int64_t slot, int fd, int flags)
{
	if (fd < 0)
		return -1;
	if (s->slots[slot] >= 0)
		close(s->slots[slot]);
	s->slots[slot] = fd;
	s->flags[slot] = flags;
	return 0;
}

static int64_t do_open(struct side *s, const struct op *op)
{
	struct stat st;
	int fd = openat(s->dir, op->path[0], (int)op->n[1] | O_NONBLOCK | O_CLOEXEC, 0755);

	/* Slots are regular files: what a directory or a FIFO does is its kind's own affair. */
	if (fd >= 0 && (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))) {
		close(fd);
		return 1;
	}
	return keep_slot(s, op->n[0], fd, (int)op->n[1]);
}

static int64_t do_name(struct side *s, const struct op *op)
{
	char proc[64];

	if (s->slots[op->n[0]] < 0) {
		errno = EBADF;
		return -1;
	}
	snprintf(proc, sizeof(proc), "/proc/self/fd/%d", s->slots[op->n[0]]);
	return linkat(AT_FDCWD, proc, s->dir, op->path[0], AT_SYMLINK_FOLLOW);
}

static int64_t do_pread(int fd, const struct op *op, struct outcome *o)
{
	AUTO_FREE char *data = malloc((size_t)op->n[2]);
	ssize_t n = pread(fd, data, (size_t)op->n[2], op->n[1]);

	if (n > 0)
		tell(o, data, (size_t)n);
	return n;
}

static int64_t do_mmap(int fd, const struct op *op)
{
	AUTO_FREE void *data = bytes_for(op->n[2], op->n[3]);
	size_t off = (size_t)op->n[1], len = (size_t)op->n[2], end;
	struct stat st;
	int rc = 0;
	char *map;

	if (fstat(fd, &st) != 0)
		return -1;
	if (off >= (size_t)st.st_size)
		return 0;
	end = off + len < (size_t)st.st_size ? off + len : (size_t)st.st_size;
	map = mmap(NULL, end, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		return -1;
	memcpy(map + off, data, end - off);
	if (op->n[3] % 2)
		rc = msync(map, end, MS_SYNC);
	munmap(map, end);
	return rc < 0 ? -1 : (int64_t)(end - off);
}

static int64_t do_copy(struct side *s, const struct op *op)
{
	off_t in = op->n[2], out = op->n[3];
	int64_t left = op->n[4], done = 0;
	ssize_t n = 1;

	for (; left && n > 0; left -= n, done += n) {
		n = copy_file_range(s->slots[op->n[0]], &in, s->slots[op->n[1]], &out, (size_t)left,
				    0);
		if (n < 0)
			return done ? done : -1;
	}
	return done;
}

/* From there the next data and the next hole: only whether they can be, as blocks may differ. */
static int64_t do_seek(int fd, const struct op *op)
{
	off_t hole = lseek(fd, op->n[1], SEEK_HOLE), data;

	if (hole < 0)
		return -1;
	data = lseek(fd, op->n[1], SEEK_DATA);
	if (data < 0 && errno != ENXIO)
		return -1;
	return hole < op->n[1] || (data >= 0 && data < op->n[1]) ? 1 : 0;
}

static int64_t do_slot(struct side *s, const struct op *op, struct outcome *o)
{
	int64_t slot = op->n[0];
	int fd = s->slots[slot];
	struct stat st;

	switch (op->kind) {
	case OP_CLOSE:
		s->slots[slot] = -1;
		return close(fd);
	case OP_PWRITE:
		return write_at(fd, op->n[1], op->n[2], op->n[3], false);
	case OP_PREAD:
		return do_pread(fd, op, o);
	case OP_FTRUNCATE:
		return ftruncate(fd, op->n[1]);
	case OP_FALLOCATE:
		return fallocate(fd, (int)op->n[1], op->n[2], op->n[3]);
	case OP_MMAP_WRITE:
		return do_mmap(fd, op);
	case OP_COPY:
		return do_copy(s, op);
	case OP_SEEK:
		return do_seek(fd, op);
	case OP_FSTAT:
		if (fstat(fd, &st) != 0)
			return -1;
		describe_stat(o, &st);
		return 0;
	case OP_FSYNC:
		return fsync(fd);
	default:
		abort();
	}
}

static int64_t dispatch(struct side *s, const struct op *op, struct outcome *o)
{
	const char *a = op->path[0], *b = op->path[1];

	switch (op->kind) {
	case OP_CREATE:
		return do_create(s, op);
	case OP_MKDIR:
		return mkdirat(s->dir, a, (mode_t)op->n[0]);
	case OP_MKFIFO:
		return mkfifoat(s->dir, a, (mode_t)op->n[0]);
	case OP_SYMLINK:
		return symlinkat(b, s->dir, a);
	case OP_LINK:
		return linkat(s->dir, a, s->dir, b, 0);
	case OP_UNLINK:
		return unlinkat(s->dir, a, 0);
	case OP_RMDIR:
		return unlinkat(s->dir, a, AT_REMOVEDIR);
	case OP_RENAME:
		return renameat2(s->dir, a, s->dir, b, (unsigned)op->n[0]);
	case OP_TRUNCATE:
		return do_truncate(s, op);
	case OP_WRITE:
	case OP_APPEND:
		return do_write(s, op);
	case OP_READ:
		return do_read(s, op, o);
	case OP_STAT:
		return do_stat(s, op, o);
	case OP_READLINK:
		return do_readlink(s, op, o);
	case OP_READDIR:
		return do_readdir(s, op, o);
	case OP_CHMOD:
		return fchmodat(s->dir, a, (mode_t)op->n[0], 0);
	case OP_CHOWN:
		return fchownat(s->dir, a, (uid_t)op->n[0], (gid_t)op->n[1], AT_SYMLINK_NOFOLLOW);
	case OP_UTIMENS:
		return do_utimens(s, op, o);
	case OP_SETXATTR:
	case OP_GETXATTR:
	case OP_RMXATTR:
		return do_xattr(s, op, o);
	case OP_OPEN:
		return do_open(s, op);
	case OP_TMPFILE:
		return keep_slot(s, op->n[0],
				 openat(s->dir, a, O_TMPFILE | O_RDWR | O_CLOEXEC, 0700), O_RDWR);
	case OP_NAME:
		return do_name(s, op);
	case OP_PAUSE:
		return 0;
	default:
		return do_slot(s, op, o);
	}
}

void side_do(struct side *s, const struct op *op, struct outcome *ret)
{
	*ret = (struct outcome){ .hash = 14695981039346656037u };
	ret->ret = dispatch(s, op, ret);
	if (ret->ret < 0)
		*ret = (struct outcome){ .ret = -1, .errnum = errno };
}
