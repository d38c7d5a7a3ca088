#include "snapshot/capture/keep.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fdio.h"
#include "base/sys.h"
#include "cowfs/store/settle.h"
#include "snapshot/capture/capture-i.h"
#include "snapshot/capture/lease.h"

struct keeper {
	struct node_reader reader;
};

int keeper_new(struct batch *b, keeper_stop_fn stop, void *ctx, struct keeper **ret,
	       struct err *err)
{
	CLEANUP(keeper_free_p) struct keeper *k = calloc(1, sizeof(*k));
	int r;

	if (!k)
		return err_nomem(err);
	r = node_reader_init(&k->reader, b, err);
	if (r < 0)
		return r;
	k->reader.stop = stop;
	k->reader.stop_ctx = ctx;
	*ret = TAKE_PTR(k);
	return 0;
}

void keeper_free(struct keeper *k)
{
	if (!k)
		return;
	node_reader_done(&k->reader);
	free(k);
}

/* -EAGAIN: somebody has a lease on it, and is asked to give it up. */
bool keep_is_ours(int code)
{
	return code == -ENOMEM || code == -EMFILE || code == -ENFILE || code == -EINTR ||
	       code == -EAGAIN;
}

#define OPEN_FLAGS (O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)

/* Name by name, where no single call can. */
static int open_stepwise(int top, const char *path)
{
	AUTO_CLOSE int dir = -1;
	char name[NAME_MAX + 1];
	const char *end;
	int next;

	for (; (end = strchr(path, '/')); path = end + 1) {
		if ((size_t)(end - path) >= sizeof(name))
			return -ENAMETOOLONG;
		memcpy(name, path, (size_t)(end - path));
		name[end - path] = '\0';
		next = openat(dir < 0 ? top : dir, name,
			      O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (next < 0)
			return -errno;
		cleanup_close(&dir);
		dir = next;
	}
	next = openat(dir < 0 ? top : dir, path, OPEN_FLAGS);
	return next < 0 ? -errno : next;
}

int keep_open(int top, const char *path, int *ret_fd, struct err *err)
{
	int fd = sys_open_below(top, path, OPEN_FLAGS);

	if (fd == -ENOTSUP)
		fd = open_stepwise(top, path);
	*ret_fd = fd;
	if (fd >= 0)
		return 0;
	*ret_fd = -1;
	if (keep_is_ours(fd))
		return err_set(err, fd, "cannot be opened: %s", strerror(-fd));
	if (fd == -ENOENT || fd == -ENOTDIR || fd == -ELOOP)
		err_set(err, -EIO, "was removed or replaced before it was captured");
	else
		err_set(err, -EIO, "could not be opened when it was to be captured: %s",
			strerror(-fd));
	return KEEP_LOST;
}

static bool is_promised(const struct object_key *key, const struct stat *st, dev_t home,
			const struct catalog_id *capture, const struct object_id *promise)
{
	const struct tree_entry e = {
		.size = (uint64_t)st->st_size,
		.mtime_s = SYS_ST_MTIM(st).tv_sec,
		.mtime_ns = (uint32_t)SYS_ST_MTIM(st).tv_nsec,
		.ctime_s = SYS_ST_CTIM(st).tv_sec,
		.ctime_ns = (uint32_t)SYS_ST_CTIM(st).tv_nsec,
	};
	struct object_id id;

	if (!S_ISREG(st->st_mode) || st->st_dev != home)
		return false;
	id = settle_promise(key, capture, (uint64_t)st->st_ino, &e);
	return object_id_equal(&id, promise);
}

bool keep_is_promised(const struct object_key *key, int fd, dev_t home,
		      const struct catalog_id *capture, const struct object_id *promise)
{
	struct stat st;

	return fstat(fd, &st) == 0 && is_promised(key, &st, home, capture, promise);
}

static int lost(struct err *err)
{
	err_set(err, -EIO, "was changed before it was captured");
	return KEEP_LOST;
}

/* A disk that fails, or a server that has forgotten the file, may do so for ever; another way to the bytes may not. */
static int examine(int fd, struct stat *ret, struct err *err)
{
	const int r = fstat(fd, ret) < 0 ? -errno : 0;

	if (r == 0)
		return 0;
	if (keep_is_ours(r))
		return err_set(err, r, "cannot be examined: %s", strerror(-r));
	err_set(err, -EIO, "could not be examined when it was to be captured: %s", strerror(-r));
	return KEEP_LOST;
}

int keeper_read(struct keeper *k, int fd, dev_t home, const struct catalog_id *capture,
		const struct object_id *promise, struct content *ret, struct err *err)
{
	const struct object_key *key = store_key(batch_store(k->reader.batch));
	struct stat before;
	int r;

	r = examine(fd, &before, err);
	if (r != 0)
		return r;
	if (!is_promised(key, &before, home, capture, promise))
		return lost(err);
	r = node_read_content(&k->reader, fd, &before, ret, err);
	if (r < 0)
		return r;
	if (r == NODE_UNREADABLE) {
		err_wrap(err, -EIO, "was to be captured");
		return KEEP_LOST;
	}
	if (r == NODE_CHANGED || !keep_is_promised(key, fd, home, capture, promise))
		return lost(err);
	return 0;
}

int keeper_read_held(struct keeper *k, int fd, uint64_t size, struct content *ret, struct err *err)
{
	struct stat st;
	int r;

	r = examine(fd, &st, err);
	if (r != 0)
		return r;
	if ((uint64_t)st.st_size != size)
		return lost(err);
	r = node_read_content(&k->reader, fd, &st, ret, err);
	if (r < 0)
		return r;
	if (r > 0 || fstat(fd, &st) < 0 || (uint64_t)st.st_size != size || lease_held(fd) != 1)
		return lost(err);
	return 0;
}

int keeper_read_copy(struct keeper *k, int fd, struct content *ret, struct err *err)
{
	struct stat st;
	int r;

	r = examine(fd, &st, err);
	if (r != 0)
		return r;
	r = node_read_content(&k->reader, fd, &st, ret, err);
	return r > 0 ? lost(err) : r;
}

ssize_t keep_peek(const struct object_key *key, int fd, dev_t home,
		  const struct catalog_id *capture, const struct object_id *promise, uint64_t off,
		  void *data, size_t len)
{
	ssize_t n;

	if (!keep_is_promised(key, fd, home, capture, promise))
		return 0;
	n = fdio_pread(fd, data, len, (off_t)off);
	return n > 0 && keep_is_promised(key, fd, home, capture, promise) ? n : 0;
}

ssize_t keep_peek_held(int fd, uint64_t size, uint64_t off, void *data, size_t len)
{
	struct stat st;
	ssize_t n = fdio_pread(fd, data, len, (off_t)off);

	if (n <= 0 || fstat(fd, &st) < 0 || (uint64_t)st.st_size != size || lease_held(fd) != 1)
		return 0;
	return n;
}
