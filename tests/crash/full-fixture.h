/*
 * full-fixture.h - for tests of a store whose disk is full.
 */
#pragma once

#include "tests/crash/disk.h"
#include "tests/crash/specimen.h"
#include "tests/lib/test.h"

/* What is tried; the same each time, so that every attempt asks the same of the disk. */
static uint64_t kept_number, tried_number;

static inline struct store *open_store(const char *path, enum store_mode mode)
{
	struct err err = { 0 };
	struct store *s = NULL;

	CHECK_OK(store_open(path, mode, &s, &err), &err);
	return s;
}

static inline int run_all(const char *name)
{
	struct test_rng rng = { test_seed() };

	kept_number = test_rand(&rng) | SPECIMEN_SMALL;
	tried_number = test_rand(&rng) | SPECIMEN_SMALL;
	disk_install();
	return test_run_all(name);
}
