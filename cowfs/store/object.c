/*
 * Packed form: method u8, raw length u24, body. Method 0 is the bytes themselves, method 1 one zstd
 * frame.
 *
 * Data that does not compress: zstd finds that out by itself at memory speed, so there is no
 * guessing beforehand. The frame is kept only if it saves a sixteenth, because every read has to
 * decompress it.
 *
 * Level -1 leaves bytes without a match as they are. Trees and recipes are mostly ids, numbers and
 * names: it saves as much of them as level 1 (0.42 of small nodes with either, 0.29 instead of 0.28
 * of large ones) in half the time both ways, and every change of a clone packs some. Chunks take a
 * seventh more room, and a first capture a tenth less time. Levels -3 and -6 take a twelfth and a
 * quarter more room again, and save a twentieth of the time at most.
 */
#include "cowfs/store/object.h"

#include <assert.h>
#include <errno.h>

#include <xxhash.h>
#include <zstd.h>

#include "base/hex.h"
#include "base/le.h"

enum { PACK_RAW = 0, PACK_ZSTD = 1 };

#define PACK_HEADER   4
#define PACK_LEVEL    (-1)
#define PACK_TRY_FROM 64 /* a frame's own overhead eats what fewer bytes could save */

_Static_assert(OBJECT_SECRET_SIZE >= XXH3_SECRET_SIZE_MIN, "XXH3 wants a longer secret");
_Static_assert(OBJECT_SIZE_MAX < 1u << 24, "the length has three bytes");

struct codec {
	ZSTD_CCtx *pack;
	ZSTD_DCtx *unpack;
};

char *object_id_hex(const struct object_id *id, char hex[OBJECT_HEX_SIZE])
{
	return hex_encode(id->b, sizeof(id->b), hex);
}

uint64_t object_ref_hash(const void *ref)
{
	const struct object_ref *o = ref;

	return le64_load(o->id.b) + o->kind; /* an id is a hash already */
}

bool object_ref_equal(const void *a, const void *b)
{
	const struct object_ref *x = a, *y = b;

	return x->kind == y->kind && object_id_equal(&x->id, &y->id);
}

const char *object_kind_name(enum object_kind kind)
{
	switch (kind) {
	case OBJECT_CHUNK:
		return "chunk";
	case OBJECT_RECIPE:
		return "recipe";
	case OBJECT_TREE:
		return "tree";
	case OBJECT_XATTRS:
		return "xattrs";
	}
	return "object of unknown kind";
}

size_t object_kind_max(enum object_kind kind)
{
	return kind == OBJECT_CHUNK ? CHUNK_SIZE_MAX : OBJECT_SIZE_MAX;
}

static const uint8_t *secret_of(const struct object_key *key, enum object_kind kind)
{
	assert(kind >= 1 && kind <= OBJECT_KINDS);
	return key->secret[kind - 1];
}

struct object_id object_id_of(const struct object_key *key, enum object_kind kind, const void *data,
			      size_t len)
{
	XXH128_hash_t h;
	XXH128_canonical_t c;
	struct object_id id;

	h = XXH3_128bits_withSecret(data, len, secret_of(key, kind), OBJECT_SECRET_SIZE);
	XXH128_canonicalFromHash(&c, h);
	_Static_assert(sizeof(c.digest) == sizeof(id.b), "an id is 128 bits");
	memcpy(id.b, c.digest, sizeof(id.b));

	/* The zero id means "none", so no object may have it. */
	if (object_id_is_zero(&id))
		id.b[OBJECT_ID_SIZE - 1] = 1;
	return id;
}

uint64_t object_name_hash(const struct object_key *key, const void *name, size_t len)
{
	return XXH3_64bits_withSecret(name, len, secret_of(key, OBJECT_TREE), OBJECT_SECRET_SIZE);
}

uint64_t object_row_sum(int64_t seq, enum object_kind kind, const struct object_id *id,
			const void *packed, size_t len)
{
	uint8_t head[8 + 1 + OBJECT_ID_SIZE];

	le64_store(head, (uint64_t)seq);
	head[8] = (uint8_t)kind;
	memcpy(head + 9, id->b, OBJECT_ID_SIZE);
	return XXH3_64bits_withSeed(packed, len, XXH3_64bits(head, sizeof(head)));
}

uint64_t object_bytes_sum(const void *bytes, size_t len)
{
	return XXH3_64bits(bytes, len);
}

int codec_new(struct codec **ret, struct err *err)
{
	CLEANUP(codec_free_p) struct codec *c = calloc(1, sizeof(*c));

	if (!c)
		return err_nomem(err);
	c->pack = ZSTD_createCCtx();
	c->unpack = ZSTD_createDCtx();
	if (!c->pack || !c->unpack ||
	    ZSTD_isError(ZSTD_CCtx_setParameter(c->pack, ZSTD_c_compressionLevel, PACK_LEVEL)))
		return err_nomem(err);
	*ret = TAKE_PTR(c);
	return 0;
}

void codec_free(struct codec *c)
{
	if (!c)
		return;
	ZSTD_freeCCtx(c->pack);
	ZSTD_freeDCtx(c->unpack);
	free(c);
}

static void put_header(uint8_t *p, unsigned method, size_t len)
{
	le32_store(p, (uint32_t)len << 8 | method);
}

int object_frame(const void *data, size_t len, struct buf *out, struct err *err)
{
	uint8_t *p;

	assert(len <= OBJECT_SIZE_MAX);
	if (buf_reserve(out, PACK_HEADER + len) < 0)
		return err_nomem(err);
	p = out->data + out->len;
	put_header(p, PACK_RAW, len);
	if (len)
		memcpy(p + PACK_HEADER, data, len);
	out->len += PACK_HEADER + len;
	return 0;
}

int object_pack(struct codec *c, const void *data, size_t len, struct buf *out, struct err *err)
{
	size_t room = len < PACK_TRY_FROM ? len : ZSTD_compressBound(len);
	uint8_t *p;
	size_t n;

	assert(len <= OBJECT_SIZE_MAX);
	if (buf_reserve(out, PACK_HEADER + room) < 0)
		return err_nomem(err);
	p = out->data + out->len;

	if (len >= PACK_TRY_FROM) {
		n = ZSTD_compress2(c->pack, p + PACK_HEADER, room, data, len);
		if (ZSTD_isError(n)) {
			/* Room was given by ZSTD_compressBound(), so only memory can be short. */
			return err_set(err, -ENOMEM, "compressing %zu bytes: %s", len,
				       ZSTD_getErrorName(n));
		}
		if (n <= len - len / 16) {
			put_header(p, PACK_ZSTD, len);
			out->len += PACK_HEADER + n;
			return 0;
		}
	}
	return object_frame(data, len, out, err);
}

ssize_t object_packed_size(const void *packed, size_t len)
{
	uint32_t head;

	if (len < PACK_HEADER)
		return -EBADMSG;
	head = le32_load(packed);
	if ((head & 0xff) > PACK_ZSTD || head >> 8 > OBJECT_SIZE_MAX)
		return -EBADMSG;
	return (ssize_t)(head >> 8);
}

int object_unpack(struct codec *c, const void *packed, size_t len, size_t max, struct buf *out,
		  struct err *err)
{
	ssize_t want = object_packed_size(packed, len);
	const uint8_t *body;
	size_t n;

	buf_reset(out);
	if (want < 0)
		return err_set(err, -EBADMSG, "packed object has a bad header");
	if ((size_t)want > max)
		return err_set(err, -EBADMSG,
			       "packed object claims %zd bytes, at most %zu are allowed", want,
			       max);
	if (buf_reserve(out, (size_t)want + 1) < 0)
		return err_nomem(err);
	body = (const uint8_t *)packed + PACK_HEADER;
	len -= PACK_HEADER;

	if ((le32_load(packed) & 0xff) == PACK_RAW) {
		n = len;
		if (n == (size_t)want)
			memcpy(out->data, body, n);
	} else {
		n = ZSTD_decompressDCtx(c->unpack, out->data, (size_t)want, body, len);
		/* Exactly one frame that holds something: zstd would take several, and skippable ones. */
		if (!ZSTD_isError(n) && (n == 0 || ZSTD_findFrameCompressedSize(body, len) != len))
			n = (size_t)want + 1;
	}
	if (ZSTD_isError(n) || n != (size_t)want)
		return err_set(err, -EBADMSG, "packed object does not unpack to its %zd bytes",
			       want);
	out->len = n;
	return 0;
}
