/*
 * Whatever bytes decode as a node are encoded to the same bytes, and nothing else is read.
 */
#include "cowfs/store/recipe.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	CLEANUP(buf_done) struct buf again = BUF_INIT;
	struct recipe_node node;
	struct err err = { 0 };
	int r;

	r = recipe_decode(data, len, &node, &err);
	FUZZ_CHECK(r == 0 || (r == -EBADMSG && err.code == r));
	if (r < 0)
		return 0;
	FUZZ_CHECK(recipe_encode(&node, &again) == 0);
	FUZZ_CHECK(again.len == len && memcmp(again.data, data, len) == 0);
	return 0;
}
