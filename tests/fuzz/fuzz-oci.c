/*
 * Whatever text is given becomes a program that the kernel would take, or a sentence.
 */
#include "base/cleanup.h"
#include "runner/oci.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	CLEANUP(buf_done) struct buf code = BUF_INIT;
	struct err err = { 0 };
	int r = oci_compile((const char *)data, len, &code, &err);

	FUZZ_CHECK(r == 0 || (r < 0 && err.code == r && err.msg[0]));
	FUZZ_CHECK((r == 0) == (code.len > 0) && code.len % 8 == 0 && code.len <= 4096 * 8);
	return 0;
}
