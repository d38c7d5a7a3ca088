/*
 * The input is a path, a line end, and rules: whatever they are, they can be read and have an
 * answer.
 */
#include "snapshot/text/ignore.h"
#include "tests/fuzz/fuzz.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	CLEANUP(ignore_free_p) struct ignore *ig = NULL;
	const uint8_t *end = len > 0 ? memchr(data, '\n', len) : NULL;
	AUTO_FREE char *path = end ? strndup((const char *)data, (size_t)(end - data)) : NULL;
	struct err err = { 0 };

	if (!path)
		return 0;
	FUZZ_CHECK(ignore_parse(end + 1, len - (size_t)(end + 1 - data), &ig, &err) == 0);
	FUZZ_CHECK(ignore_match(ig, path, false) <= IGNORE_IN);
	FUZZ_CHECK(ignore_match(ig, path, true) <= IGNORE_IN);
	return 0;
}
