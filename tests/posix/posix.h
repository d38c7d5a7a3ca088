/*
 * posix.h - what the themes of the POSIX exerciser share.
 *
 * CASE(theme, a_promise) { ... } registers itself.  Each case runs in a process and in an
 * empty directory of its own, which is its working directory, with umask 022; it may
 * change ids, limits, umask and signals as it likes.
 *
 * A check that fails prints place, expression and errno and goes on, so that one run
 * shows everything that is wrong; NEED() ends the case, for what the rest stands on.
 */
#pragma once

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#include "base/attr.h"
#include "base/cleanup.h"

typedef void (*case_fn)(void);

void case_register(const char *theme, const char *name, case_fn fn);

#define CASE(theme, name)                                              \
	static void name(void);                                        \
	__attribute__((constructor)) static void register_##name(void) \
	{                                                              \
		case_register(#theme, #name, name);                    \
	}                                                              \
	static void name(void)

/* A call that must succeed; its result.  An int is enough: descriptors, counts, 0. */
#define OK(call)   check_ok((intmax_t)(call), #call, __FILE__, __LINE__, false)
#define NEED(call) check_ok((intmax_t)(call), #call, __FILE__, __LINE__, true)

/* A call that must fail with one of the errnos; a second one only where POSIX allows both. */
#define FAILS(call, ...) \
	check_fails((intmax_t)(call), #call, __FILE__, __LINE__, (const int[]){ __VA_ARGS__, 0 })

#define IS(a, b)   check_is((intmax_t)(a), (intmax_t)(b), #a, #b, __FILE__, __LINE__)
#define TRUE(cond) check_true((cond), #cond, __FILE__, __LINE__)

/* A check with words of its own, for the thousandth turn of a loop. */
#define SAY_IF(bad, ...) check_say((bad), __FILE__, __LINE__, __VA_ARGS__)

intmax_t check_ok(intmax_t r, const char *text, const char *file, int line, bool need);
void check_fails(intmax_t r, const char *text, const char *file, int line, const int *errnos);
bool check_is(intmax_t a, intmax_t b, const char *at, const char *bt, const char *file, int line);
bool check_true(bool cond, const char *text, const char *file, int line);
bool check_say(bool bad, const char *file, int line, const char *fmt, ...) PRINTF_LIKE(4, 5);

/* What was being tried, printed with every failure until the next one; "" for nothing. */
void trying(const char *fmt, ...) PRINTF_LIKE(1, 2);

/* A line of the report. */
void note(const char *fmt, ...) PRINTF_LIKE(1, 2);

NORETURN void skip(const char *fmt, ...) PRINTF_LIKE(1, 2);
void need_root(void);
/* Root, and a file system that lets other users in. */
void need_other_user(void);

/* An ordinary user and group that own nothing, and a second one. */
#define OTHER  ((uid_t)54321)
#define OTHER2 ((uid_t)54322)

/* Run fn(arg) in a child, as this user with only that group (or as now: KEEP); its failures count. */
#define KEEP ((uid_t)-1)
void as_user(uid_t uid, gid_t gid, void (*fn)(void *arg), void *arg);

/* Start fn(arg) in a child, and gather it; its failures count. */
pid_t start(void (*fn)(void *arg), void *arg);
void gather(pid_t pid);

/* Let the clocks that stamp files move on. */
void tick(void);
double now_s(void);

/* --- fixtures: they end the case if they fail ---------------------------------------------- */

enum kind { FILE_, DIR_, FULL_DIR, LINK_FILE, LINK_DIR, LINK_NONE, FIFO_, SOCKET_, KINDS };
const char *kind_name(enum kind k);
bool kind_is_dir(enum kind k);
/* Something of that kind; what a link points to is made beside it where need be. */
void make(enum kind k, const char *path);
void make_file(const char *path, const char *content);
void make_socket(const char *path);
/* Remove it and all below it; nothing is fine. */
void remove_all(const char *path);

int open_new(const char *path); /* O_RDWR | O_CREAT | O_EXCL, 0644 */

struct stat stat_of(const char *path); /* not through a symlink */
struct stat stat_fd(int fd);
ino_t ino_of(const char *path);
int nlink_of(const char *path);
off_t size_of(const char *path);
bool exists(const char *path);
const char *dir_under_test(void);

/* A name of n bytes that ends in a number; good until the next call but seven. */
const char *name_of(size_t n, unsigned number);

/* --- bytes ------------------------------------------------------------------------------------ */

/* Bytes that tell where they are: a function of offset and seed. */
void pattern(void *data, size_t len, uint64_t off, unsigned seed);
void write_pattern(int fd, uint64_t off, size_t len, unsigned seed);
#define PATTERN_AT(fd, off, len, seed) check_pattern(fd, off, len, seed, __FILE__, __LINE__)
#define ZEROS_AT(fd, off, len)         check_zeros(fd, off, len, __FILE__, __LINE__)
#define CONTENT_IS(path, text)         check_content(path, text, __FILE__, __LINE__)
bool check_pattern(int fd, uint64_t off, size_t len, unsigned seed, const char *file, int line);
bool check_zeros(int fd, uint64_t off, size_t len, const char *file, int line);
bool check_content(const char *path, const char *text, const char *file, int line);

struct rng {
	uint64_t s;
};
uint64_t rng_next(struct rng *r);
uint64_t rng_below(struct rng *r, uint64_t n);

/* --- times --------------------------------------------------------------------------------------- */

struct stamp {
	struct timespec a, m, c;
};
struct stamp stamp_of(const char *path);
enum stamp_moves { MOVES_NOTHING = 0, MOVES_M = 1, MOVES_C = 2, MOVES_MC = 3 };
/* Which of mtime and ctime are later than they were, and that the others are the same. */
#define MOVED(path, was, moves) check_moved(path, was, moves, __FILE__, __LINE__)
void check_moved(const char *path, struct stamp was, enum stamp_moves moves, const char *file,
		 int line);
int time_cmp(struct timespec a, struct timespec b);
