/*
 * A depot in a directory, as in the OCI image layout specification:
 *
 *   oci-layout            {"imageLayoutVersion":"1.0.0"}
 *   index.json            the manifests, each with its tag as annotation
 *   blobs/sha256/HEX      blobs and manifests
 *   .snapcow-lock         held while index.json is read, changed and replaced
 *
 * A blob is written beside its place, synced and renamed, so a name in blobs/ always has whole
 * bytes. The names themselves are synced once, before a manifest: also those that another push made
 * and we only found. index.json is replaced in one step and last. A manifest without a tag is a
 * blob like any other and is in index.json only while a tag names it.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fdio.h"
#include "base/hex.h"
#include "base/path.h"
#include "base/sys.h"
#include "remote/depot-dir-i.h"

#define COPY_SIZE ((size_t)256 << 10)
#define LAYOUT    "{\"imageLayoutVersion\":\"1.0.0\"}\n"

static void dir_close(struct depot *d)
{
	struct dir_depot *dir = dir_of(d);

	cleanup_close(&dir->blobs);
	cleanup_close(&dir->fd);
	free(dir->path);
	free(d->url);
	free(dir);
}

/* Several may make it at once: what looks strange may be another's first file, written beside its blobs. */
static int find_or_make(struct dir_depot *dir, const char *blobs, struct err *err)
{
	int strange;
	int r = dir_use(dir, err);

	if (r != -ENOENT)
		return r;
	strange = dir_check_strange(dir, err);
	if (strange == 0)
		strange = path_make_dirs(blobs, 0777, err);
	r = dir_use(dir, err);
	return r == -ENOENT ? strange : r;
}

static int make_dir(struct dir_depot *dir, struct err *err)
{
	AUTO_FREE char *blobs = path_join(dir->path, "blobs/sha256");
	AUTO_CLOSE int lock = -1;
	struct stat st;
	int r;

	if (!blobs)
		return err_nomem(err);
	r = find_or_make(dir, blobs, err);
	if (r < 0 || fstatat(dir->fd, "oci-layout", &st, AT_SYMLINK_NOFOLLOW) == 0)
		return r;
	r = dir_lock(dir, &lock, err);
	if (r < 0 || fstatat(dir->fd, "oci-layout", &st, AT_SYMLINK_NOFOLLOW) == 0)
		return r;
	return fdio_replace_file(dir->fd, "oci-layout", LAYOUT, sizeof(LAYOUT) - 1, 0666, err);
}

static const char *blob_name(const struct digest *blob, char name[SHA256_HEX_SIZE])
{
	return hex_encode(blob->b, sizeof(blob->b), name);
}

static int dir_has_blob(struct depot *d, const struct digest *blob, uint64_t *ret_size,
			struct err *err)
{
	struct dir_depot *dir = dir_of(d);
	char name[SHA256_HEX_SIZE];
	struct stat st;
	int r = dir_use(dir, err);

	if (r < 0)
		return r == -ENOENT ? 0 : r;
	if (fstatat(dir->blobs, blob_name(blob, name), &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT
			   ? 0
			   : err_sys(err, "looking for blob %s in '%s'", name, dir->path);
	if (!S_ISREG(st.st_mode))
		return err_set(err, -EBADMSG, "blob %s in '%s' is no regular file", name,
			       dir->path);
	*ret_size = (uint64_t)st.st_size;
	return 1;
}

static int moved(const struct depot_watch *watch, uint64_t bytes)
{
	return watch && watch->moved ? watch->moved(bytes, watch->ctx) : 0;
}

/* The next `n` bytes to send, in `room` or where they are. */
static int take_bytes(const struct depot_bytes *from, uint64_t at, void *room, size_t n,
		      const void **ret, struct err *err)
{
	ssize_t got;
	int r;

	*ret = room;
	if (from->read) {
		r = from->read(room, n, from->ctx);
		return r < 0 ? err_set(err, r, "a blob broke off: %s", strerror(-r)) : 0;
	}
	if (from->fd < 0) {
		*ret = (const char *)from->data + at;
		return 0;
	}
	got = fdio_pread(from->fd, room, n, (off_t)at);
	if (got < 0)
		return err_set(err, (int)got, "reading a blob: %s", strerror((int)-got));
	return (size_t)got < n ? err_set(err, -EBADMSG, "a blob became shorter while it was sent")
			       : 0;
}

/* Copy to `fd` and check that the bytes have that digest: what is stored is never wrong. */
static int copy_bytes(const struct depot_bytes *from, int fd, const struct digest *blob,
		      const struct depot_watch *watch, struct err *err)
{
	CLEANUP(buf_done) struct buf buf = BUF_INIT;
	void *room = buf_extend(&buf, COPY_SIZE);
	struct digest have;
	struct sha256 sha;
	uint64_t at;

	if (!room)
		return err_nomem(err);
	sha256_begin(&sha);
	for (at = 0; at < from->size;) {
		size_t n = from->size - at < COPY_SIZE ? (size_t)(from->size - at) : COPY_SIZE;
		const void *data;
		int r = take_bytes(from, at, room, n, &data, err);

		if (r < 0)
			return r;
		sha256_add(&sha, data, n);
		r = fdio_write(fd, data, n);
		if (r < 0)
			return err_set(err, r, "writing a blob: %s", strerror(-r));
		at += n;
		r = moved(watch, n);
		if (r < 0)
			return r;
	}
	sha256_end(&sha, have.b);
	return digest_equal(&have, blob)
		   ? 0
		   : err_set(err, -EBADMSG, "a blob changed while it was sent");
}

static int store_blob(struct dir_depot *dir, const char *name, const struct digest *blob,
		      const struct depot_bytes *from, const struct depot_watch *watch,
		      struct err *err)
{
	char temp[sizeof(FDIO_TEMP_PREFIX) + SHA256_HEX_SIZE + 32];
	AUTO_CLOSE int fd = -1;
	uint64_t unique;
	int r = sys_random(&unique, sizeof(unique));

	if (r < 0)
		return err_wrap(err, r, "naming a temporary file");
	/* Not by our number: another container or machine may push the same blob with that. */
	snprintf(temp, sizeof(temp), FDIO_TEMP_PREFIX "%s-%016" PRIx64, name, unique);
	fd = openat(dir->blobs, temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	if (fd < 0)
		return err_sys(err, "making a blob in '%s'", dir->path);
	r = copy_bytes(from, fd, blob, watch, err);
	if (r == 0 && sys_sync_data(fd) < 0)
		r = err_sys(err, "syncing blob %s", name);
	if (r == 0 && renameat(dir->blobs, temp, dir->blobs, name) < 0)
		r = errno == ENOENT
			? err_set(err, -EAGAIN,
				  "a gc removed blob %s while it came: push once more", name)
			: err_sys(err, "naming blob %s", name);
	if (r < 0) {
		unlinkat(dir->blobs, temp, 0);
		return err_wrap(err, r, "'%s'", dir->depot.url);
	}
	return 0;
}

static int dir_put_blob(struct depot *d, const struct digest *blob, const struct depot_bytes *from,
			const struct depot_watch *watch, struct err *err)
{
	struct dir_depot *dir = dir_of(d);
	char name[SHA256_HEX_SIZE];
	uint64_t size;
	int r = make_dir(dir, err);

	if (r == 0)
		r = dir_has_blob(d, blob, &size, err);
	if (r < 0)
		return r;
	if (r == 1 && size == from->size) {
		/* It is needed again: a gc counts its age from now on.  Who may not say so relies on
		 * the look that put_manifest() has at it. */
		utimensat(dir->blobs, blob_name(blob, name), NULL, AT_SYMLINK_NOFOLLOW);
		return moved(watch, size);
	}
	return store_blob(dir, blob_name(blob, name), blob, from, watch, err);
}

static int dir_get_blob(struct depot *d, const struct digest *blob, uint64_t off, uint64_t len,
			depot_sink_fn sink, void *ctx, const struct depot_watch *watch,
			struct err *err)
{
	CLEANUP(buf_done) struct buf buf = BUF_INIT;
	struct dir_depot *dir = dir_of(d);
	char name[SHA256_HEX_SIZE];
	AUTO_CLOSE int fd = -1;
	void *room;
	int r = dir_use(dir, err);

	if (r < 0)
		return r;
	room = buf_extend(&buf, COPY_SIZE);
	if (!room)
		return err_nomem(err);
	fd = openat(dir->blobs, blob_name(blob, name),
		    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? -ENOENT
				       : err_sys(err, "opening blob %s in '%s'", name, dir->path);
	while (len > 0) {
		ssize_t n =
		    fdio_pread(fd, room, len < COPY_SIZE ? (size_t)len : COPY_SIZE, (off_t)off);

		if (n < 0)
			return err_set(err, (int)n, "reading blob %s in '%s': %s", name, dir->path,
				       strerror((int)-n));
		if (n == 0)
			return 0;
		r = sink(room, (size_t)n, ctx);
		if (r == 0)
			r = moved(watch, (uint64_t)n);
		if (r < 0)
			return r;
		off += (uint64_t)n;
		len -= len == DEPOT_TO_END ? 0 : (uint64_t)n;
	}
	return 0;
}

static const struct depot_ops dir_ops = {
	.close = dir_close,
	.has_blob = dir_has_blob,
	.put_blob = dir_put_blob,
	.get_blob = dir_get_blob,
	.put_manifest = dir_put_manifest,
	.get_manifest = dir_get_manifest,
	.list_tags = dir_list_tags,
	.delete_manifest = dir_delete_manifest,
	.collect = dir_collect,
	.probe = dir_probe,
};

int depot_dir_open(const char *url, const struct depot_config *config, struct depot **ret,
		   struct err *err)
{
	const char *path = url + sizeof("dir:") - 1;
	struct dir_depot *dir;

	(void)config; /* nothing of it is about disks */
	if (path[0] != '/')
		return err_set(err, -EINVAL, "'%s' needs an absolute path", url);
	dir = calloc(1, sizeof(*dir));
	if (!dir)
		return err_nomem(err);
	dir->depot.ops = &dir_ops;
	dir->fd = dir->blobs = -1;
	dir->path = strdup(path);
	dir->depot.url = strdup(url);
	if (!dir->path || !dir->depot.url) {
		dir_close(&dir->depot);
		return err_nomem(err);
	}
	*ret = &dir->depot;
	return 0;
}
