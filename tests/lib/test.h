/*
 * test.h - a thin layer on cmocka: tests named as promises, checks that print both sides.
 *
 * TEST(a_promise) { ... } registers itself; TEST_MAIN("module") at the end of the
 * file runs them all and prints TAP.  TEST_SKIP("why") leaves a test with its
 * reason; with SNAP_TESTS_NO_SKIP=1 in the environment that is a failure.
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/attr.h"
#include "base/cleanup.h"
#include "base/err.h"

typedef void (*test_fn)(void **state);

void test_register(const char *name, test_fn fn);
int test_run_all(const char *group);

#define TEST(name)                                                     \
	static void name(void **state);                                \
	__attribute__((constructor)) static void register_##name(void) \
	{                                                              \
		test_register(#name, name);                            \
	}                                                              \
	static void name(void **state __attribute__((unused)))

#define TEST_MAIN(group)                    \
	int main(void)                      \
	{                                   \
		return test_run_all(group); \
	}

/* Each evaluates its arguments once and names file, line and both values when it fails. */
#define CHECK(cond)                 test_check((cond), #cond, __FILE__, __LINE__)
#define CHECK_EQ(a, b)              test_check_eq((intmax_t)(a), (intmax_t)(b), #a, #b, __FILE__, __LINE__)
#define CHECK_STR(a, b)             test_check_str((a), (b), #a, #b, __FILE__, __LINE__)
#define CHECK_MEM(a, alen, b, blen) test_check_mem((a), (alen), (b), (blen), #a, __FILE__, __LINE__)
#define CHECK_OK(expr, err)         test_check_ok((expr), (err), #expr, __FILE__, __LINE__)
#define CHECK_HAS(haystack, needle) test_check_has((haystack), (needle), __FILE__, __LINE__)

void test_check(bool ok, const char *text, const char *file, int line);
void test_check_eq(intmax_t a, intmax_t b, const char *at, const char *bt, const char *file,
		   int line);
void test_check_str(const char *a, const char *b, const char *at, const char *bt, const char *file,
		    int line);
void test_check_mem(const void *a, size_t alen, const void *b, size_t blen, const char *at,
		    const char *file, int line);
void test_check_ok(int r, const struct err *err, const char *text, const char *file, int line);
void test_check_has(const char *haystack, const char *needle, const char *file, int line);

/* Wait until `cond` holds, for what nothing announces; after a minute the test fails.  Not in threads of the product. */
#define WAIT_FOR(cond)                               \
	for (unsigned waits_ = 0; !(cond); waits_++) \
	test_wait(waits_, #cond, __FILE__, __LINE__)
void test_wait(unsigned waits, const char *text, const char *file, int line);

NORETURN void test_skip(const char *why, const char *file, int line);
#define TEST_SKIP(why) test_skip((why), __FILE__, __LINE__)

/* A directory of this test program's own, made at first use and removed with all in it at exit. */
const char *test_dir(void);

/* test_dir()/name, in a buffer that lives as long as the program. */
const char *test_path(const char *name);

/* A small repeatable generator, so that a failing seed can be printed and run again. */
struct test_rng {
	uint64_t s;
};
uint64_t test_rand(struct test_rng *r);
uint64_t test_seed(void); /* from SNAP_TEST_SEED, else random; printed as a TAP comment */

/*
 * The step from one place to the next in a walk over every call that can fail.  With
 * SNAP_TESTS_LONG it is 1; otherwise 1 to 5 by the seed, so each run tries another third.
 */
unsigned test_stride(void);
