#include "image/pack.h"

#include <errno.h>
#include <locale.h>
#if __has_include(<xlocale.h>)
#include <xlocale.h>
#endif
#include <stdlib.h>

#include "image/pack-i.h"

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

/* --- the archive ------------------------------------------------------------------------ */

static la_ssize_t on_packed(struct archive *a, void *ctx, const void *data, size_t len)
{
	struct pack *p = ctx;

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
	if (!p->archive || !p->entry || !buf_extend(&p->block, PACK_BLOCK_SIZE))
		return err_nomem(err);
	r = p->options->filter != PACK_PLAIN ? open_packer(p, err) : 0;
	if (r < 0)
		return r;
	if (l->write_set_format_pax(p->archive) != ARCHIVE_OK ||
	    l->write_set_options(p->archive, "pax:xattrheader=SCHILY") != ARCHIVE_OK ||
	    l->write_set_bytes_in_last_block(p->archive, 1) != ARCHIVE_OK ||
	    l->write_open2(p->archive, p, NULL, on_tar, NULL, NULL) != ARCHIVE_OK)
		return pack_failed(p, err);
	return 0;
}

static int end(struct pack *p, struct err *err)
{
	if (p->lib.write_close(p->archive) != ARCHIVE_OK)
		return pack_failed(p, err);
	if (p->packer && p->lib.write_close(p->packer) != ARCHIVE_OK)
		return pack_failed(p, err);
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
	p->linked = MAP_INIT(map_hash_u64, map_equal_u64);
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
