#include "cowfs/store/object.h"

#include <errno.h>

#include <zstd.h>

#include "base/le.h"
#include "tests/lib/test.h"

#define HEADER 4
#define KIB    ((size_t)1024)

static struct codec *new_codec(void)
{
	struct codec *c = NULL;
	struct err err = { 0 };

	CHECK_OK(codec_new(&c, &err), &err);
	return c;
}

static void fill_random(uint8_t *p, size_t len, uint64_t seed)
{
	struct test_rng rng = { .s = seed };

	for (size_t i = 0; i < len; i += 8) {
		const uint64_t word = test_rand(&rng);

		memcpy(p + i, &word, len - i < 8 ? len - i : 8);
	}
}

static struct object_key random_key(uint64_t seed)
{
	struct object_key key;

	fill_random((uint8_t *)&key, sizeof(key), seed);
	return key;
}

/* The first `noise` bytes do not compress, the rest is one byte repeated. */
static uint8_t *mixed(size_t len, size_t noise)
{
	uint8_t *p = malloc(len + 1);

	CHECK(p);
	memset(p, 'z', len);
	fill_random(p, noise < len ? noise : len, 1);
	return p;
}

static void pack(struct codec *c, const void *data, size_t len, struct buf *out)
{
	struct err err = { 0 };

	buf_reset(out);
	CHECK_OK(object_pack(c, data, len, out, &err), &err);
}

static bool is_raw(const struct buf *packed)
{
	return packed->data[0] == 0;
}

/* Unpack from memory of exactly that size, so that a sanitizer sees a byte too many. */
static int unpack(struct codec *c, const void *packed, size_t len, size_t max, struct buf *out,
		  struct err *err)
{
	AUTO_FREE uint8_t *exact = malloc(len ? len : 1);

	CHECK(exact);
	memcpy(exact, packed, len);
	return object_unpack(c, exact, len, max, out, err);
}

static void check_round_trip(struct codec *c, const void *data, size_t len)
{
	CLEANUP(buf_done) struct buf packed = BUF_INIT, out = BUF_INIT;
	struct err err = { 0 };

	pack(c, data, len, &packed);
	CHECK_EQ(object_packed_size(packed.data, packed.len), len);
	CHECK_OK(unpack(c, packed.data, packed.len, len, &out, &err), &err);
	CHECK_MEM(out.data, out.len, data, len);
	if (len > 0) {
		CHECK_EQ(unpack(c, packed.data, packed.len, len - 1, &out, &err), -EBADMSG);
		CHECK_EQ(out.len, 0);
	}
}

/* `out` held something before, and holds nothing after. */
static void check_refused(struct codec *c, const void *packed, size_t len, size_t max)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT;
	struct err err = { 0 };

	CHECK_EQ(buf_append_str(&out, "old"), 0);
	CHECK_EQ(unpack(c, packed, len, max, &out, &err), -EBADMSG);
	CHECK_EQ(err.code, -EBADMSG);
	CHECK_HAS(err.msg, "packed object");
	CHECK_EQ(out.len, 0);
}

TEST(what_was_packed_unpacks_to_the_same_bytes_at_every_small_size)
{
	CLEANUP(codec_free_p) struct codec *c = new_codec();
	AUTO_FREE uint8_t *noise = mixed(4 * KIB, 4 * KIB), *same = mixed(4 * KIB, 0);

	for (size_t len = 0; len <= 300; len++) {
		check_round_trip(c, noise, len);
		check_round_trip(c, same, len);
	}
}

TEST(what_was_packed_unpacks_to_the_same_bytes_around_every_edge)
{
	static const size_t edges[] = { 1 * KIB,   4 * KIB,   32 * KIB,   64 * KIB,
					128 * KIB, 256 * KIB, 1024 * KIB, OBJECT_SIZE_MAX - 1 };
	CLEANUP(codec_free_p) struct codec *c = new_codec();
	AUTO_FREE uint8_t *noise = mixed(OBJECT_SIZE_MAX, OBJECT_SIZE_MAX);
	AUTO_FREE uint8_t *half = mixed(OBJECT_SIZE_MAX, 40 * KIB);

	for (size_t i = 0; i < ARRAY_LEN(edges); i++)
		for (size_t len = edges[i] - 1; len <= edges[i] + 1; len++) {
			check_round_trip(c, noise, len);
			check_round_trip(c, half, len);
		}
}

TEST(packing_appends_and_leaves_what_stood_before)
{
	CLEANUP(codec_free_p) struct codec *c = new_codec();
	CLEANUP(buf_done) struct buf out = BUF_INIT;
	struct err err = { 0 };

	CHECK_EQ(buf_append_str(&out, "before"), 0);
	CHECK_OK(object_pack(c, "abc", 3, &out, &err), &err);
	CHECK_MEM(out.data, out.len, "before\0\003\0\0abc", 6 + HEADER + 3);
}

TEST(bytes_that_do_not_compress_are_kept_as_they_are)
{
	static const size_t sizes[] = {
		0, 1, 63, 64, 65, 4 * KIB, CHUNK_SIZE_MAX, OBJECT_SIZE_MAX
	};
	CLEANUP(codec_free_p) struct codec *c = new_codec();
	CLEANUP(buf_done) struct buf packed = BUF_INIT;
	AUTO_FREE uint8_t *noise = mixed(OBJECT_SIZE_MAX, OBJECT_SIZE_MAX);

	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		pack(c, noise, sizes[i], &packed);
		CHECK(is_raw(&packed));
		CHECK_MEM(packed.data + HEADER, packed.len - HEADER, noise, sizes[i]);
	}
}

TEST(bytes_that_compress_are_kept_compressed)
{
	static const size_t sizes[] = { 64, 65, 4 * KIB, CHUNK_SIZE_MAX, OBJECT_SIZE_MAX };
	CLEANUP(codec_free_p) struct codec *c = new_codec();
	CLEANUP(buf_done) struct buf packed = BUF_INIT;
	AUTO_FREE uint8_t *same = mixed(OBJECT_SIZE_MAX, 0);

	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		pack(c, same, sizes[i], &packed);
		CHECK(!is_raw(&packed));
		CHECK(packed.len < sizes[i] / 2);
	}
}

TEST(a_frame_is_kept_exactly_if_it_saves_a_sixteenth)
{
	CLEANUP(codec_free_p) struct codec *c = new_codec();
	CLEANUP(buf_done) struct buf packed = BUF_INIT;
	const size_t len = 8 * KIB;
	AUTO_FREE uint8_t *frame = malloc(ZSTD_compressBound(len));
	unsigned raw = 0, kept = 0;

	CHECK(frame);
	for (size_t noise = len - 1200; noise <= len; noise += 7) {
		AUTO_FREE uint8_t *data = mixed(len, noise);
		const size_t n = ZSTD_compress(frame, ZSTD_compressBound(len), data, len, 1);

		CHECK(!ZSTD_isError(n));
		pack(c, data, len, &packed);
		CHECK_EQ(is_raw(&packed), n > len - len / 16);
		CHECK(packed.len <= HEADER + len);
		raw += is_raw(&packed);
		kept += !is_raw(&packed);
	}
	CHECK(raw > 10 && kept > 10);
}

TEST(packing_never_grows_an_object_by_more_than_its_header)
{
	CLEANUP(codec_free_p) struct codec *c = new_codec();
	CLEANUP(buf_done) struct buf packed = BUF_INIT;
	AUTO_FREE uint8_t *data = mixed(CHUNK_SIZE_MAX, CHUNK_SIZE_MAX);

	for (size_t len = 0; len <= CHUNK_SIZE_MAX; len = len * 2 + 1) {
		pack(c, data, len, &packed);
		CHECK(packed.len <= HEADER + len);
	}
}

TEST(a_header_that_is_cut_or_of_an_unknown_method_is_refused)
{
	CLEANUP(codec_free_p) struct codec *c = new_codec();
	CLEANUP(buf_done) struct buf packed = BUF_INIT;

	pack(c, "abc", 3, &packed);
	for (size_t len = 0; len < packed.len; len++)
		check_refused(c, packed.data, len, 100);
	for (unsigned method = 2; method < 256; method++) {
		packed.data[0] = (uint8_t)method;
		CHECK_EQ(object_packed_size(packed.data, packed.len), -EBADMSG);
		check_refused(c, packed.data, packed.len, 100);
	}
}

TEST(a_header_that_lies_about_the_length_is_refused)
{
	static const size_t lies[] = { 0, 1, 99, 101, 4096, 65536, OBJECT_SIZE_MAX, (1 << 24) - 1 };
	CLEANUP(codec_free_p) struct codec *c = new_codec();
	AUTO_FREE uint8_t *noise = mixed(100, 100), *same = mixed(100, 0);
	const uint8_t *const data[] = { noise, same };

	for (size_t d = 0; d < ARRAY_LEN(data); d++)
		for (size_t i = 0; i < ARRAY_LEN(lies); i++) {
			CLEANUP(buf_done) struct buf packed = BUF_INIT;

			pack(c, data[d], 100, &packed);
			CHECK_EQ(is_raw(&packed), d == 0);
			le32_store(packed.data, (uint32_t)lies[i] << 8 | packed.data[0]);
			check_refused(c, packed.data, packed.len, OBJECT_SIZE_MAX);
		}
}

TEST(a_length_over_the_limit_is_refused_before_memory_is_taken)
{
	CLEANUP(codec_free_p) struct codec *c = new_codec();
	CLEANUP(buf_done) struct buf out = BUF_INIT;
	uint8_t packed[HEADER + 8] = { 0 };
	struct err err = { 0 };

	le32_store(packed, (uint32_t)(OBJECT_SIZE_MAX + 1) << 8 | 1);
	CHECK_EQ(object_packed_size(packed, sizeof(packed)), -EBADMSG);
	check_refused(c, packed, sizeof(packed), SIZE_MAX);
	le32_store(packed, (uint32_t)OBJECT_SIZE_MAX << 8 | 1);
	CHECK_EQ(object_unpack(c, packed, sizeof(packed), CHUNK_SIZE_MAX, &out, &err), -EBADMSG);
	CHECK_HAS(err.msg, "65536");
	CHECK_EQ(out.cap, 0);
}

TEST(bytes_behind_the_object_are_refused)
{
	CLEANUP(codec_free_p) struct codec *c = new_codec();
	AUTO_FREE uint8_t *noise = mixed(100, 100), *same = mixed(100, 0);
	const uint8_t *const data[] = { noise, same };

	for (size_t d = 0; d < ARRAY_LEN(data); d++) {
		CLEANUP(buf_done) struct buf packed = BUF_INIT;

		pack(c, data[d], 100, &packed);
		CHECK_EQ(buf_append_u8(&packed, 0), 0);
		check_refused(c, packed.data, packed.len, 100);
	}
}

/* Append a frame of `len` times 'z', or, for len 0, a skippable one. */
static void append_frame(struct buf *out, size_t len)
{
	AUTO_FREE uint8_t *data = mixed(len, 0), *frame = malloc(ZSTD_compressBound(len));
	size_t n;

	CHECK(frame);
	if (len == 0) {
		CHECK_EQ(buf_append_u32(out, ZSTD_MAGIC_SKIPPABLE_START), 0);
		CHECK_EQ(buf_append_u32(out, 4), 0);
		CHECK_EQ(buf_append(out, "skip", 4), 0);
		return;
	}
	n = ZSTD_compress(frame, ZSTD_compressBound(len), data, len, 1);
	CHECK(!ZSTD_isError(n));
	CHECK_EQ(buf_append(out, frame, n), 0);
}

TEST(anything_but_one_frame_is_refused)
{
	static const struct {
		size_t frames[3]; /* 0: a skippable one */
		size_t n;
	} cases[] = {
		{ { 100, 100 }, 2 }, { { 100, 0 }, 2 }, { { 0, 100 }, 2 },
		{ { 0 }, 1 },        { { 0, 0 }, 2 },   { { 50, 50, 100 }, 3 },
	};
	CLEANUP(codec_free_p) struct codec *c = new_codec();

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		CLEANUP(buf_done) struct buf packed = BUF_INIT;
		size_t total = 0;

		CHECK_EQ(buf_append_u32(&packed, 0), 0);
		for (size_t k = 0; k < cases[i].n; k++) {
			append_frame(&packed, cases[i].frames[k]);
			total += cases[i].frames[k];
		}
		le32_store(packed.data, (uint32_t)total << 8 | 1);
		check_refused(c, packed.data, packed.len, OBJECT_SIZE_MAX);
	}
}

TEST(one_changed_byte_never_makes_the_codec_read_or_write_beyond)
{
	CLEANUP(codec_free_p) struct codec *c = new_codec();
	CLEANUP(buf_done) struct buf packed = BUF_INIT, out = BUF_INIT;
	AUTO_FREE uint8_t *data = mixed(2000, 300);

	pack(c, data, 2000, &packed);
	CHECK(!is_raw(&packed));
	for (size_t at = 0; at < packed.len; at++)
		for (unsigned mask = 1; mask < 256; mask <<= 1) {
			struct err err = { 0 };
			int r;

			packed.data[at] ^= (uint8_t)mask;
			r = unpack(c, packed.data, packed.len, OBJECT_SIZE_MAX, &out, &err);
			CHECK(r == 0 || r == -EBADMSG);
			CHECK(r == 0 ? out.len <= OBJECT_SIZE_MAX : out.len == 0);
			packed.data[at] ^= (uint8_t)mask;
		}
}

/* --- identity --------------------------------------------------------------------------------- */

TEST(the_same_bytes_of_one_kind_have_one_id)
{
	const struct object_key key = random_key(1);
	AUTO_FREE uint8_t *a = mixed(1000, 1000), *b = mixed(1000, 1000);

	for (size_t len = 0; len <= 1000; len++) {
		const struct object_id x = object_id_of(&key, OBJECT_CHUNK, a, len);
		const struct object_id y = object_id_of(&key, OBJECT_CHUNK, b, len);

		CHECK(object_id_equal(&x, &y));
	}
}

TEST(ids_differ_by_content_length_kind_and_key)
{
	const struct object_key keys[] = { random_key(1), random_key(2) };
	static const char *const data[] = { "", "\0", "a", "b", "ab", "a\0" };
	static const size_t len[] = { 0, 1, 1, 1, 2, 2 };
	struct object_id ids[ARRAY_LEN(keys) * ARRAY_LEN(data) * OBJECT_KINDS];
	size_t n = 0;

	for (size_t k = 0; k < ARRAY_LEN(keys); k++)
		for (size_t d = 0; d < ARRAY_LEN(data); d++)
			for (int kind = 1; kind <= OBJECT_KINDS; kind++)
				ids[n++] =
				    object_id_of(&keys[k], (enum object_kind)kind, data[d], len[d]);
	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < i; j++)
			CHECK(!object_id_equal(&ids[i], &ids[j]));
}

TEST(no_object_has_the_zero_id)
{
	struct object_key key;
	static const uint8_t zeros[1000];

	/* Nobody finds a secret under which an id comes out zero; these are the likeliest. */
	for (unsigned fill = 0; fill < 256; fill++) {
		memset(&key, (int)fill, sizeof(key));
		for (size_t len = 0; len <= sizeof(zeros); len += 1 + len / 8) {
			const struct object_id id = object_id_of(&key, OBJECT_TREE, zeros, len);

			CHECK(!object_id_is_zero(&id));
		}
	}
}

TEST(an_id_is_shown_as_32_digits)
{
	const struct object_id id = { { 0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef, 0xff } };
	char hex[OBJECT_HEX_SIZE];

	CHECK_STR(object_id_hex(&id, hex), "0123456789abcdefff00000000000000");
}

TEST(objects_of_two_kinds_are_two_keys_even_with_one_id)
{
	const struct object_ref a = { .id = { { 1 } }, .kind = OBJECT_TREE };
	const struct object_ref b = { .id = { { 1 } }, .kind = OBJECT_RECIPE };
	const struct object_ref c = { .id = { { 2 } }, .kind = OBJECT_TREE };

	CHECK(object_ref_equal(&a, &a));
	CHECK(!object_ref_equal(&a, &b));
	CHECK(!object_ref_equal(&a, &c));
	CHECK_EQ(object_ref_hash(&a), object_ref_hash(&a));
	CHECK(object_ref_hash(&a) != object_ref_hash(&b));
}

TEST(every_field_of_a_row_goes_into_its_checksum)
{
	uint8_t packed[] = "packed";
	struct object_id id = { { 1, 2, 3 } };
	const uint64_t sum = object_row_sum(5, OBJECT_TREE, &id, packed, sizeof(packed));

	for (int bit = 0; bit < 63; bit++)
		CHECK(object_row_sum(5 ^ (int64_t)1 << bit, OBJECT_TREE, &id, packed,
				     sizeof(packed)) != sum);
	CHECK(object_row_sum(5, OBJECT_RECIPE, &id, packed, sizeof(packed)) != sum);
	CHECK(object_row_sum(5, OBJECT_TREE, &id, packed, sizeof(packed) - 1) != sum);
	for (size_t i = 0; i < sizeof(packed); i++) {
		packed[i] ^= 0x80;
		CHECK(object_row_sum(5, OBJECT_TREE, &id, packed, sizeof(packed)) != sum);
		packed[i] ^= 0x80;
	}
	for (size_t i = 0; i < OBJECT_ID_SIZE; i++) {
		id.b[i] ^= 1;
		CHECK(object_row_sum(5, OBJECT_TREE, &id, packed, sizeof(packed)) != sum);
		id.b[i] ^= 1;
	}
	CHECK_EQ(object_row_sum(5, OBJECT_TREE, &id, packed, sizeof(packed)), sum);
}

TEST(every_kind_has_a_name_and_a_limit)
{
	CHECK_STR(object_kind_name(OBJECT_CHUNK), "chunk");
	CHECK_STR(object_kind_name(OBJECT_RECIPE), "recipe");
	CHECK_STR(object_kind_name(OBJECT_TREE), "tree");
	CHECK_STR(object_kind_name(OBJECT_XATTRS), "xattrs");
	CHECK_STR(object_kind_name((enum object_kind)0), "object of unknown kind");
	CHECK_STR(object_kind_name((enum object_kind)5), "object of unknown kind");
	CHECK_EQ(object_kind_max(OBJECT_CHUNK), CHUNK_SIZE_MAX);
	CHECK_EQ(object_kind_max(OBJECT_TREE), OBJECT_SIZE_MAX);
}

TEST_MAIN("object")
