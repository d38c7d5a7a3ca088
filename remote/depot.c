/*
 * Shared by all back ends: the check of everything that arrives.
 */
#include "remote/depot.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/fdio.h"

#define READ_SIZE ((size_t)256 << 10)

bool depot_tag_valid(const char *tag)
{
	static const char first[] =
	    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
	size_t len = strlen(tag), i;

	if (len == 0 || len > DEPOT_TAG_MAX || !strchr(first, tag[0]))
		return false;
	for (i = 1; i < len; i++) {
		if (!strchr(first, tag[i]) && tag[i] != '.' && tag[i] != '-')
			return false;
	}
	return true;
}

void depot_close(struct depot *d)
{
	if (!d)
		return;
	d->ops->close(d);
}

static int check_digest(struct depot *d, struct sha256 *sha, const struct digest *want,
			struct err *err)
{
	char text[DIGEST_TEXT_SIZE];
	struct digest have;

	sha256_end(sha, have.b);
	if (digest_equal(&have, want))
		return 0;
	return err_set(err, -EBADMSG, "'%s' gave wrong bytes for blob %s", d->url,
		       digest_text(want, text));
}

struct into_buf {
	struct buf *out;
	size_t max;
};

static int take_buf(const void *data, size_t len, void *ctx)
{
	struct into_buf *into = ctx;

	if (len > into->max - into->out->len)
		return -EFBIG;
	return buf_append(into->out, data, len);
}

int depot_get(struct depot *d, const struct digest *blob, size_t max, struct buf *out,
	      const struct depot_watch *watch, struct err *err)
{
	CLEANUP(buf_done) struct buf bytes = BUF_INIT;
	struct into_buf into = { .out = &bytes, .max = max };
	char text[DIGEST_TEXT_SIZE];
	struct sha256 sha;
	int r;

	if (d->cache && d->cache->get(d->cache->ctx, blob, max, &bytes) > 0) {
		buf_swap(out, &bytes);
		return 0;
	}
	r = d->ops->get_blob(d, blob, 0, DEPOT_TO_END, take_buf, &into, watch, err);
	if (r == -EFBIG)
		return err_set(err, r, "blob %s of '%s' has more than %zu bytes",
			       digest_text(blob, text), d->url, max);
	if (r < 0)
		return r;
	sha256_begin(&sha);
	sha256_add(&sha, bytes.data, bytes.len);
	r = check_digest(d, &sha, blob, err);
	if (r < 0)
		return r;
	if (d->cache)
		d->cache->put(d->cache->ctx, blob, bytes.data, bytes.len);
	buf_swap(out, &bytes);
	return 0;
}

struct into_file {
	int fd;
	uint64_t at, size;
	struct sha256 sha;
};

static int take_file(const void *data, size_t len, void *ctx)
{
	struct into_file *into = ctx;
	int r;

	if (len > into->size - into->at)
		return -EFBIG;
	r = fdio_pwrite(into->fd, data, len, (off_t)into->at);
	if (r < 0)
		return r;
	sha256_add(&into->sha, data, len);
	into->at += len;
	return 0;
}

/* Digest what an earlier attempt left, up to `size` bytes. */
static int read_beginning(struct into_file *into, struct err *err)
{
	CLEANUP(buf_done) struct buf buf = BUF_INIT;
	void *data = buf_extend(&buf, READ_SIZE);
	ssize_t n;

	if (!data)
		return err_nomem(err);
	for (;;) {
		n = fdio_pread(into->fd, data, READ_SIZE, (off_t)into->at);
		if (n < 0)
			return err_set(err, (int)n, "reading a blob that came partly: %s",
				       strerror((int)-n));
		if (n == 0)
			return 0;
		if ((uint64_t)n > into->size - into->at)
			return -EBADMSG;
		sha256_add(&into->sha, data, (size_t)n);
		into->at += (uint64_t)n;
	}
}

static int empty(int fd, struct err *err)
{
	return ftruncate(fd, 0) < 0 ? err_sys(err, "emptying a blob that came wrong") : 0;
}

static int fetch_once(struct depot *d, const struct digest *blob, struct into_file *into,
		      const struct depot_watch *watch, struct err *err)
{
	char text[DIGEST_TEXT_SIZE];
	int r = 0;

	if (into->at < into->size)
		r = d->ops->get_blob(d, blob, into->at, DEPOT_TO_END, take_file, into, watch, err);
	if (r == -EFBIG)
		return err_set(err, -EBADMSG, "blob %s of '%s' is longer than its manifest says",
			       digest_text(blob, text), d->url);
	if (r == -ENOENT)
		return r;
	if (r < 0)
		return err_wrap(err, r, "bringing blob %s", digest_text(blob, text));
	if (into->at < into->size)
		return err_set(err, -EBADMSG, "blob %s of '%s' is shorter than its manifest says",
			       digest_text(blob, text), d->url);
	return check_digest(d, &into->sha, blob, err);
}

int depot_fetch(struct depot *d, const struct digest *blob, uint64_t size, int fd,
		const struct depot_watch *watch, struct err *err)
{
	struct into_file into = { .fd = fd, .size = size };
	struct err again = { 0 };
	bool resumed;
	int r;

	sha256_begin(&into.sha);
	r = read_beginning(&into, err);
	if (r < 0 && r != -EBADMSG)
		return r;
	resumed = r == -EBADMSG || into.at > 0;
	if (r == 0)
		r = fetch_once(d, blob, &into, watch, err);
	if (r != -EBADMSG)
		return r;

	/* What was there may have been wrong: once more, from the first byte. */
	r = empty(fd, &again);
	if (r < 0) {
		if (err)
			*err = again;
		return r;
	}
	if (!resumed)
		return -EBADMSG;
	into = (struct into_file){ .fd = fd, .size = size };
	sha256_begin(&into.sha);
	r = fetch_once(d, blob, &into, watch, err);
	if (r == -EBADMSG)
		IGNORE_RESULT(empty(fd, NULL), "the wrong bytes are the worse news");
	return r;
}

int depot_put(struct depot *d, const void *bytes, size_t len, struct digest *ret, struct err *err)
{
	struct depot_bytes from = { .fd = -1, .data = bytes, .size = len };
	int r;

	*ret = digest_of(bytes, len);
	r = d->ops->put_blob(d, ret, &from, NULL, err);
	if (r == 0 && d->cache)
		d->cache->put(d->cache->ctx, ret, bytes, len);
	return r;
}
