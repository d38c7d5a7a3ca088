#include "image/gunzip.h"

#include <errno.h>
#include <stdlib.h>

#define ZLIB_CONST /* zlib only reads its input */
#include <zlib.h>

#include "base/cleanup.h"

#define OUT_SIZE  ((size_t)256 << 10)
#define GZIP_ONLY (16 + MAX_WBITS)

enum gunzip_state {
	GUNZIP_NEW,   /* what it is, is not known */
	GUNZIP_PLAIN, /* no gzip */
	GUNZIP_IN,    /* in a member */
	GUNZIP_END,   /* behind one: another one, or nothing but zeros, may follow */
};

struct gunzip {
	unpack_read_fn read;
	void *ctx;
	enum gunzip_state state;
	z_stream z;
	bool inited;
	unsigned char *out; /* owned */
};

int gunzip_new(unpack_read_fn read, void *ctx, struct gunzip **ret, struct err *err)
{
	struct gunzip *g = calloc(1, sizeof(*g));

	if (!g)
		return err_nomem(err);
	g->read = read;
	g->ctx = ctx;
	*ret = g;
	return 0;
}

void gunzip_free(struct gunzip *g)
{
	if (!g)
		return;
	if (g->inited)
		inflateEnd(&g->z);
	free(g->out);
	free(g);
}

/* More packed bytes; 0 at the end. */
static ssize_t fill(struct gunzip *g, struct err *err)
{
	const void *data;
	ssize_t n = g->read(g->ctx, &data, err);

	if (n > 0) {
		g->z.next_in = data;
		g->z.avail_in = (uInt)n;
	}
	return n;
}

static int begin(struct gunzip *g, struct err *err)
{
	g->out = malloc(OUT_SIZE);
	if (!g->out || inflateInit2(&g->z, GZIP_ONLY) != Z_OK)
		return err_nomem(err);
	g->inited = true;
	g->state = GUNZIP_IN;
	return 0;
}

/* The first bytes tell.  A block of one byte is no gzip that anybody writes. */
static ssize_t look(struct gunzip *g, const void **ret, struct err *err)
{
	const ssize_t n = fill(g, err);
	const unsigned char *b = g->z.next_in;
	int r;

	if (n <= 0)
		return n;
	if (n >= 2 && b[0] == 0x1f && b[1] == 0x8b) {
		r = begin(g, err);
		return r < 0 ? r : gunzip_read(g, ret, err);
	}
	g->state = GUNZIP_PLAIN;
	*ret = b;
	return n;
}

/* Behind a member: 1 if another one begins, 0 at the end. */
static int next_member(struct gunzip *g, struct err *err)
{
	ssize_t n = 1;

	for (;;) {
		while (g->z.avail_in > 0 && g->z.next_in[0] == 0) {
			g->z.next_in++;
			g->z.avail_in--;
		}
		if (g->z.avail_in > 0)
			break;
		n = fill(g, err);
		if (n <= 0)
			return (int)n;
	}
	if (inflateReset(&g->z) != Z_OK)
		return err_set(err, -EIO, "zlib failed");
	g->state = GUNZIP_IN;
	return 1;
}

static int damaged(const struct gunzip *g, struct err *err)
{
	return err_set(err, -EINVAL, "it is damaged: %s", g->z.msg ? g->z.msg : "it is cut off");
}

/* 1 if there is something to give, or the member has ended. */
static int inflate_some(struct gunzip *g, struct err *err)
{
	ssize_t n;
	int rc;

	if (g->z.avail_in == 0) {
		n = fill(g, err);
		if (n < 0)
			return (int)n;
		if (n == 0)
			return damaged(g, err);
	}
	rc = inflate(&g->z, Z_NO_FLUSH);
	if (rc == Z_MEM_ERROR)
		return err_nomem(err);
	if (rc != Z_OK && rc != Z_STREAM_END && rc != Z_BUF_ERROR)
		return damaged(g, err);
	if (rc == Z_STREAM_END)
		g->state = GUNZIP_END;
	return g->z.avail_out < OUT_SIZE || rc == Z_STREAM_END;
}

ssize_t gunzip_read(void *ctx, const void **ret, struct err *err)
{
	struct gunzip *g = ctx;
	int r;

	if (g->state == GUNZIP_NEW)
		return look(g, ret, err);
	if (g->state == GUNZIP_PLAIN)
		return g->read(g->ctx, ret, err);
	g->z.next_out = g->out;
	g->z.avail_out = OUT_SIZE;
	while (g->z.avail_out == OUT_SIZE) {
		r = g->state == GUNZIP_END ? next_member(g, err) : inflate_some(g, err);
		if (r < 0 || (r == 0 && g->state == GUNZIP_END))
			return r;
	}
	*ret = g->out;
	return (ssize_t)(OUT_SIZE - g->z.avail_out);
}
