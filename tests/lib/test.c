#include "tests/lib/test.h"

#include <errno.h>
#include <ftw.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/path.h"
#include "base/sys.h"

#define WAITS_MAX 60000 /* of a millisecond */

struct registered {
	test_fn fn;
	char name[256]; /* what TAP shows: the test's name and, if it was skipped, why */
};

static struct registered *tests; /* owned, for the life of the program */
static size_t n_tests;

/* The process that runs the tests.  A forked child must not jump back into cmocka. */
static pid_t runner;

NORETURN static void out_of_memory(void)
{
	fputs("Bail out! out of memory\n", stdout);
	fflush(stdout);
	_exit(1);
}

void test_register(const char *name, test_fn fn)
{
	struct registered *more = realloc(tests, (n_tests + 1) * sizeof(*tests));

	if (!more)
		out_of_memory();
	tests = more;
	tests[n_tests].fn = fn;
	snprintf(tests[n_tests].name, sizeof(tests[n_tests].name), "%s", name);
	n_tests++;
}

static struct registered *running;
static jmp_buf after_skip;

/*
 * cmocka 1.1.5 prints a test that called skip() as "not ok 1 # SKIP name", which
 * Meson counts as a failure.  So a skip ends the test here, as passed, and puts the
 * directive into the name, which cmocka prints after the test.
 */
static void run_one(void **state)
{
	running = *state;
	if (setjmp(after_skip) == 0)
		running->fn(state);
}

int test_run_all(const char *group)
{
	struct CMUnitTest *list = calloc(n_tests, sizeof(*list));
	size_t i;
	int failed;

	if (!list)
		out_of_memory();
	for (i = 0; i < n_tests; i++)
		list[i] = (struct CMUnitTest){
			.name = tests[i].name,
			.test_func = run_one,
			.initial_state = &tests[i],
		};
	runner = getpid();
	/* By lines, so that a child that exits has nothing of its parent's left to flush. */
	setvbuf(stdout, NULL, _IOLBF, 0);
	cmocka_set_message_output(CM_OUTPUT_TAP);
	failed = _cmocka_run_group_tests(group, list, n_tests, NULL, NULL);
	free(list);
	return failed != 0;
}

/* A line break would start a line that TAP reads as its own. */
static void flatten(char *text)
{
	for (; (text = strchr(text, '\n')); text++)
		*text = ' ';
}

/* A TAP comment. */
static void say(const char *fmt, ...) PRINTF_LIKE(1, 2);

static void say(const char *fmt, ...)
{
	char text[4096];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	flatten(text);
	printf("# %s\n", text);
	fflush(stdout);
}

NORETURN static void fail_at(const char *file, int line)
{
	if (getpid() != runner)
		_exit(1);
	_fail(file, line);
	abort();
}

void test_check(bool ok, const char *text, const char *file, int line)
{
	if (ok)
		return;
	say("%s:%d: %s is false", file, line, text);
	fail_at(file, line);
}

void test_wait(unsigned waits, const char *text, const char *file, int line)
{
	const struct timespec nap = { .tv_nsec = 1000000 };

	if (waits >= WAITS_MAX) {
		say("%s:%d: waited in vain for %s", file, line, text);
		fail_at(file, line);
	}
	nanosleep(&nap, NULL);
}

void test_check_eq(intmax_t a, intmax_t b, const char *at, const char *bt, const char *file,
		   int line)
{
	if (a == b)
		return;
	say("%s:%d: %s is %jd, want %s = %jd", file, line, at, a, bt, b);
	fail_at(file, line);
}

void test_check_str(const char *a, const char *b, const char *at, const char *bt, const char *file,
		    int line)
{
	if (a == b || (a && b && strcmp(a, b) == 0))
		return;
	say("%s:%d: %s is \"%s\", want %s = \"%s\"", file, line, at, a ? a : "(null)", bt,
	    b ? b : "(null)");
	fail_at(file, line);
}

void test_check_mem(const void *a, size_t alen, const void *b, size_t blen, const char *at,
		    const char *file, int line)
{
	const unsigned char *p = a, *q = b;
	const size_t common = alen < blen ? alen : blen;
	size_t i = 0;

	while (i < common && p[i] == q[i])
		i++;
	if (i == alen && i == blen)
		return;
	if (i < common)
		say("%s:%d: %s differs at byte %zu: is 0x%02x, want 0x%02x (%zu and %zu bytes)",
		    file, line, at, i, p[i], q[i], alen, blen);
	else
		say("%s:%d: %s has %zu bytes, want %zu", file, line, at, alen, blen);
	fail_at(file, line);
}

void test_check_ok(int r, const struct err *err, const char *text, const char *file, int line)
{
	char why[128];

	if (r >= 0)
		return;
	say("%s:%d: %s is %d: %s", file, line, text, r,
	    err && err->code == r ? err->msg : sys_errno_text(-r, why, sizeof(why)));
	fail_at(file, line);
}

void test_check_has(const char *haystack, const char *needle, const char *file, int line)
{
	if (strstr(haystack, needle))
		return;
	say("%s:%d: \"%s\" does not hold \"%s\"", file, line, haystack, needle);
	fail_at(file, line);
}

/* One that was skipped jumped over its clean-up: what it had is no leak.  LeakSanitizer asks this. */
static bool any_skipped;

__attribute__((visibility("default"))) int __lsan_is_turned_off(void);

int __lsan_is_turned_off(void)
{
	return any_skipped;
}

void test_skip(const char *why, const char *file, int line)
{
	const char *strict = getenv("SNAP_TESTS_NO_SKIP");
	size_t len;

	say("skip: %s", why);
	if (strict && strcmp(strict, "1") == 0) {
		say("%s:%d: SNAP_TESTS_NO_SKIP=1 makes this a failure", file, line);
		fail_at(file, line);
	}
	if (getpid() != runner)
		_exit(0);
	any_skipped = true;
	len = strlen(running->name);
	snprintf(running->name + len, sizeof(running->name) - len, " # SKIP %s", why);
	flatten(running->name);
	longjmp(after_skip, 1);
}

static char *dir; /* owned; NULL until the first test_dir() */
static pid_t dir_maker;

static int open_up(const char *path, const struct stat *st, int type, struct FTW *at)
{
	if (type == FTW_D && (st->st_mode & 0700) != 0700)
		IGNORE_RESULT(chmod(path, 0700), "remove_one() reports what stays");
	return 0;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
	if (remove(path) < 0)
		say("left behind: %s", path);
	return 0;
}

static void remove_dir(void)
{
	if (getpid() != dir_maker)
		return;
	/* FTW_MOUNT: whatever a test left mounted here is not ours to empty. */
	nftw(dir, open_up, 16, FTW_PHYS | FTW_MOUNT);
	nftw(dir, remove_one, 16, FTW_PHYS | FTW_MOUNT | FTW_DEPTH);
}

const char *test_dir(void)
{
	const char *parent = getenv("SNAP_TEST_DIR");
	char *made;

	if (dir)
		return dir;
	if (!parent || *parent == '\0')
		parent = getenv("TMPDIR");
	if (!parent || *parent == '\0')
		parent = "/tmp";
	made = path_join(parent, "snap-test-XXXXXX");
	if (!made)
		out_of_memory();
	if (!mkdtemp(made)) {
		say("cannot make a directory below '%s': %s", parent, strerror(errno));
		fail_at(__FILE__, __LINE__);
	}
	dir = made;
	dir_maker = getpid();
	atexit(remove_dir);
	return dir;
}

const char *test_path(const char *name)
{
	static struct kept {
		struct kept *next;
		char *path;
	} * all;
	struct kept *k = malloc(sizeof(*k));

	if (!k)
		out_of_memory();
	k->path = path_join(test_dir(), name);
	if (!k->path)
		out_of_memory();
	k->next = all;
	all = k;
	return k->path;
}

/* SplitMix64. */
uint64_t test_rand(struct test_rng *r)
{
	uint64_t z = r->s += 0x9e3779b97f4a7c15ULL;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
	return z ^ z >> 31;
}

uint64_t test_seed(void)
{
	const char *given = getenv("SNAP_TEST_SEED");
	uint64_t seed = 0;

	if (given)
		seed = strtoull(given, NULL, 0);
	else
		IGNORE_RESULT(sys_random(&seed, sizeof(seed)), "0 is a seed too");
	say("seed: SNAP_TEST_SEED=%" PRIu64, seed);
	return seed;
}

unsigned test_stride(void)
{
	static struct test_rng rng;

	if (getenv("SNAP_TESTS_LONG"))
		return 1;
	if (rng.s == 0)
		rng.s = test_seed() | 1;
	return 1 + (unsigned)(test_rand(&rng) % 5);
}
