#include "image/unpack.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/size.h"
#include "cowfs/store/xattrs.h"
#include "image/acl.h"
#include "image/plain.h"

#define WHITEOUT ".wh."
#define OPAQUE   ".wh..wh..opq"
#define META     ".wh..wh." /* what AUFS kept for itself */

struct unpack {
	const struct libarchive *lib;
	struct archive *archive;
	struct plain *in;
	const struct unpack_options *options;
	struct stream_writer *out;
	uint64_t bytes;
	struct err why; /* of a failed read */
	struct stream_record rec;
	struct acl_xattrs acls; /* of the entry */
};

static void unpack_free(struct unpack *u)
{
	if (!u)
		return;
	if (u->archive)
		u->lib->read_free(u->archive);
	plain_free(u->in);
	free(u);
}
DEFINE_CLEANUP(struct unpack *, unpack_free)

/* --- the library ------------------------------------------------------------------------ */

static ssize_t on_read(struct archive *a, void *ctx, const void **ret)
{
	struct unpack *u = ctx;

	return plain_read(u->in, ret, &u->why);
}

static int begin(struct unpack *u, struct err *err)
{
	const struct libarchive *l = u->lib;

	u->archive = l->read_new();
	if (!u->archive)
		return err_nomem(err);
	if (l->read_support_format_tar(u->archive) != ARCHIVE_OK)
		return err_set(err, -ENOTSUP, "this libarchive was built without tar");
	if (l->read_open2(u->archive, u, NULL, on_read, NULL, NULL) != ARCHIVE_OK)
		return libarchive_failed(u->lib, u->archive, &u->why, err);
	return 0;
}

/* --- one entry -------------------------------------------------------------------------- */

static struct stream_span span(const char *text)
{
	return (struct stream_span){ text, text ? strlen(text) : 0 };
}

static int add_xattr(struct unpack *u, const char *name, const void *value, size_t len,
		     struct err *err)
{
	struct stream_record *rec = &u->rec;

	for (size_t i = 0; i < rec->n_xattrs; i++)
		if (strlen(name) == rec->xattrs[i].name.len &&
		    memcmp(name, rec->xattrs[i].name.at, rec->xattrs[i].name.len) == 0) {
			rec->xattrs[i].value = (struct stream_span){ value, len };
			return 0;
		}
	if (rec->n_xattrs == STREAM_XATTRS_MAX)
		return err_set(err, -EDQUOT, "it has more than %d extended attributes",
			       STREAM_XATTRS_MAX);
	rec->xattrs[rec->n_xattrs++] = (struct stream_xattr){
		.name = span(name),
		.value = { value, len },
	};
	return 0;
}

static int add_xattrs(struct unpack *u, struct archive_entry *e, struct err *err)
{
	const char *name;
	const void *value;
	size_t len;
	int r = acl_of_entry(u->lib, e, &u->acls, err);

	if (r < 0)
		return r;
	u->lib->entry_xattr_reset(e);
	while (r >= 0 && u->lib->entry_xattr_next(e, &name, &value, &len) == ARCHIVE_OK)
		if (name)
			r = add_xattr(u, name, value, len, err);
	for (size_t i = 0; i < ARRAY_LEN(u->acls.list) && r >= 0; i++)
		if (u->acls.list[i].len > 0)
			r = add_xattr(u, acl_names[i], u->acls.list[i].bytes, u->acls.list[i].len,
				      err);
	return r;
}

static int check_owner(struct unpack *u, struct archive_entry *e, struct err *err)
{
	const int64_t uid = u->lib->entry_uid(e), gid = u->lib->entry_gid(e);

	if (uid < 0 || uid >= UINT32_MAX || gid < 0 || gid >= UINT32_MAX)
		return err_set(err, -EINVAL, "its owner %lld:%lld cannot be", (long long)uid,
			       (long long)gid);
	u->rec.uid = (uint32_t)uid;
	u->rec.gid = (uint32_t)gid;
	return 0;
}

static int describe(struct unpack *u, struct archive_entry *e, struct err *err)
{
	const struct libarchive *l = u->lib;
	struct stream_record *rec = &u->rec;
	const uint32_t type = l->entry_filetype(e);
	int r = check_owner(u, e, err);

	if (r < 0)
		return r;
	rec->kind = STREAM_ENTRY;
	rec->mode = type | l->entry_perm(e);
	rec->mtime_s = l->entry_mtime(e);
	rec->mtime_ns = (uint32_t)l->entry_mtime_nsec(e);
	if (S_ISLNK(type))
		rec->target = span(l->entry_symlink(e));
	if (S_ISREG(type))
		rec->size = l->entry_size_is_set(e) ? (uint64_t)l->entry_size(e) : 0;
	if (S_ISCHR(type) || S_ISBLK(type)) {
		rec->major = (uint32_t)l->entry_rdevmajor(e);
		rec->minor = (uint32_t)l->entry_rdevminor(e);
	}
	return add_xattrs(u, e, err);
}

/* --- content ---------------------------------------------------------------------------- */

static int count_bytes(struct unpack *u, uint64_t more, struct err *err)
{
	char most[SIZE_TEXT_MAX];

	if (more > u->options->bytes - u->bytes)
		return err_set(err, -EDQUOT, "its files have more than %s in all",
			       size_format(u->options->bytes, most));
	u->bytes += more;
	return 0;
}

static int copy_block(struct unpack *u, const char *data, size_t len, uint64_t off, struct err *err)
{
	int r = 0;

	while (len > 0 && r >= 0) {
		const size_t n = len < STREAM_DATA_MAX ? len : STREAM_DATA_MAX;

		u->rec.kind = STREAM_DATA;
		u->rec.off = off;
		u->rec.data = (struct stream_span){ data, n };
		r = stream_write(u->out, &u->rec, err);
		data += n;
		off += n;
		len -= n;
	}
	return r;
}

static int copy_content(struct unpack *u, struct err *err)
{
	const void *data;
	size_t len;
	int64_t off;
	int rc, r = 0;

	while ((rc = u->lib->read_data_block(u->archive, &data, &len, &off)) == ARCHIVE_OK) {
		r = copy_block(u, data, len, (uint64_t)off, err);
		if (r < 0)
			return r;
	}
	return rc == ARCHIVE_EOF ? 0 : libarchive_failed(u->lib, u->archive, &u->why, err);
}

/* --- whiteouts -------------------------------------------------------------------------- */

/* 1 if the entry was one. */
static int take_whiteout(struct unpack *u, const char *path, struct err *err)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	const size_t dir = (size_t)(name - path), skip = strlen(WHITEOUT);
	char *gone = NULL;
	int r;

	if (!u->options->whiteouts || strncmp(name, WHITEOUT, skip) != 0)
		return 0;
	if (strcmp(name, OPAQUE) == 0) {
		u->rec.kind = STREAM_OPAQUE;
		u->rec.path = (struct stream_span){ path, dir };
	} else if (strncmp(name, META, strlen(META)) == 0) {
		return 1;
	} else if (name[skip] == '\0') {
		return err_set(err, -EINVAL, "the whiteout '%.100s' names nothing", path);
	} else {
		gone = strdup(path);
		if (!gone)
			return err_nomem(err);
		memmove(gone + dir, gone + dir + skip, strlen(name) - skip + 1);
		u->rec.kind = STREAM_WHITEOUT;
		u->rec.path = span(gone);
	}
	r = stream_write(u->out, &u->rec, err);
	free(gone);
	return r < 0 ? r : 1;
}

/* --- all of it -------------------------------------------------------------------------- */

static int take_entry(struct unpack *u, struct archive_entry *e, struct err *err)
{
	const char *path = u->lib->entry_pathname(e), *link = u->lib->entry_hardlink(e);
	const bool is_file = !link && S_ISREG(u->lib->entry_filetype(e));
	int r;

	if (!path)
		return err_set(err, -EINVAL, "it has an entry whose name cannot be read");
	memset(&u->rec, 0, offsetof(struct stream_record, xattrs));
	u->rec.n_xattrs = 0;
	u->rec.path = span(path);
	r = take_whiteout(u, path, err);
	if (r != 0)
		return r < 0 ? r : 0;
	if (link) {
		u->rec.kind = STREAM_LINK;
		u->rec.target = span(link);
		return stream_write(u->out, &u->rec, err);
	}
	r = describe(u, e, err);
	if (r >= 0 && is_file)
		r = count_bytes(u, u->rec.size, err);
	if (r >= 0)
		r = stream_write(u->out, &u->rec, err);
	if (r < 0)
		return err_wrap(err, r, "its entry '%.100s'", path);
	return is_file ? copy_content(u, err) : 0;
}

static int check_plain(struct unpack *u, struct err *err)
{
	const char *want = u->options->plain;
	char hex[SHA256_HEX_SIZE];
	int r = plain_end(u->in, hex, err);

	if (r < 0 || !want || strcmp(hex, want) == 0)
		return r;
	return err_set(err, -EBADMSG, "a layer unpacks to sha256:%s, and the image says sha256:%s",
		       hex, want);
}

int unpack_archive(const struct libarchive *lib, unpack_read_fn read, void *ctx,
		   const struct unpack_options *options, struct stream_writer *out, struct err *err)
{
	CLEANUP(unpack_free_p) struct unpack *u = calloc(1, sizeof(*u));
	struct archive_entry *e;
	int rc = ARCHIVE_OK, r;

	if (!u)
		return err_nomem(err);
	u->lib = lib;
	u->options = options;
	u->out = out;
	r = plain_new(lib, read, ctx, &u->in, err);
	if (r >= 0)
		r = begin(u, err);
	while (r >= 0 && (rc = lib->read_next_header(u->archive, &e)) == ARCHIVE_OK)
		r = take_entry(u, e, err);
	if (r >= 0 && rc != ARCHIVE_EOF)
		r = libarchive_failed(u->lib, u->archive, &u->why, err);
	return r < 0 ? r : check_plain(u, err);
}
