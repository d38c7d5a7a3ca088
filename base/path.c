#include "base/path.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/hex.h"
#include "base/utf8.h"

bool path_name_valid(const char *name, size_t len)
{
	if (len == 0 || len > PATH_NAME_MAX)
		return false;
	if (memchr(name, '/', len) || memchr(name, '\0', len))
		return false;
	return !(name[0] == '.' && (len == 1 || (len == 2 && name[1] == '.')));
}

char *path_join(const char *dir, const char *name)
{
	const size_t dlen = strlen(dir), nlen = strlen(name);
	const size_t slash = dlen > 0 && dir[dlen - 1] != '/';
	char *p = malloc(dlen + slash + nlen + 1);

	if (!p)
		return NULL;
	memcpy(p, dir, dlen);
	if (slash)
		p[dlen] = '/';
	memcpy(p + dlen + slash, name, nlen + 1);
	return p;
}

/* Walk `path` from the clean directory out[0..len), "" being the root; returns the new length. */
static size_t append_clean(char *out, size_t len, const char *path)
{
	size_t n;

	for (; *path != '\0'; path += n) {
		path += strspn(path, "/");
		n = strcspn(path, "/");
		if (n == 0 || (n == 1 && path[0] == '.'))
			continue;
		if (n == 2 && path[0] == '.' && path[1] == '.') {
			while (len > 0 && out[--len] != '/')
				;
			continue;
		}
		out[len++] = '/';
		memcpy(out + len, path, n);
		len += n;
	}
	return len;
}

char *path_clean(const char *cwd, const char *path)
{
	/* Each part can gain a leading slash; the root alone needs one, and all need a NUL. */
	char *out = malloc(strlen(cwd) + strlen(path) + 3);
	size_t len = 0;

	if (!out)
		return NULL;
	if (path[0] != '/')
		len = append_clean(out, len, cwd);
	len = append_clean(out, len, path);
	if (len == 0)
		out[len++] = '/';
	out[len] = '\0';
	return out;
}

bool path_is_within(const char *path, const char *part)
{
	const size_t n = strlen(part);

	return n == 0 || (strncmp(path, part, n) == 0 && (path[n] == '\0' || path[n] == '/'));
}

bool path_is_below(const char *path, const char *dir)
{
	const size_t n = strlen(dir);

	assert(path[0] == '/' && dir[0] == '/');
	return n == 1 || path_is_within(path, dir);
}

int path_compare(const char *a, const char *b)
{
	while (*a != '\0' && *a == *b) {
		a++;
		b++;
	}
	/* The end of a path and the end of one of its names come before all other bytes. */
	if (*a == '\0' || *b == '\0')
		return (*a != '\0') - (*b != '\0');
	if (*a == '/' || *b == '/')
		return (*a != '/') - (*b != '/');
	return (unsigned char)*a < (unsigned char)*b ? -1 : 1;
}

const char *path_base(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] != '\0' ? slash + 1 : path;
}

/*
 * Make durable that `path`, just made, is there.  A parent that we may write but not read
 * cannot be opened; to sync the new directory instead carries its name along wherever
 * both are in one journal, and nothing more can be done.
 */
static int sync_name(const char *path, struct err *err)
{
	AUTO_FREE char *parent = path_join(path, "..");
	AUTO_CLOSE int fd = -1;

	if (!parent)
		return err_nomem(err);
	fd = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 && errno == EACCES)
		fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return errno == EACCES ? 0 : err_sys(err, "opening the directory of '%s'", path);
	/* Some file systems have nothing to sync in a directory. */
	if (fsync(fd) < 0 && errno != EINVAL && errno != ENOTSUP)
		return err_sys(err, "syncing the directory of '%s'", path);
	return 0;
}

/* What mkdir() says of a directory that exists differs (macOS: EISDIR for "/"), so ask stat(). */
static int make_dir(const char *path, mode_t mode, struct err *err)
{
	struct stat st;
	int mkdir_errno, r;

	if (mkdir(path, mode) == 0) {
		r = sync_name(path, err);
		/* Found by a later call, it would be taken for durable. */
		if (r < 0)
			rmdir(path);
		return r;
	}
	mkdir_errno = errno;
	if (stat(path, &st) == 0) {
		if (S_ISDIR(st.st_mode))
			return 0;
		return err_set(err, -ENOTDIR, "'%s' is not a directory", path);
	}
	errno = mkdir_errno;
	return err_sys(err, "creating directory '%s'", path);
}

int path_make_dirs(const char *path, mode_t mode, struct err *err)
{
	AUTO_FREE char *part = strdup(path);
	char *end;
	int r;

	if (!part)
		return err_nomem(err);
	for (end = part + strspn(part, "/"); *end != '\0'; end += strspn(end, "/")) {
		end += strcspn(end, "/");
		if (*end == '\0')
			break;
		*end = '\0';
		r = make_dir(part, mode, err);
		if (r < 0)
			return r;
		*end = '/';
	}
	return make_dir(part, mode, err);
}

static int append_escaped(struct buf *out, const char *name, size_t len,
			  size_t (*passes)(const char *, size_t))
{
	const size_t start = out->len;
	char escaped[5] = "\\x";
	size_t n;
	int r;

	for (; len > 0; name += n, len -= n) {
		n = name[0] == '\\' ? 0 : passes(name, len);
		if (n > 0) {
			r = buf_append(out, name, n);
		} else {
			n = 1;
			hex_encode(name, 1, escaped + 2);
			r = buf_append_str(out, escaped);
		}
		if (r < 0) {
			out->len = start;
			return r;
		}
	}
	return 0;
}

int path_append_escaped(struct buf *out, const char *name, size_t len)
{
	return append_escaped(out, name, len, utf8_printable);
}

int path_append_shown(struct buf *out, const char *name, size_t len)
{
	return append_escaped(out, name, len, utf8_visible);
}

int path_unescape(const char *escaped, char **ret)
{
	AUTO_FREE char *name = malloc(strlen(escaped) + 1);
	bool any = false;
	char *to = name;

	if (!name)
		return -ENOMEM;
	while (*escaped != '\0') {
		if (*escaped != '\\') {
			*to++ = *escaped++;
			continue;
		}
		if (escaped[1] != 'x' || strnlen(escaped, 4) < 4 ||
		    hex_decode(escaped + 2, 2, to, 1) < 0 || *to == '\0')
			return 0;
		escaped += 4;
		any = true;
		to++;
	}
	*to = '\0';
	if (any)
		*ret = TAKE_PTR(name);
	return any;
}
