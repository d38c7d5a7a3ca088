/*
 * Whatever bytes verify can be walked from the top to the last name, and hold as many names as
 * they say.
 */
#include "snapshot/capture/signatures.h"
#include "tests/fuzz/fuzz.h"

static uint64_t count(const struct signatures *s, uint64_t record)
{
	struct signature_iter it = signatures_names(s, record);
	CLEANUP(buf_done) struct buf again = BUF_INIT;
	uint64_t n = 0;

	for (; it.left > 0; signature_iter_step(&it), n++) {
		struct signature one;
		size_t len;
		const char *name = signature_name(it.next, &len);

		signature_decode(it.next, &one);
		FUZZ_CHECK(one.e.name == name && one.e.name_len == len);
		buf_reset(&again);
		FUZZ_CHECK(signature_append(&again, &one) == 0);
		FUZZ_CHECK(again.len == signature_size(it.next) &&
			   memcmp(again.data, it.next, again.len) == 0);
		if (one.e.form == TREE_DIR)
			n += count(s, one.record);
	}
	return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	CLEANUP(signatures_free_p) struct signatures *s = calloc(1, sizeof(*s));
	struct err err = { 0 };
	int r;

	FUZZ_CHECK(s && buf_append(&s->bytes, data, len) == 0);
	r = signatures_verify(s, &err);
	FUZZ_CHECK(r == 0 || (r == -EBADMSG && err.code == r));
	if (r == 0)
		FUZZ_CHECK(count(s, signature_record(signatures_top(s))) + 1 == s->names);
	return 0;
}
