/*
 * Packed bytes either unpack to exactly the length they announce, within the limit
 * given, or not at all; and what unpacks survives being packed again.
 */
#include "cowfs/store/object.h"
#include "tests/fuzz/fuzz.h"

static struct codec *codec; /* dear to make, so one for all inputs */

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	FUZZ_CHECK(codec_new(&codec, NULL) == 0);
	return 0;
}

static void unpack_within(const uint8_t *data, size_t len, size_t max)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT, packed = BUF_INIT, again = BUF_INIT;
	struct err err = { 0 };
	int r;

	r = object_unpack(codec, data, len, max, &out, &err);
	FUZZ_CHECK(r == 0 || (r == -EBADMSG && err.code == r && out.len == 0));
	if (r < 0)
		return;
	FUZZ_CHECK(out.len <= max && object_packed_size(data, len) == (ssize_t)out.len);
	FUZZ_CHECK(object_pack(codec, out.data, out.len, &packed, NULL) == 0);
	FUZZ_CHECK(object_unpack(codec, packed.data, packed.len, max, &again, NULL) == 0);
	FUZZ_CHECK(again.len == out.len && memcmp(again.data, out.data, out.len) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	unpack_within(data, len, CHUNK_SIZE_MAX);
	unpack_within(data, len, 100);
	return 0;
}
