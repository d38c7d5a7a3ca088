#include <signal.h>
#include <stdarg.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "tests/posix/posix.h"

void tick(void)
{
	/* The coarse clock of a kernel with 100 ticks a second moves every 10 ms. */
	nanosleep(&(struct timespec){ .tv_nsec = 12000000 }, NULL);
}

double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* --- things ------------------------------------------------------------------------------ */

const char *kind_name(enum kind k)
{
	static const char *const names[KINDS] = {
		[FILE_] = "file",
		[DIR_] = "directory",
		[FULL_DIR] = "full directory",
		[LINK_FILE] = "link to a file",
		[LINK_DIR] = "link to a directory",
		[LINK_NONE] = "dangling link",
		[FIFO_] = "fifo",
		[SOCKET_] = "socket",
	};

	return names[k];
}

bool kind_is_dir(enum kind k)
{
	return k == DIR_ || k == FULL_DIR;
}

void make_file(const char *path, const char *content)
{
	AUTO_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	size_t len = strlen(content);

	NEED(fd);
	if (write(fd, content, len) != (ssize_t)len)
		NEED(-1);
}

void make_socket(const char *path)
{
	AUTO_CLOSE int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_un a = { .sun_family = AF_UNIX };

	NEED(fd);
	snprintf(a.sun_path, sizeof(a.sun_path), "%s", path);
	NEED(bind(fd, (struct sockaddr *)&a, sizeof(a)));
}

void make(enum kind k, const char *path)
{
	char other[PATH_MAX];

	snprintf(other, sizeof(other), "%s.to", path);
	switch (k) {
	case FILE_:
		make_file(path, "content\n");
		break;
	case DIR_:
		NEED(mkdir(path, 0755));
		break;
	case FULL_DIR:
		NEED(mkdir(path, 0755));
		snprintf(other, sizeof(other), "%s/inner", path);
		make_file(other, "inner\n");
		break;
	case LINK_FILE:
		make_file(other, "target\n");
		NEED(symlink(strrchr(other, '/') ? strrchr(other, '/') + 1 : other, path));
		break;
	case LINK_DIR:
		if (!exists(other))
			NEED(mkdir(other, 0755));
		NEED(symlink(strrchr(other, '/') ? strrchr(other, '/') + 1 : other, path));
		break;
	case LINK_NONE:
		NEED(symlink("no-such-name", path));
		break;
	case FIFO_:
		NEED(mkfifo(path, 0644));
		break;
	case SOCKET_:
		make_socket(path);
		break;
	case KINDS:
		abort();
	}
}

static void remove_at(int dirfd, const char *name)
{
	DIR *d;
	struct dirent *e;
	int fd;

	if (unlinkat(dirfd, name, 0) == 0 || errno == ENOENT)
		return;
	if (unlinkat(dirfd, name, AT_REMOVEDIR) == 0)
		return;
	fd = NEED(openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
	d = fdopendir(fd);
	NEED(d ? 0 : -1);
	while ((e = readdir(d)))
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			remove_at(fd, e->d_name);
	closedir(d);
	NEED(unlinkat(dirfd, name, AT_REMOVEDIR));
}

void remove_all(const char *path)
{
	remove_at(AT_FDCWD, path);
}

int open_new(const char *path)
{
	return (int)NEED(open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
}

struct stat stat_of(const char *path)
{
	struct stat st;

	trying("%s", path);
	NEED(lstat(path, &st));
	trying("%s", "");
	return st;
}

struct stat stat_fd(int fd)
{
	struct stat st;

	NEED(fstat(fd, &st));
	return st;
}

ino_t ino_of(const char *path)
{
	return stat_of(path).st_ino;
}

int nlink_of(const char *path)
{
	return (int)stat_of(path).st_nlink;
}

off_t size_of(const char *path)
{
	return stat_of(path).st_size;
}

bool exists(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0;
}

const char *name_of(size_t n, unsigned number)
{
	static char ring[8][PATH_MAX + 8];
	static unsigned at;
	char *name = ring[at++ % 8], tail[16];
	int len = snprintf(tail, sizeof(tail), "%u", number);

	if (n + 1 > sizeof(ring[0]) || (size_t)len > n)
		abort();
	memset(name, 'n', n);
	memcpy(name + n - len, tail, (size_t)len + 1);
	return name;
}

/* --- bytes ------------------------------------------------------------------------------- */

void pattern(void *data, size_t len, uint64_t off, unsigned seed)
{
	uint8_t *p = data;
	size_t i;

	/* Never zero, so that a hole is never taken for it. */
	for (i = 0; i < len; i++) {
		uint64_t x = (off + i) / 8 * 0x9e3779b97f4a7c15u + seed * 0x2545f4914f6cdd1du;

		p[i] = (uint8_t)((x >> ((off + i) % 8 * 7)) | 1);
	}
}

#define PIECE 65536

void write_pattern(int fd, uint64_t off, size_t len, unsigned seed)
{
	uint8_t data[PIECE];
	size_t n;

	for (; len; off += n, len -= n) {
		n = len < PIECE ? len : PIECE;
		pattern(data, n, off, seed);
		if (pwrite(fd, data, n, (off_t)off) != (ssize_t)n)
			NEED(-1);
	}
}

static bool check_bytes(int fd, uint64_t off, size_t len, bool zeros, unsigned seed,
			const char *file, int line)
{
	uint8_t data[PIECE], want[PIECE];
	size_t n, i;
	ssize_t got;

	for (; len; off += n, len -= n) {
		n = len < PIECE ? len : PIECE;
		got = pread(fd, data, n, (off_t)off);
		if (check_say(got < 0, file, line, "reading at %ju failed with %s", (uintmax_t)off,
			      strerrorname_np(errno)) ||
		    check_say((size_t)got < n, file, line, "read %zd bytes at %ju, want %zu", got,
			      (uintmax_t)off, n))
			return false;
		if (zeros)
			memset(want, 0, n);
		else
			pattern(want, n, off, seed);
		for (i = 0; i < n && data[i] == want[i];)
			i++;
		if (check_say(i < n, file, line, "byte %ju is %#x, want %#x", (uintmax_t)(off + i),
			      i < n ? data[i] : 0, i < n ? want[i] : 0))
			return false;
	}
	return true;
}

bool check_pattern(int fd, uint64_t off, size_t len, unsigned seed, const char *file, int line)
{
	return check_bytes(fd, off, len, false, seed, file, line);
}

bool check_zeros(int fd, uint64_t off, size_t len, const char *file, int line)
{
	return check_bytes(fd, off, len, true, 0, file, line);
}

bool check_content(const char *path, const char *text, const char *file, int line)
{
	char have[4096];
	ssize_t n = -1;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (check_say(fd < 0, file, line, "opening '%s' failed with %s", path,
		      strerrorname_np(errno)))
		return false;
	n = read(fd, have, sizeof(have) - 1);
	close(fd);
	if (check_say(n < 0, file, line, "reading '%s' failed with %s", path,
		      strerrorname_np(errno)))
		return false;
	have[n] = '\0';
	return !check_say((size_t)n != strlen(text) || memcmp(have, text, (size_t)n) != 0, file,
			  line, "'%s' holds \"%.80s\" (%zd bytes), want \"%.80s\"", path, have, n,
			  text);
}

uint64_t rng_next(struct rng *r)
{
	r->s ^= r->s << 13;
	r->s ^= r->s >> 7;
	r->s ^= r->s << 17;
	return r->s * 0x2545f4914f6cdd1du;
}

uint64_t rng_below(struct rng *r, uint64_t n)
{
	return (rng_next(r) >> 11) % n;
}

/* --- times ------------------------------------------------------------------------------- */

struct stamp stamp_of(const char *path)
{
	struct stat st = stat_of(path);

	return (struct stamp){ st.st_atim, st.st_mtim, st.st_ctim };
}

int time_cmp(struct timespec a, struct timespec b)
{
	if (a.tv_sec != b.tv_sec)
		return a.tv_sec < b.tv_sec ? -1 : 1;
	return a.tv_nsec < b.tv_nsec ? -1 : a.tv_nsec > b.tv_nsec;
}

void check_moved(const char *path, struct stamp was, enum stamp_moves moves, const char *file,
		 int line)
{
	struct stamp is = stamp_of(path);
	int m = time_cmp(is.m, was.m), c = time_cmp(is.c, was.c);

	check_say(m < 0, file, line, "mtime of '%s' went back", path);
	check_say(c < 0, file, line, "ctime of '%s' went back", path);
	check_say(m == 0 && (moves & MOVES_M), file, line, "mtime of '%s' did not move", path);
	check_say(c == 0 && (moves & MOVES_C), file, line, "ctime of '%s' did not move", path);
	check_say(m > 0 && !(moves & MOVES_M), file, line, "mtime of '%s' moved", path);
	check_say(c > 0 && !(moves & MOVES_C), file, line, "ctime of '%s' moved", path);
}
