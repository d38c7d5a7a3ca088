/*
 * A depot in a directory, as the OCI image layout specification has it:
 *
 *   oci-layout            {"imageLayoutVersion":"1.0.0"}
 *   index.json            the manifests, each with its tag as annotation
 *   blobs/sha256/HEX      blobs and manifests
 *   .snapcow-lock         held while index.json is read, changed and replaced
 *
 * A blob is written beside its place, synced and renamed, so a name in blobs/ always has whole bytes.
 * The names themselves are synced once, before a manifest: also those that another push made and we
 * only found.  index.json is replaced in one step and last.  A manifest without a tag is a blob like
 * any other and stands in index.json only while a tag names it.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/fdio.h"
#include "base/hex.h"
#include "base/json.h"
#include "base/path.h"
#include "base/strlist.h"
#include "base/sys.h"
#include "remote/depot.h"

#define INDEX_MAX  ((size_t)16 << 20)
#define COPY_SIZE  ((size_t)256 << 10)
#define TAG_KEY    "org.opencontainers.image.ref.name"
#define INDEX_TYPE "application/vnd.oci.image.index.v1+json"
#define LAYOUT     "{\"imageLayoutVersion\":\"1.0.0\"}\n"

struct dir_depot {
	struct depot depot;
	char *path; /* owned */
	int fd;     /* of the directory; -1 until it is needed */
	int blobs;  /* of blobs/sha256 */
};

static struct dir_depot *dir_of(struct depot *d)
{
	return (struct dir_depot *)d;
}

static void dir_close(struct depot *d)
{
	struct dir_depot *dir = dir_of(d);

	cleanup_close(&dir->blobs);
	cleanup_close(&dir->fd);
	free(dir->path);
	free(d->url);
	free(dir);
}

/* Open the directory; -ENOENT if there is no depot yet. */
static int open_dir(struct dir_depot *dir, struct err *err)
{
	AUTO_CLOSE int fd = -1;

	if (dir->fd >= 0)
		return 0;
	fd = open(dir->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT)
		return -ENOENT;
	if (fd < 0)
		return err_sys(err, "opening '%s'", dir->path);
	dir->blobs = openat(fd, "blobs/sha256", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir->blobs < 0 && errno == ENOENT)
		return -ENOENT;
	if (dir->blobs < 0)
		return err_sys(err, "opening '%s/blobs/sha256'", dir->path);
	dir->fd = TAKE_FD(fd);
	return 0;
}

static int on_other(const char *name, unsigned char type, void *ctx)
{
	static const char *const ours[] = { "oci-layout", "index.json", "blobs", ".snapcow-lock" };

	(void)type;
	for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++)
		if (strcmp(name, ours[i]) == 0)
			return 0;
	*(bool *)ctx = true;
	return 0;
}

/* Is there anything in the directory that a depot does not have? */
static int check_strange(struct dir_depot *dir, struct err *err)
{
	AUTO_CLOSE int fd = open(dir->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	bool other = false;
	int r;

	if (fd < 0)
		return errno == ENOENT ? 0 : err_sys(err, "using '%s' as a remote", dir->path);
	r = sys_each_name(fd, on_other, &other);
	if (r < 0)
		return err_set(err, r, "reading '%s': %s", dir->path, strerror(-r));
	return other ? err_set(err, -EEXIST,
			       "'%s' holds other things: a remote wants a directory of its own",
			       dir->path)
		     : 0;
}

static int lock_dir(struct dir_depot *dir, int *ret, struct err *err)
{
	AUTO_CLOSE int fd =
	    openat(dir->fd, ".snapcow-lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666);

	if (fd < 0)
		return err_sys(err, "opening '%s/.snapcow-lock'", dir->path);
	while (flock(fd, LOCK_EX) < 0) {
		if (errno != EINTR)
			return err_sys(err, "locking '%s'", dir->path);
	}
	*ret = TAKE_FD(fd);
	return 0;
}

/* Several may make it at once. */
static int make_dir(struct dir_depot *dir, struct err *err)
{
	AUTO_FREE char *blobs = path_join(dir->path, "blobs/sha256");
	AUTO_CLOSE int lock = -1;
	struct stat st;
	int r;

	if (!blobs)
		return err_nomem(err);
	r = open_dir(dir, err);
	if (r == -ENOENT) {
		r = check_strange(dir, err);
		if (r == 0)
			r = path_make_dirs(blobs, 0777, err);
		if (r == 0)
			r = open_dir(dir, err);
	}
	if (r < 0 || fstatat(dir->fd, "oci-layout", &st, AT_SYMLINK_NOFOLLOW) == 0)
		return r;
	r = lock_dir(dir, &lock, err);
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
	int r;

	r = open_dir(dir, err);
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

/* Copy to `fd` and check that the bytes have that digest: what is stored is never wrong. */
static int copy_bytes(const struct depot_bytes *from, int fd, const struct digest *blob,
		      const struct depot_watch *watch, struct err *err)
{
	CLEANUP(buf_done) struct buf buf = BUF_INIT;
	void *room = from->fd >= 0 ? buf_extend(&buf, COPY_SIZE) : NULL;
	struct digest have;
	struct sha256 sha;
	uint64_t at;
	int r;

	if (from->fd >= 0 && !room)
		return err_nomem(err);
	sha256_begin(&sha);
	for (at = 0; at < from->size;) {
		size_t n = from->size - at < COPY_SIZE ? (size_t)(from->size - at) : COPY_SIZE;
		const void *data = from->fd >= 0 ? room : (const char *)from->data + at;
		ssize_t got = (ssize_t)n;

		if (from->fd >= 0)
			got = fdio_pread(from->fd, room, n, (off_t)at);
		if (got < 0)
			return err_set(err, (int)got, "reading a blob: %s", strerror((int)-got));
		if ((size_t)got < n)
			return err_set(err, -EBADMSG, "a blob became shorter while it was sent");
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
		r = err_sys(err, "naming blob %s", name);
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
	int r;

	r = make_dir(dir, err);
	if (r == 0)
		r = dir_has_blob(d, blob, &size, err);
	if (r < 0)
		return r;
	if (r == 1 && size == from->size)
		return moved(watch, size);
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
	int r;

	r = open_dir(dir, err);
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

/* --- index.json --------------------------------------------------------------------------- */

static const char *tag_of(struct json entry)
{
	struct json notes;

	if (json_kind(entry, "annotations") != JSON_OBJECT)
		return NULL;
	notes = json_get_object(entry, "annotations");
	return json_text_if(notes, TAG_KEY);
}

/* Parse index.json; an index with no manifests if there is none yet. */
static int load_index(struct dir_depot *dir, struct json_doc *doc, struct json *ret,
		      struct err *err)
{
	static const char none[] = "{\"schemaVersion\":2,\"manifests\":[]}";
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	struct json index;
	int r;

	r = fdio_read_file(dir->fd, "index.json", INDEX_MAX, &text, err);
	if (r == -ENOENT)
		r = buf_append(&text, none, sizeof(none) - 1);
	if (r < 0)
		return err_wrap(err, r, "'%s'", dir->depot.url);
	r = json_parse(doc, (const char *)text.data, text.len, &index, err);
	if (r == 0 && json_kind(index, "manifests") != JSON_ARRAY)
		r = err_set(err, -EINVAL, "there is no list of manifests");
	if (r < 0)
		return err_wrap(err, r == -EINVAL ? -EBADMSG : r, "'%s/index.json'", dir->path);
	*ret = json_get_array(index, "manifests");
	return 0;
}

/* What a tag names now; -ENOENT. */
static int find_tag(struct json manifests, const char *tag, struct digest *ret)
{
	size_t i;

	for (i = 0; i < json_length(manifests); i++) {
		struct json entry = json_at_object(manifests, i);
		const char *name = tag_of(entry), *digest = json_text_if(entry, "digest");

		if (name && strcmp(name, tag) == 0)
			return digest && digest_parse(digest, ret) == 0 ? 0 : -EBADMSG;
	}
	return -ENOENT;
}

struct entry_change {
	const char *drop_tag;             /* NULL: none */
	const struct digest *drop_digest; /* NULL: none */
	const char *add_tag;              /* NULL: none */
	const struct digest *add_digest;
	const char *media_type;
	size_t size;
};

static bool is_dropped(struct json entry, const struct entry_change *c)
{
	const char *tag = tag_of(entry), *digest = json_text_if(entry, "digest");
	struct digest d;

	if (c->drop_tag && tag && strcmp(tag, c->drop_tag) == 0)
		return true;
	return c->drop_digest && digest && digest_parse(digest, &d) == 0 &&
	       digest_equal(&d, c->drop_digest);
}

/* Write index.json anew: all that is there but what is dropped, and one more.  How many were dropped. */
static int change_index(struct dir_depot *dir, struct json manifests, const struct entry_change *c,
			struct err *err)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	struct json index = json_begin(&doc), list, entry;
	char digest[DIGEST_TEXT_SIZE];
	int r, dropped = 0;
	size_t i;

	json_set_int(index, "schemaVersion", 2);
	json_set_text(index, "mediaType", INDEX_TYPE);
	list = json_set_array(index, "manifests");
	for (i = 0; i < json_length(manifests); i++) {
		struct json old = json_at_object(manifests, i);

		if (is_dropped(old, c)) {
			dropped++;
			continue;
		}
		entry = json_add_object(list);
		json_set_value(entry, "mediaType", old, "mediaType");
		json_set_value(entry, "digest", old, "digest");
		json_set_value(entry, "size", old, "size");
		json_set_value(entry, "platform", old, "platform");
		json_set_value(entry, "artifactType", old, "artifactType");
		json_set_value(entry, "annotations", old, "annotations");
	}
	if (c->add_tag) {
		entry = json_add_object(list);
		json_set_text(entry, "mediaType", c->media_type);
		json_set_text(entry, "digest", digest_text(c->add_digest, digest));
		json_set_uint(entry, "size", c->size);
		json_set_text(json_set_object(entry, "annotations"), TAG_KEY, c->add_tag);
	}
	r = json_append(&doc, &text, err);
	if (r == 0)
		r = fdio_replace_file(dir->fd, "index.json", text.data, text.len, 0666, err);
	return r < 0 ? err_wrap(err, r, "'%s'", dir->depot.url) : dropped;
}

static int check_expected(struct dir_depot *dir, struct json manifests, const char *tag,
			  const struct digest *expect, struct err *err)
{
	static const struct digest none;
	struct digest now = none;
	int r;

	if (!expect)
		return 0;
	r = find_tag(manifests, tag, &now);
	if (r < 0 && r != -ENOENT)
		return err_set(err, r, "'%s/index.json' names no digest for '%s'", dir->path, tag);
	if (digest_equal(&now, expect))
		return 0;
	return err_set(err, -ESTALE, "'%s' of '%s' was moved by somebody else meanwhile", tag,
		       dir->depot.url);
}

static int dir_put_manifest(struct depot *d, const char *tag, const struct digest *expect,
			    const char *media_type, const void *bytes, size_t len, struct err *err)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	struct dir_depot *dir = dir_of(d);
	struct entry_change c = { .drop_tag = tag, .add_tag = tag, .media_type = media_type };
	AUTO_CLOSE int lock = -1;
	struct json manifests;
	struct digest digest;
	int r;

	r = depot_put(d, bytes, len, &digest, err);
	if (r < 0)
		return r;
	if (fsync(dir->blobs) < 0)
		return err_sys(err, "syncing '%s/blobs/sha256'", dir->path);
	if (!tag)
		return 0;
	c.add_digest = &digest;
	c.size = len;
	r = lock_dir(dir, &lock, err);
	if (r == 0)
		r = load_index(dir, &doc, &manifests, err);
	if (r == 0)
		r = check_expected(dir, manifests, tag, expect, err);
	if (r == 0)
		r = change_index(dir, manifests, &c, err);
	return r < 0 ? r : 0;
}

static int dir_get_manifest(struct depot *d, const char *reference, struct buf *out,
			    struct err *err)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	struct dir_depot *dir = dir_of(d);
	struct json manifests;
	struct digest digest;
	int r;

	r = open_dir(dir, err);
	if (r < 0)
		return r;
	if (digest_parse(reference, &digest) < 0) {
		r = load_index(dir, &doc, &manifests, err);
		if (r == 0)
			r = find_tag(manifests, reference, &digest);
		if (r < 0)
			return r;
		r = depot_get(d, &digest, DEPOT_MANIFEST_MAX, out, NULL, err);
		if (r == -ENOENT)
			return err_set(err, -EBADMSG, "'%s' lacks the manifest that '%s' names",
				       d->url, reference);
		return r;
	}
	return depot_get(d, &digest, DEPOT_MANIFEST_MAX, out, NULL, err);
}

static int dir_list_tags(struct depot *d, depot_tag_fn fn, void *ctx, struct err *err)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	struct dir_depot *dir = dir_of(d);
	struct json manifests;
	size_t i;
	int r;

	r = open_dir(dir, err);
	if (r == -ENOENT)
		return 0;
	if (r == 0)
		r = load_index(dir, &doc, &manifests, err);
	for (i = 0; r == 0 && i < json_length(manifests); i++) {
		const char *tag = tag_of(json_at_object(manifests, i));

		if (tag)
			r = fn(tag, ctx);
	}
	return r;
}

static int dir_delete_manifest(struct depot *d, const char *reference, struct err *err)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	struct dir_depot *dir = dir_of(d);
	struct entry_change c = { 0 };
	AUTO_CLOSE int lock = -1;
	struct json manifests;
	struct digest digest;
	int r;

	if (digest_parse(reference, &digest) == 0)
		c.drop_digest = &digest;
	else
		c.drop_tag = reference;
	r = open_dir(dir, err);
	if (r == 0)
		r = lock_dir(dir, &lock, err);
	if (r == 0)
		r = load_index(dir, &doc, &manifests, err);
	if (r == 0)
		r = change_index(dir, manifests, &c, err);
	if (r < 0)
		return r;
	return r == 0 ? -ENOENT : 0;
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
