/*
 * sift - what the judge lets pass of what clients say, for test-differ.py.
 *
 * Reads from stdin, until it ends: four bytes of length (little-endian), then what a client says
 * to ok.example at once.  Writes for each, in the same form, the bytes that passed.
 */
#include <errno.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/fdio.h"
#include "base/le.h"
#include "runner/net/judge.h"

#define TEXT_MAX 65536

int main(void)
{
	static unsigned char text[TEXT_MAX];
	unsigned char size[4];

	while (fdio_read(0, size, sizeof(size)) == sizeof(size)) {
		CLEANUP(buf_done) struct buf in = BUF_INIT, out = BUF_INIT;
		const uint32_t n = le32_load(size);
		struct judge j;
		int r;

		if (n > sizeof(text) || fdio_read(0, text, n) != (ssize_t)n ||
		    buf_append(&in, text, n) < 0)
			return 1;
		judge_init(&j, "ok.example");
		r = judge_client(&j, &in, &out, false);
		if (r < 0 && r != -ECANCELED)
			return 1;
		le32_store(size, (uint32_t)out.len);
		if (fdio_write(1, size, sizeof(size)) < 0 || fdio_write(1, out.data, out.len) < 0)
			return 1;
	}
	return 0;
}
