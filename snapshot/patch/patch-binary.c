/*
 * A literal is the content's size, then the deflated content in lines of at most 52 bytes: a letter
 * for the number of bytes, then five characters for every four bytes. It is made in one pass, so
 * only zlib needs memory.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define ZLIB_CONST /* zlib only reads its input */
#include <zlib.h>

#include "base/hex.h"
#include "snapshot/patch/patch-i.h"

#define READ_SIZE  ((size_t)256 << 10)
#define LINE_BYTES 52
#define LINE_SIZE  (1 + LINE_BYTES / 4 * 5 + 1)

/* --- content in pieces ------------------------------------------------------------------ */

typedef int (*piece_fn)(const void *data, size_t len, void *ctx, struct err *err);

static uint64_t size_of(const struct delta_side *side)
{
	return S_ISLNK(side->mode) ? strlen(side->target) : side->content.size;
}

static int each_piece(struct store *s, const struct delta_side *side, piece_fn fn, void *ctx,
		      struct err *err)
{
	CLEANUP(content_reader_free_p) struct content_reader *rd = NULL;
	AUTO_FREE char *piece = NULL;
	uint64_t at = 0;
	ssize_t n;
	int r;

	if (S_ISLNK(side->mode))
		return fn(side->target, strlen(side->target), ctx, err);
	if (side->content.size == 0)
		return 0;
	piece = malloc(READ_SIZE);
	if (!piece)
		return err_nomem(err);
	r = content_reader_new(s, &side->content, &rd, err);
	if (r < 0)
		return r;
	while ((n = content_reader_read(rd, at, piece, READ_SIZE, err)) > 0) {
		r = fn(piece, (size_t)n, ctx, err);
		if (r < 0)
			return r;
		at += (uint64_t)n;
	}
	return (int)n;
}

/* --- ids -------------------------------------------------------------------------------- */

static int hash_piece(const void *data, size_t len, void *ctx, struct err *err)
{
	sha1_add(ctx, data, len);
	return 0;
}

int patch_blob_id(struct store *s, const struct delta_side *side, const struct buf *loaded,
		  char hex[SHA1_HEX_SIZE], struct err *err)
{
	uint8_t digest[SHA1_SIZE] = { 0 };
	char header[32];
	struct sha1 sum;
	int r = 0;

	if (side->mode != 0) {
		sha1_begin(&sum);
		/* With the NUL that ends it. */
		sha1_add(&sum, header,
			 (size_t)snprintf(header, sizeof(header), "blob %" PRIu64, size_of(side)) +
			     1);
		if (loaded->len == size_of(side))
			sha1_add(&sum, loaded->data, loaded->len);
		else
			r = each_piece(s, side, hash_piece, &sum, err);
		sha1_end(&sum, digest);
	}
	hex_encode(digest, sizeof(digest), hex);
	return r;
}

/* --- literals --------------------------------------------------------------------------- */

struct literal {
	const struct patch_out *to;
	z_stream z;
	uint8_t line[LINE_BYTES]; /* deflated bytes that wait for a line to be full */
};

static void literal_done(struct literal *l)
{
	deflateEnd(&l->z);
}

static void encode_word(uint32_t word, char out[5])
{
	static const char digit[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				    "!#$%&()*+-;<=>?@^_`{|}~";

	for (int i = 4; i >= 0; i--) {
		out[i] = digit[word % 85];
		word /= 85;
	}
}

/* Write the line and start an empty one. */
static int say_line(struct literal *l, struct err *err)
{
	const size_t n = LINE_BYTES - l->z.avail_out;
	char text[LINE_SIZE];
	size_t len = 0;

	if (n == 0)
		return 0;
	memset(l->line + n, 0, LINE_BYTES - n);
	text[len++] = (char)(n <= 26 ? 'A' + n - 1 : 'a' + n - 27);
	for (size_t i = 0; i < n; i += 4, len += 5)
		encode_word((uint32_t)l->line[i] << 24 | (uint32_t)l->line[i + 1] << 16 |
				(uint32_t)l->line[i + 2] << 8 | l->line[i + 3],
			    text + len);
	text[len++] = '\n';
	l->z.next_out = l->line;
	l->z.avail_out = LINE_BYTES;
	return patch_say(l->to, PATCH_BINARY, text, len, err);
}

static int deflate_some(struct literal *l, int flush, struct err *err)
{
	int rc, r;

	do {
		rc = deflate(&l->z, flush);
		if (rc == Z_STREAM_ERROR)
			return err_set(err, -EIO, "zlib failed");
		r = l->z.avail_out == 0 ? say_line(l, err) : 0;
		if (r < 0)
			return r;
	} while (l->z.avail_in > 0 || (flush == Z_FINISH && rc != Z_STREAM_END));
	return 0;
}

static int deflate_piece(const void *data, size_t len, void *ctx, struct err *err)
{
	struct literal *l = ctx;

	l->z.next_in = (z_const Bytef *)data;
	l->z.avail_in = (uInt)len;
	return deflate_some(l, Z_NO_FLUSH, err);
}

static int say_literal(const struct patch_out *to, const struct delta_side *side, struct err *err)
{
	CLEANUP(literal_done) struct literal l = { .to = to };
	char text[40];
	int len, r;

	len = snprintf(text, sizeof(text), "literal %" PRIu64 "\n", size_of(side));
	r = patch_say(to, PATCH_BINARY, text, (size_t)len, err);
	if (r < 0)
		return r;
	if (deflateInit(&l.z, Z_DEFAULT_COMPRESSION) != Z_OK)
		return err_nomem(err);
	l.z.next_out = l.line;
	l.z.avail_out = LINE_BYTES;
	r = each_piece(to->store, side, deflate_piece, &l, err);
	if (r < 0)
		return r;
	r = deflate_some(&l, Z_FINISH, err);
	if (r < 0)
		return r;
	r = say_line(&l, err);
	return r < 0 ? r : patch_say(to, PATCH_BINARY, "\n", 1, err);
}

int patch_binary(const struct patch_out *to, const struct delta_side *before,
		 const struct delta_side *after, struct err *err)
{
	static const char title[] = "GIT binary patch\n";
	int r = patch_say(to, PATCH_BINARY, title, strlen(title), err);

	if (r < 0)
		return r;
	r = say_literal(to, after, err);
	return r < 0 ? r : say_literal(to, before, err);
}
