/*
 * Whatever bytes verify as a set hold attributes that are encoded to the same bytes,
 * and every one of them is found by its name.
 */
#include "cowfs/store/xattrs.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	CLEANUP(buf_done) struct buf set = BUF_INIT, list = BUF_INIT, again = BUF_INIT;
	struct xattr x, found;
	struct err err = { 0 };
	size_t pos = 0, n = 0;
	int r;

	r = xattrs_verify(data, len, &err);
	FUZZ_CHECK(r == 0 || (r == -EBADMSG && err.code == r));
	if (r < 0)
		return 0;
	FUZZ_CHECK(buf_append(&set, data, len) == 0);
	for (; xattrs_next(&set, &pos, &x); n++) {
		FUZZ_CHECK(xattrs_find(&set, x.name, x.name_len, &found));
		FUZZ_CHECK(found.name == x.name && found.value == x.value);
		FUZZ_CHECK(buf_append(&list, &x, sizeof(x)) == 0);
	}
	FUZZ_CHECK(xattrs_encode((const struct xattr *)(const void *)list.data, n, &again, &err) ==
		   0);
	FUZZ_CHECK(again.len == len && memcmp(again.data, data, len) == 0);
	return 0;
}
