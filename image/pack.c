#include "image/pack.h"

#include <errno.h>
#include <locale.h>
#if __has_include(<xlocale.h>)
#include <xlocale.h>
#endif
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#if __has_include(<sys/sysmacros.h>)
#include <sys/sysmacros.h>
#endif

#include "base/path.h"
#include "base/utf8.h"
#include "cowfs/store/xattrs.h"
#include "image/pack-i.h"

#define BLOCK_SIZE ((size_t)256 << 10)

/* A file with several names, and the one under which it was written. */
struct pack_link {
	uint64_t ino;
	char path[];
};

static uint64_t hash_ino(const void *key)
{
	return *(const uint64_t *)key * 0x9e3779b97f4a7c15u;
}

static bool same_ino(const void *a, const void *b)
{
	return *(const uint64_t *)a == *(const uint64_t *)b;
}

static void pack_free(struct pack *p)
{
	struct pack_link *l;
	size_t pos = 0;

	if (!p)
		return;
	while ((l = map_next(&p->linked, &pos)))
		free(l);
	map_done(&p->linked);
	if (p->entry)
		p->lib.entry_free(p->entry);
	/* The tar first: what it still holds goes through the packer. */
	if (p->archive)
		p->lib.write_free(p->archive);
	if (p->packer)
		p->lib.write_free(p->packer);
	buf_done(&p->xattrs);
	buf_done(&p->block);
	free(p);
}
DEFINE_CLEANUP(struct pack *, pack_free)

static int failed(const struct pack *p, struct err *err)
{
	const char *text = p->lib.error_string(p->archive);

	if (p->why.code < 0) {
		*err = p->why;
		return p->why.code;
	}
	return err_set(err, -EIO, "writing the archive: %s", text ? text : "not known why");
}

static bool is_utf8(const char *s)
{
	const size_t len = s ? strlen(s) : 0;
	size_t at = 0, n = 1;

	for (; at < len && n > 0; at += n)
		n = utf8_valid(s + at, len - at);
	return n > 0;
}

/*
 * A name that is no UTF-8 is written as it is, and the archive says so ("hdrcharset"); libarchive
 * warns of that.
 */
static int write_header(struct pack *p, struct err *err)
{
	const int rc = p->lib.write_header(p->archive, p->entry);

	if (rc == ARCHIVE_OK)
		return 0;
	if (rc == ARCHIVE_WARN &&
	    (!is_utf8(p->lib.entry_pathname(p->entry)) ||
	     !is_utf8(p->lib.entry_symlink(p->entry)) || !is_utf8(p->lib.entry_hardlink(p->entry))))
		return 0;
	return failed(p, err);
}

/* --- content ---------------------------------------------------------------------------- */

static int write_block(struct pack *p, const void *data, size_t len, struct err *err)
{
	return p->lib.write_data(p->archive, data, len) == (la_ssize_t)len ? 0 : failed(p, err);
}

/* From `off` up to `end`, which lies in data. */
static int write_range(struct pack *p, struct content_reader *rd, uint64_t off, uint64_t end,
		       struct err *err)
{
	int r = 0;

	while (off < end && r >= 0) {
		const size_t n = end - off < BLOCK_SIZE ? (size_t)(end - off) : BLOCK_SIZE;
		const ssize_t got = content_reader_read(rd, off, p->block.data, n, err);

		if (got < 0)
			return (int)got;
		if ((size_t)got != n)
			return err_set(err, -EBADMSG, "it is shorter than it should be");
		r = write_block(p, p->block.data, n, err);
		off += n;
		p->done.bytes += n;
		if (r >= 0 && p->options->report)
			r = p->options->report(p->done.entries, p->done.bytes, p->options->ctx,
					       err);
	}
	return r;
}

/* Visit the data of a file, range by range. */
typedef int (*range_fn)(struct pack *p, struct content_reader *rd, uint64_t off, uint64_t end,
			struct err *err);

static int each_range(struct pack *p, struct content_reader *rd, uint64_t size, range_fn fn,
		      struct err *err)
{
	uint64_t off = 0, end;
	int r;

	while (off < size) {
		r = content_reader_seek_data(rd, off, &off, err);
		if (r == -ENXIO)
			return 0;
		if (r < 0)
			return r;
		r = content_reader_seek_hole(rd, off, &end, err);
		if (r < 0)
			return r;
		r = fn(p, rd, off, end, err);
		if (r < 0)
			return r;
		off = end;
	}
	return 0;
}

static int note_range(struct pack *p, struct content_reader *rd, uint64_t off, uint64_t end,
		      struct err *err)
{
	(void)rd;
	(void)err;
	p->lib.entry_sparse_add_entry(p->entry, (la_int64_t)off, (la_int64_t)(end - off));
	return 0;
}

/* libarchive wants all bytes of a sparse file, and leaves out the holes that the header names. */
static int skip_to(struct pack *p, uint64_t from, uint64_t to, struct err *err)
{
	int r = 0;

	memset(p->block.data, 0, BLOCK_SIZE);
	while (from < to && r >= 0) {
		const size_t n = to - from < BLOCK_SIZE ? (size_t)(to - from) : BLOCK_SIZE;

		r = write_block(p, p->block.data, n, err);
		from += n;
	}
	return r;
}

static int write_sparse(struct pack *p, struct content_reader *rd, uint64_t size, struct err *err)
{
	uint64_t at = 0, off = 0, end;
	int r = 0;

	while (off < size && r >= 0) {
		r = content_reader_seek_data(rd, off, &off, err);
		if (r == -ENXIO)
			break;
		if (r < 0)
			return r;
		r = content_reader_seek_hole(rd, off, &end, err);
		if (r < 0)
			return r;
		r = skip_to(p, at, off, err);
		if (r < 0)
			return r;
		r = write_range(p, rd, off, end, err);
		if (r < 0)
			return r;
		at = off = end;
	}
	return skip_to(p, at, size, err);
}

static int write_content(struct pack *p, const struct tree_entry *e, struct err *err)
{
	CLEANUP(content_reader_free_p) struct content_reader *rd = NULL;
	const struct content c = tree_entry_content(e);
	const bool sparse = c.data < c.size;
	int r = content_reader_new(p->store, &c, &rd, err);

	if (r < 0)
		return r;
	p->lib.entry_set_size(p->entry, (la_int64_t)c.size);
	if (sparse)
		r = each_range(p, rd, c.size, note_range, err);
	if (r < 0)
		return r;
	if (sparse && c.data == 0)
		p->lib.entry_sparse_add_entry(p->entry, (la_int64_t)c.size, 0);
	if (r < 0)
		return r;
	r = write_header(p, err);
	if (r < 0)
		return r;
	return sparse ? write_sparse(p, rd, c.size, err) : write_range(p, rd, 0, c.size, err);
}

/* --- entries ---------------------------------------------------------------------------- */

static int set_xattrs(struct pack *p, const struct tree_entry *e, struct err *err)
{
	struct xattr x;
	size_t pos = 0;
	int r = xattrs_get(p->store, &e->xattrs, &p->xattrs, err);

	while (r >= 0 && xattrs_next(&p->xattrs, &pos, &x)) {
		AUTO_FREE char *name = strndup(x.name, x.name_len);

		if (!name)
			return err_nomem(err);
		p->lib.entry_xattr_add_entry(p->entry, name, x.value, x.value_len);
	}
	return r;
}

static int describe(struct pack *p, const char *path, const struct tree_entry *e, struct err *err)
{
	const struct libarchive *l = &p->lib;
	AUTO_FREE char *target = S_ISLNK(e->mode) ? strndup(e->target, e->target_len) : NULL;

	if (S_ISLNK(e->mode) && !target)
		return err_nomem(err);
	l->entry_clear(p->entry);
	l->entry_copy_pathname(p->entry, path);
	l->entry_set_filetype(p->entry, e->mode & S_IFMT);
	l->entry_set_perm(p->entry, e->mode & 07777);
	l->entry_set_uid(p->entry, e->uid);
	l->entry_set_gid(p->entry, e->gid);
	l->entry_set_mtime(p->entry, e->mtime_s, (long)e->mtime_ns);
	l->entry_set_size(p->entry, 0);
	if (target)
		l->entry_copy_symlink(p->entry, target);
	if (S_ISCHR(e->mode) || S_ISBLK(e->mode)) {
		l->entry_set_rdevmajor(p->entry, major(e->rdev));
		l->entry_set_rdevminor(p->entry, minor(e->rdev));
	}
	return object_id_is_zero(&e->xattrs) ? 0 : set_xattrs(p, e, err);
}

/* 1 if the file was written under another name, and this one is now a link to it. */
static int write_link(struct pack *p, const char *path, uint64_t ino, struct err *err)
{
	struct pack_link *l = map_get(&p->linked, &ino);
	void *other;
	int r;

	if (l) {
		p->lib.entry_copy_hardlink(p->entry, l->path);
		p->lib.entry_unset_size(p->entry);
		r = write_header(p, err);
		return r < 0 ? r : 1;
	}
	l = malloc(sizeof(*l) + strlen(path) + 1);
	if (!l)
		return err_nomem(err);
	l->ino = ino;
	memcpy(l->path, path, strlen(path) + 1);
	if (map_add(&p->linked, &l->ino, l, &other) < 0) {
		free(l);
		return err_nomem(err);
	}
	return 0;
}

static int check_name(const struct pack *p, const char *path, struct err *err)
{
	if (p->options->layer &&
	    strncmp(path_base(path), PACK_WHITEOUT, strlen(PACK_WHITEOUT)) == 0)
		return err_set(err, -EINVAL,
			       "'%s' would be taken for a whiteout: an OCI layer cannot hold that "
			       "name; --tar can",
			       path);
	return 0;
}

int pack_entry(struct pack *p, const char *path, const struct tree_entry *e, bool linked,
	       struct err *err)
{
	AUTO_FREE char *shown = NULL;
	int r = check_name(p, path, err);

	if (r < 0)
		return r;
	if (S_ISSOCK(e->mode)) {
		p->done.sockets++;
		return 0;
	}
	/* With a slash behind it, a directory is one for every reader. */
	if (asprintf(&shown, "%s%s", *path ? path : ".", S_ISDIR(e->mode) ? "/" : "") < 0) {
		shown = NULL;
		return err_nomem(err);
	}
	p->done.entries++;
	r = describe(p, shown, e, err);
	if (r >= 0 && linked)
		r = write_link(p, path, e->ino, err);
	if (r == 0 && S_ISREG(e->mode))
		r = write_content(p, e, err);
	else if (r == 0)
		r = write_header(p, err);
	if (r >= 0 && p->options->report)
		r = p->options->report(p->done.entries, p->done.bytes, p->options->ctx, err);
	return r < 0 ? err_wrap(err, r, "'%s'", *path ? path : "/") : 0;
}

int pack_whiteout(struct pack *p, const char *path, struct err *err)
{
	const char *name = path_base(path);
	AUTO_FREE char *gone = NULL;

	if (asprintf(&gone, "%.*s" PACK_WHITEOUT "%s", (int)(name - path), path, name) < 0) {
		gone = NULL;
		return err_nomem(err);
	}
	p->done.whiteouts++;
	p->lib.entry_clear(p->entry);
	p->lib.entry_copy_pathname(p->entry, gone);
	p->lib.entry_set_filetype(p->entry, S_IFREG);
	p->lib.entry_set_perm(p->entry, 0644);
	p->lib.entry_set_uid(p->entry, 0);
	p->lib.entry_set_gid(p->entry, 0);
	p->lib.entry_set_mtime(p->entry, 0, 0);
	p->lib.entry_set_size(p->entry, 0);
	return write_header(p, err);
}

/* --- the archive ------------------------------------------------------------------------ */

static la_ssize_t on_packed(struct archive *a, void *ctx, const void *data, size_t len)
{
	struct pack *p = ctx;

	(void)a;
	return p->options->write(data, len, p->options->ctx, &p->why) < 0 ? -1 : (la_ssize_t)len;
}

/* Bytes of the tar: summed up, and then packed or given as they are. */
static la_ssize_t on_tar(struct archive *a, void *ctx, const void *data, size_t len)
{
	struct pack *p = ctx;

	sha256_add(&p->sum, data, len);
	if (p->packer)
		return p->lib.write_data(p->packer, data, len);
	return on_packed(a, ctx, data, len);
}

/* No time and no name in the head of gzip; one thread: their number shows in what zstd makes. */
static int open_packer(struct pack *p, struct err *err)
{
	const struct libarchive *l = &p->lib;
	const bool gzip = p->options->filter == PACK_GZIP;

	p->packer = l->write_new();
	if (!p->packer)
		return err_nomem(err);
	if (l->write_set_format_raw(p->packer) != ARCHIVE_OK ||
	    (gzip ? l->write_add_filter_gzip : l->write_add_filter_zstd)(p->packer) != ARCHIVE_OK ||
	    l->write_set_options(p->packer, gzip ? "gzip:!timestamp,gzip:compression-level=6"
						 : "zstd:compression-level=3") != ARCHIVE_OK ||
	    l->write_set_bytes_in_last_block(p->packer, 1) != ARCHIVE_OK ||
	    l->write_open2(p->packer, p, NULL, on_packed, NULL, NULL) != ARCHIVE_OK)
		return err_set(err, -EIO, "packing the archive: %s", l->error_string(p->packer));
	l->entry_clear(p->entry);
	l->entry_copy_pathname(p->entry, "tar");
	l->entry_set_filetype(p->entry, S_IFREG);
	if (l->write_header(p->packer, p->entry) != ARCHIVE_OK)
		return err_set(err, -EIO, "packing the archive: %s", l->error_string(p->packer));
	return 0;
}

/* Attributes in the one spelling that every reader knows. */
static int begin(struct pack *p, struct err *err)
{
	const struct libarchive *l = &p->lib;
	int r;

	sha256_begin(&p->sum);
	p->archive = l->write_new();
	p->entry = l->entry_new();
	if (!p->archive || !p->entry || !buf_extend(&p->block, BLOCK_SIZE))
		return err_nomem(err);
	r = p->options->filter != PACK_PLAIN ? open_packer(p, err) : 0;
	if (r < 0)
		return r;
	if (l->write_set_format_pax(p->archive) != ARCHIVE_OK ||
	    l->write_set_options(p->archive, "pax:xattrheader=SCHILY") != ARCHIVE_OK ||
	    l->write_set_bytes_in_last_block(p->archive, 1) != ARCHIVE_OK ||
	    l->write_open2(p->archive, p, NULL, on_tar, NULL, NULL) != ARCHIVE_OK)
		return failed(p, err);
	return 0;
}

static int end(struct pack *p, struct err *err)
{
	if (p->lib.write_close(p->archive) != ARCHIVE_OK)
		return failed(p, err);
	if (p->packer && p->lib.write_close(p->packer) != ARCHIVE_OK)
		return failed(p, err);
	sha256_end(&p->sum, p->done.sha256);
	return 0;
}

static int pack_into(struct pack *p, const struct object_id *root, struct err *err)
{
	int r = begin(p, err);

	if (r < 0)
		return r;
	r = p->options->base ? pack_changes(p, p->options->base, root, err) : pack_all(p, err);
	if (r < 0)
		return r;
	return end(p, err);
}

int pack_root(struct store *s, const struct object_id *root, const struct pack_options *options,
	      struct packed *ret, struct err *err)
{
	CLEANUP(pack_free_p) struct pack *p = calloc(1, sizeof(*p));
	/* Names are bytes to us: in this locale libarchive does not translate them. */
	locale_t utf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0), before;
	int r;

	if (!p || utf8 == (locale_t)0) {
		if (utf8 != (locale_t)0)
			freelocale(utf8);
		return p ? err_set(err, -ENOTSUP, "this system has no locale 'C.UTF-8'")
			 : err_nomem(err);
	}
	p->store = s;
	p->options = options;
	p->linked = MAP_INIT(hash_ino, same_ino);
	before = uselocale(utf8);
	r = libarchive_load(&p->lib, err);
	if (r >= 0)
		r = root_get(s, root, &p->root, err);
	if (r >= 0)
		r = pack_into(p, root, err);
	uselocale(before);
	freelocale(utf8);
	if (r < 0)
		return r;
	*ret = p->done;
	return 0;
}
