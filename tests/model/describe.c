#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "tests/model/names.h"
#include "tests/model/side.h"

#define FILE_MAX (32 << 20)

/* The first of a file's names stands for all of them. */
struct seen {
	struct {
		ino_t ino;
		size_t at;
	} * list; /* owned */
	size_t n;
};

struct describer {
	struct side *side;
	struct seen seen;
	struct buf *out;
	size_t entries;
	bool inodes; /* nothing but names and inode numbers */
	struct err *err;
};

static size_t first_of(struct seen *seen, ino_t ino, size_t at)
{
	size_t i;

	for (i = 0; i < seen->n; i++)
		if (seen->list[i].ino == ino)
			return seen->list[i].at;
	seen->list = reallocarray(seen->list, seen->n + 1, sizeof(*seen->list));
	if (!seen->list)
		abort();
	seen->list[seen->n].ino = ino;
	seen->list[seen->n++].at = at;
	return at;
}

/* What is said to be a hole must be zeros. */
static int check_holes(int fd, const char *data, off_t size, const char *path, struct err *err)
{
	off_t at = 0, end, i;

	while (at < size) {
		end = lseek(fd, at, SEEK_DATA);
		if (end < 0)
			end = errno == ENXIO ? size : at;
		for (i = at; i < end; i++)
			if (data[i])
				return err_set(err, -EBADMSG,
					       "'%s': byte %jd is said to be in a hole", path,
					       (intmax_t)i);
		if (end == size)
			return 0;
		at = lseek(fd, end, SEEK_HOLE);
		if (at <= end)
			return err_set(err, -EBADMSG, "'%s': no hole behind the data at %jd", path,
				       (intmax_t)end);
	}
	return 0;
}

static int describe_bytes(struct describer *d, const char *path, const struct stat *st)
{
	AUTO_CLOSE int fd = openat(d->side->dir, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	AUTO_FREE char *data = NULL;
	off_t at = 0;
	ssize_t n = 1;
	int r;

	if (fd < 0)
		return err_sys(d->err, "opening '%s'", path);
	if (st->st_size > FILE_MAX)
		return err_set(d->err, -EFBIG, "'%s' has %jd bytes", path, (intmax_t)st->st_size);
	data = malloc((size_t)st->st_size + 1);
	for (; n > 0; at += n) {
		n = pread(fd, data + at, (size_t)(st->st_size + 1 - at), at);
		if (n < 0)
			return err_sys(d->err, "reading '%s'", path);
		if (at + n > st->st_size)
			return err_set(d->err, -EBADMSG, "'%s' has more bytes than its size says",
				       path);
	}
	if (at != st->st_size)
		return err_set(d->err, -EBADMSG, "'%s' has %jd bytes and says %jd", path,
			       (intmax_t)at, (intmax_t)st->st_size);
	r = check_holes(fd, data, at, path, d->err);
	if (r < 0)
		return r;
	return buf_printf(d->out, " bytes %016" PRIx64,
			  hash_bytes(14695981039346656037u, data, (size_t)at));
}

static int describe_xattrs(struct describer *d, const char *path)
{
	CLEANUP(names_done) struct names names = { 0 };
	char list[4096], value[4096], full[1024];
	ssize_t n, len;
	size_t i;
	char *p;

	snprintf(full, sizeof(full), "%s", side_path(d->side, path));
	n = llistxattr(full, list, sizeof(list));
	for (p = list; n > 0 && p < list + n; p += strlen(p) + 1) {
		if (strncmp(p, "user.", 5) != 0)
			continue;
		names_add(&names, p);
	}
	names_sort(&names);
	for (i = 0; i < names.n; i++) {
		len = lgetxattr(full, names.list[i], value, sizeof(value));
		if (len < 0)
			return err_sys(d->err, "attribute '%s' of '%s'", names.list[i], path);
		if (buf_printf(d->out, " %s=%zd:%08" PRIx32, names.list[i], len,
			       (uint32_t)hash_bytes(7, value, (size_t)len)) < 0)
			return -ENOMEM;
	}
	return 0;
}

static int describe_entry(struct describer *d, const char *path)
{
	char target[4096];
	struct stat st;
	size_t at = d->entries++;
	ssize_t n;
	int r;

	if (fstatat(d->side->dir, path, &st, AT_SYMLINK_NOFOLLOW) != 0)
		return err_sys(d->err, "looking at '%s'", path);
	if (d->inodes)
		return buf_printf(d->out, "%s inode %ju\n", path, (uintmax_t)st.st_ino);
	r = buf_printf(d->out, "%s mode %o uid %d gid %d links %d", path, st.st_mode,
		       (int)st.st_uid, (int)st.st_gid, (int)st.st_nlink);
	if (r == 0 && !S_ISDIR(st.st_mode))
		r = buf_printf(d->out, " size %jd file %zu", (intmax_t)st.st_size,
			       first_of(&d->seen, st.st_ino, at));
	if (r == 0 && st.st_mtim.tv_sec < SET_TIMES_END)
		r = buf_printf(d->out, " mtime %jd.%09ld", (intmax_t)st.st_mtim.tv_sec,
			       st.st_mtim.tv_nsec);
	if (r == 0 && S_ISREG(st.st_mode))
		r = describe_bytes(d, path, &st);
	if (r == 0 && S_ISLNK(st.st_mode)) {
		n = readlinkat(d->side->dir, path, target, sizeof(target) - 1);
		target[n > 0 ? n : 0] = '\0';
		r = buf_printf(d->out, " to %s", target);
	}
	if (r == 0)
		r = describe_xattrs(d, path);
	return r < 0 ? r : buf_append_str(d->out, "\n");
}

/* A script's trees are a few levels deep (depth() there), so recursion is bounded. */
static int describe_dir(struct describer *d, const char *path)
{
	CLEANUP(names_done) struct names l = { 0 };
	char inner[4096];
	struct stat st;
	size_t i;
	int r;

	r = describe_entry(d, path);
	if (r == 0)
		r = names_of(d->side->dir, path, &l);
	for (i = 0; r == 0 && i < l.n; i++) {
		snprintf(inner, sizeof(inner), "%s/%s", path, l.list[i]);
		if (fstatat(d->side->dir, inner, &st, AT_SYMLINK_NOFOLLOW) != 0)
			return err_sys(d->err, "'%s' is listed and cannot be looked at", inner);
		r = S_ISDIR(st.st_mode) ? describe_dir(d, inner) : describe_entry(d, inner);
	}
	return r;
}

static int describe(struct describer *d)
{
	int r = describe_dir(d, ".");

	free(d->seen.list);
	return r < 0 && !d->err->code ? err_set(d->err, r, "cannot describe '%s'", d->side->root)
				      : r;
}

int side_describe(struct side *s, struct buf *ret, struct err *err)
{
	struct describer d = { .side = s, .out = ret, .err = err };

	return describe(&d);
}

int side_describe_inodes(struct side *s, struct buf *ret, struct err *err)
{
	struct describer d = { .side = s, .out = ret, .inodes = true, .err = err };

	return describe(&d);
}

int side_describe_slots(struct side *s, struct buf *ret)
{
	struct outcome o;
	int i, r = 0;

	for (i = 0; r == 0 && i < OP_SLOTS; i++) {
		if (s->slots[i] < 0 || (s->flags[i] & O_ACCMODE) == O_WRONLY)
			continue;
		o = (struct outcome){ .hash = 14695981039346656037u };
		o.ret = outcome_read_all(s->slots[i], &o);
		r = buf_printf(ret, "slot %d: %" PRId64 " bytes %016" PRIx64 "%s\n", i, o.ret,
			       o.hash, o.ret < 0 ? strerrorname_np(errno) : "");
	}
	return r;
}
