#include "image/plain.h"

#include <errno.h>
#include <stdlib.h>

#include "image/gunzip.h"

struct plain {
	const struct libarchive *lib;
	struct archive
	    *archive; /* as libarchive has a stream that is no archive: one entry without a name */
	struct gunzip *in;
	struct sha256 sum;
	struct err why; /* of a failed read */
	bool begun, ended;
};

/* What may stand behind the end of an archive: tar fills up its last record, of 10 KiB by default. */
#define TAIL_MAX ((size_t)16 << 20)

void plain_free(struct plain *p)
{
	if (!p)
		return;
	if (p->archive)
		p->lib->read_free(p->archive);
	gunzip_free(p->in);
	free(p);
}

static ssize_t on_read(struct archive *a, void *ctx, const void **ret)
{
	struct plain *p = ctx;

	return gunzip_read(p->in, ret, &p->why);
}

int plain_new(const struct libarchive *lib, unpack_read_fn read, void *ctx, struct plain **ret,
	      struct err *err)
{
	CLEANUP(plain_free_p) struct plain *p = calloc(1, sizeof(*p));
	int r;

	if (!p)
		return err_nomem(err);
	p->lib = lib;
	sha256_begin(&p->sum);
	r = gunzip_new(read, ctx, &p->in, err);
	if (r < 0)
		return r;
	p->archive = lib->read_new();
	if (!p->archive)
		return err_nomem(err);
	if (lib->read_support_format_raw(p->archive) != ARCHIVE_OK ||
	    lib->read_support_format_empty(p->archive) != ARCHIVE_OK ||
	    lib->read_support_filter_xz(p->archive) != ARCHIVE_OK ||
	    lib->read_support_filter_zstd(p->archive) != ARCHIVE_OK)
		return err_set(err, -ENOTSUP, "this libarchive was built without xz or zstd");
	if (lib->read_open2(p->archive, p, NULL, on_read, NULL, NULL) != ARCHIVE_OK)
		return libarchive_failed(p->lib, p->archive, &p->why, err);
	*ret = TAKE_PTR(p);
	return 0;
}

/* 1 where there are bytes. */
static int begin(struct plain *p, struct err *err)
{
	struct archive_entry *e;
	int rc;

	if (p->begun)
		return !p->ended;
	p->begun = true;
	rc = p->lib->read_next_header(p->archive, &e);
	p->ended = rc == ARCHIVE_EOF;
	return rc == ARCHIVE_OK    ? 1
	       : rc == ARCHIVE_EOF ? 0
				   : libarchive_failed(p->lib, p->archive, &p->why, err);
}

ssize_t plain_read(void *ctx, const void **ret, struct err *err)
{
	struct plain *p = ctx;
	int rc = ARCHIVE_OK, r;
	size_t len = 0;
	la_int64_t off;

	r = begin(p, err);
	if (r <= 0)
		return r;
	while (len == 0 && rc == ARCHIVE_OK)
		rc = p->lib->read_data_block(p->archive, ret, &len, &off);
	if (rc == ARCHIVE_EOF) {
		p->ended = true;
		return 0;
	}
	if (rc != ARCHIVE_OK)
		return libarchive_failed(p->lib, p->archive, &p->why, err);
	sha256_add(&p->sum, *ret, len);
	return (ssize_t)len;
}

int plain_end(struct plain *p, char hex[static SHA256_HEX_SIZE], struct err *err)
{
	const void *rest;
	size_t tail = 0;
	ssize_t n;

	while ((n = plain_read(p, &rest, err)) > 0) {
		tail += (size_t)n;
		if (tail > TAIL_MAX)
			return err_set(err, -EINVAL,
				       "more than %zu MiB follow the end of the archive, which no "
				       "tar writes: it is made to keep its reader busy",
				       TAIL_MAX >> 20);
	}
	if (n < 0)
		return (int)n;
	sha256_end_hex(&p->sum, hex);
	return 0;
}
