/*
 * program.h - run another program with an input, and take its output.
 *
 * For the command line only: cowfsd starts nothing. The program has the caller's environment and,
 * where it asks the user something, the caller's terminal.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/buf.h"

struct program {
	const char *const *argv; /* ends with NULL; the first is looked for in PATH */
	const void *input;       /* at most 16 KiB: a pipe takes it before anybody reads */
	size_t input_len;
	size_t output_max;
	uint64_t wait_ms; /* 0: for ever */
	bool apart;       /* in a process group of its own: ^C does not reach it */
	bool quiet;       /* take what it says on standard error too, behind its output */
	bool
	    by_files; /* it reads `from` and writes `to`; then the output is standard error alone */
	int from, to; /* borrowed */
};

/*
 * Its exit status (255: it was killed), and what it said behind what `output` holds.  -ENOENT if there is
 * no such program, -ETIMEDOUT, -EFBIG.
 */
NODISCARD int program_run(const struct program *p, struct buf *output);
