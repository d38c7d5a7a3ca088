/*
 * sha256-many-i.h - private to base and its tests: the methods of this processor, one by one.
 */
#pragma once

#include "base/sha256-many.h"

enum sha256_way { SHA256_AVX2, SHA256_AVX512, N_SHA256_WAYS };

/* False, and nothing done, if this processor cannot. */
bool sha256_many_by(enum sha256_way way, struct sha256_job *jobs, size_t n);
