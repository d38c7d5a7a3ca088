/*
 * fuzz.h - what every fuzz target needs: libFuzzer's entry points, and a check that stops.
 */
#pragma once

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

/* Not assert(): it must hold in every build, and the fuzzer keeps the input of an abort(). */
#define FUZZ_CHECK(cond)         \
	do {                     \
		if (!(cond))     \
			abort(); \
	} while (0)
