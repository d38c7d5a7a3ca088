/*
 * One name in an archive, with its attributes and its content.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#if __has_include(<sys/sysmacros.h>)
#include <sys/sysmacros.h>
#endif

#include "base/path.h"
#include "base/text.h"
#include "base/utf8.h"
#include "cowfs/store/xattrs.h"
#include "image/pack-i.h"

int pack_failed(const struct pack *p, struct err *err)
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
	return pack_failed(p, err);
}

/* --- content ---------------------------------------------------------------------------- */

static int write_block(struct pack *p, const void *data, size_t len, struct err *err)
{
	return p->lib.write_data(p->archive, data, len) == (la_ssize_t)len ? 0
									   : pack_failed(p, err);
}

/* From `off` up to `end`, which lies in data. */
static int write_range(struct pack *p, struct content_reader *rd, uint64_t off, uint64_t end,
		       struct err *err)
{
	int r = 0;

	while (off < end && r >= 0) {
		const size_t n =
		    end - off < PACK_BLOCK_SIZE ? (size_t)(end - off) : PACK_BLOCK_SIZE;
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
	p->lib.entry_sparse_add_entry(p->entry, (la_int64_t)off, (la_int64_t)(end - off));
	return 0;
}

/* libarchive wants all bytes of a sparse file, and leaves out the holes that the header names. */
static int skip_to(struct pack *p, uint64_t from, uint64_t to, struct err *err)
{
	int r = 0;

	memset(p->block.data, 0, PACK_BLOCK_SIZE);
	while (from < to && r >= 0) {
		const size_t n =
		    to - from < PACK_BLOCK_SIZE ? (size_t)(to - from) : PACK_BLOCK_SIZE;

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
	shown = text_format("%s%s", *path ? path : ".", S_ISDIR(e->mode) ? "/" : "");
	if (!shown)
		return err_nomem(err);
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
	AUTO_FREE char *gone =
	    text_format("%.*s" PACK_WHITEOUT "%s", (int)(name - path), path, name);

	if (!gone)
		return err_nomem(err);
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
