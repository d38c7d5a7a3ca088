#include "image/stream.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "base/fdio.h"
#include "base/le.h"

#define HEAD_SIZE  5
#define FLUSH_SIZE ((size_t)512 << 10)
#define READ_SIZE  ((size_t)256 << 10)
#define WANTED_MS  500

/* --- writing ---------------------------------------------------------------------------- */

void stream_writer_done(struct stream_writer *w)
{
	buf_done(&w->out);
}

static int add_text(struct buf *out, const struct stream_span *s)
{
	int r = buf_append_u32(out, (uint32_t)s->len);

	return r < 0 || s->len == 0 ? r : buf_append(out, s->at, s->len);
}

static int add_entry(struct buf *out, const struct stream_record *rec)
{
	int r = 0;

	if (buf_append_u32(out, rec->mode) < 0 || buf_append_u32(out, rec->uid) < 0 ||
	    buf_append_u32(out, rec->gid) < 0 || buf_append_u64(out, (uint64_t)rec->mtime_s) < 0 ||
	    buf_append_u32(out, rec->mtime_ns) < 0 || buf_append_u32(out, rec->major) < 0 ||
	    buf_append_u32(out, rec->minor) < 0 || buf_append_u64(out, rec->size) < 0 ||
	    add_text(out, &rec->path) < 0 || add_text(out, &rec->target) < 0 ||
	    buf_append_u32(out, (uint32_t)rec->n_xattrs) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < rec->n_xattrs && r >= 0; i++) {
		r = add_text(out, &rec->xattrs[i].name);
		r = r < 0 ? r : add_text(out, &rec->xattrs[i].value);
	}
	return r;
}

static int add_content(struct buf *out, const struct stream_record *rec)
{
	switch (rec->kind) {
	case STREAM_ENTRY:
		return add_entry(out, rec);
	case STREAM_LINK:
		return add_text(out, &rec->path) < 0 ? -ENOMEM : add_text(out, &rec->target);
	case STREAM_DATA:
		return buf_append_u64(out, rec->off) < 0
			   ? -ENOMEM
			   : buf_append(out, rec->data.at, rec->data.len);
	case STREAM_WHITEOUT:
	case STREAM_OPAQUE:
		return add_text(out, &rec->path);
	case STREAM_LAYER:
	case STREAM_END:
		break;
	}
	return 0;
}

static int stream_flush(struct stream_writer *w, struct err *err)
{
	int r = fdio_write(w->fd, w->out.data, w->out.len);

	buf_reset(&w->out);
	return r < 0 ? err_set(err, r, "handing the archive over: %s", strerror(-r)) : 0;
}

int stream_write(struct stream_writer *w, const struct stream_record *rec, struct err *err)
{
	const size_t start = w->out.len;
	size_t len;

	if (buf_append_u8(&w->out, (uint8_t)rec->kind) < 0 || buf_append_u32(&w->out, 0) < 0 ||
	    add_content(&w->out, rec) < 0)
		return err_nomem(err);
	len = w->out.len - start - HEAD_SIZE;
	if (len > STREAM_RECORD_MAX) {
		w->out.len = start;
		return err_set(err, -E2BIG, "the attributes of one entry take %zu bytes", len);
	}
	le32_store(w->out.data + start + 1, (uint32_t)len);
	return w->out.len < FLUSH_SIZE && rec->kind != STREAM_END ? 0 : stream_flush(w, err);
}

/* --- decoding --------------------------------------------------------------------------- */

struct cursor {
	const uint8_t *at;
	size_t left;
	bool failed;
};

static const uint8_t *take_bytes(struct cursor *c, size_t n)
{
	const uint8_t *p = c->at;

	if (c->failed || n > c->left) {
		c->failed = true;
		return NULL;
	}
	c->at += n;
	c->left -= n;
	return p;
}

static uint32_t take_u32(struct cursor *c)
{
	const uint8_t *p = take_bytes(c, 4);

	return p ? le32_load(p) : 0;
}

static uint64_t take_u64(struct cursor *c)
{
	const uint8_t *p = take_bytes(c, 8);

	return p ? le64_load(p) : 0;
}

static struct stream_span take_text(struct cursor *c)
{
	const uint32_t len = take_u32(c);
	const uint8_t *p = take_bytes(c, len);

	return p ? (struct stream_span){ (const char *)p, len } : (struct stream_span){ 0 };
}

static void take_entry(struct cursor *c, struct stream_record *ret)
{
	uint32_t n;

	ret->mode = take_u32(c);
	ret->uid = take_u32(c);
	ret->gid = take_u32(c);
	ret->mtime_s = (int64_t)take_u64(c);
	ret->mtime_ns = take_u32(c);
	ret->major = take_u32(c);
	ret->minor = take_u32(c);
	ret->size = take_u64(c);
	ret->path = take_text(c);
	ret->target = take_text(c);
	n = take_u32(c);
	c->failed |= n > STREAM_XATTRS_MAX;
	for (uint32_t i = 0; i < n && !c->failed; i++) {
		ret->xattrs[i].name = take_text(c);
		ret->xattrs[i].value = take_text(c);
		ret->n_xattrs++;
	}
}

int stream_decode(enum stream_kind kind, const void *data, size_t len, struct stream_record *ret,
		  struct err *err)
{
	struct cursor c = { .at = data, .left = len };

	/* All but the list, which is as long as n_xattrs says. */
	memset(ret, 0, offsetof(struct stream_record, xattrs));
	ret->n_xattrs = 0;
	ret->off = 0;
	ret->data = (struct stream_span){ 0 };
	ret->kind = kind;
	switch ((int)kind) {
	case STREAM_ENTRY:
		take_entry(&c, ret);
		break;
	case STREAM_LINK:
		ret->path = take_text(&c);
		ret->target = take_text(&c);
		break;
	case STREAM_DATA:
		ret->off = take_u64(&c);
		ret->data = (struct stream_span){ (const char *)c.at, c.left };
		c.failed |= c.left > STREAM_DATA_MAX;
		c.left = 0;
		break;
	case STREAM_WHITEOUT:
	case STREAM_OPAQUE:
		ret->path = take_text(&c);
		break;
	case STREAM_LAYER:
	case STREAM_END:
		break;
	default:
		return err_set(err, -EBADMSG, "the parsed archive has a record of kind %d",
			       (int)kind);
	}
	if (c.failed || c.left > 0)
		return err_set(err, -EBADMSG,
			       "the parsed archive has a record that is out of order");
	return 0;
}

/* --- reading ---------------------------------------------------------------------------- */

void stream_reader_done(struct stream_reader *r)
{
	buf_done(&r->in);
}

static int await_bytes(struct stream_reader *r, struct err *err)
{
	struct pollfd p = { .fd = r->fd, .events = POLLIN };
	int rc, wanted;

	for (;;) {
		rc = poll(&p, 1, r->wanted ? WANTED_MS : -1);
		if (rc < 0 && errno != EINTR)
			return err_sys(err, "waiting for the parsed archive");
		if (rc > 0)
			return 0;
		wanted = r->wanted ? r->wanted(r->ctx, err) : 0;
		if (wanted < 0)
			return wanted;
	}
}

/* Make `n` bytes be there from r->at on. */
static int need(struct stream_reader *r, size_t n, struct err *err)
{
	if (r->at > 0 && r->in.len - r->at < n) {
		memmove(r->in.data, r->in.data + r->at, r->in.len - r->at);
		r->in.len -= r->at;
		r->at = 0;
	}
	while (r->in.len - r->at < n) {
		void *to = buf_extend(&r->in, READ_SIZE);
		ssize_t got;
		int rc;

		if (!to)
			return err_nomem(err);
		rc = await_bytes(r, err);
		do
			got = rc < 0 ? 0 : read(r->fd, to, READ_SIZE);
		while (got < 0 && errno == EINTR);
		r->in.len -= READ_SIZE - (got > 0 ? (size_t)got : 0);
		if (rc < 0)
			return rc;
		if (got < 0)
			return err_sys(err, "reading the parsed archive");
		if (got == 0)
			return err_set(err, -EPIPE, "the archive was not read to its end");
	}
	return 0;
}

int stream_next(struct stream_reader *r, struct stream_record *ret, struct err *err)
{
	uint32_t len;
	uint8_t kind;
	int rc = need(r, HEAD_SIZE, err);

	if (rc < 0)
		return rc;
	kind = r->in.data[r->at];
	len = le32_load(r->in.data + r->at + 1);
	if (len > STREAM_RECORD_MAX)
		return err_set(err, -EBADMSG, "the parsed archive has a record of %u bytes", len);
	rc = need(r, HEAD_SIZE + len, err);
	if (rc < 0)
		return rc;
	rc = stream_decode(kind, r->in.data + r->at + HEAD_SIZE, len, ret, err);
	r->at += HEAD_SIZE + len;
	return rc;
}
