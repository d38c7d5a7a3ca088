#include "tests/crash/heap.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sqlite3.h>
#include <zstd.h>

static bool armed, persists;
static uint64_t calls, fail_at, hits;
static enum heap_whose victim;
static int64_t blocks, sqlite_blocks;
static sqlite3_mem_methods sqlite_mem;

void heap_fail_at(uint64_t n, enum heap_whose whose, bool onwards)
{
	assert(n > 0);
	calls = 0;
	hits = 0;
	fail_at = n;
	victim = whose;
	persists = onwards;
	armed = true;
}

uint64_t heap_calm(void)
{
	armed = false;
	return hits;
}

int64_t heap_live(void)
{
	return blocks + sqlite_blocks;
}

int64_t heap_ours(void)
{
	return blocks;
}

static bool refused(enum heap_whose whose)
{
	if (!armed || (victim != HEAP_ALL && victim != whose))
		return false;
	calls++;
	if (persists ? calls < fail_at : calls != fail_at)
		return false;
	hits++;
	errno = ENOMEM;
	return true;
}

static void *given(void *p)
{
	if (p)
		blocks++;
	return p;
}

/* --- in the place of libc's --------------------------------------------------------------- */

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
void *__real_reallocarray(void *p, size_t n, size_t size);
char *__real_strdup(const char *s);
char *__real_strndup(const char *s, size_t n);
int __real_vasprintf(char **ret, const char *fmt, va_list ap);
void __real_free(void *p);

void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);
void *__wrap_reallocarray(void *p, size_t n, size_t size);
char *__wrap_strdup(const char *s);
char *__wrap_strndup(const char *s, size_t n);
int __wrap_vasprintf(char **ret, const char *fmt, va_list ap);
int __wrap_asprintf(char **ret, const char *fmt, ...);
int __wrap___vasprintf_chk(char **ret, int flag, const char *fmt, va_list ap);
int __wrap___asprintf_chk(char **ret, int flag, const char *fmt, ...);
void __wrap_free(void *p);

void *__wrap_malloc(size_t n)
{
	return refused(HEAP_OURS) ? NULL : given(__real_malloc(n));
}

void *__wrap_calloc(size_t n, size_t size)
{
	return refused(HEAP_OURS) ? NULL : given(__real_calloc(n, size));
}

void *__wrap_realloc(void *p, size_t n)
{
	void *q;

	if (refused(HEAP_OURS))
		return NULL;
	q = __real_realloc(p, n);
	return p ? q : given(q);
}

void *__wrap_reallocarray(void *p, size_t n, size_t size)
{
	void *q;

	if (refused(HEAP_OURS))
		return NULL;
	q = __real_reallocarray(p, n, size);
	return p ? q : given(q);
}

char *__wrap_strdup(const char *s)
{
	return refused(HEAP_OURS) ? NULL : given(__real_strdup(s));
}

char *__wrap_strndup(const char *s, size_t n)
{
	return refused(HEAP_OURS) ? NULL : given(__real_strndup(s, n));
}

int __wrap_vasprintf(char **ret, const char *fmt, va_list ap)
{
	int n;

	if (refused(HEAP_OURS))
		return -1;
	n = __real_vasprintf(ret, fmt, ap);
	if (n >= 0)
		blocks++;
	return n;
}

int __wrap_asprintf(char **ret, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = __wrap_vasprintf(ret, fmt, ap);
	va_end(ap);
	return n;
}

int __wrap___vasprintf_chk(char **ret, int flag, const char *fmt, va_list ap)
{
	(void)flag;
	return __wrap_vasprintf(ret, fmt, ap);
}

int __wrap___asprintf_chk(char **ret, int flag, const char *fmt, ...)
{
	va_list ap;
	int n;

	(void)flag;
	va_start(ap, fmt);
	n = __wrap_vasprintf(ret, fmt, ap);
	va_end(ap);
	return n;
}

void __wrap_free(void *p)
{
	if (p)
		blocks--;
	__real_free(p);
}

/* --- of zstd ------------------------------------------------------------------------------ */

ZSTD_CCtx *__real_ZSTD_createCCtx(void);
ZSTD_DCtx *__real_ZSTD_createDCtx(void);
size_t __real_ZSTD_freeCCtx(ZSTD_CCtx *c);
size_t __real_ZSTD_freeDCtx(ZSTD_DCtx *c);
size_t __real_ZSTD_compress2(ZSTD_CCtx *c, void *out, size_t room, const void *in, size_t len);

ZSTD_CCtx *__wrap_ZSTD_createCCtx(void);
ZSTD_DCtx *__wrap_ZSTD_createDCtx(void);
size_t __wrap_ZSTD_freeCCtx(ZSTD_CCtx *c);
size_t __wrap_ZSTD_freeDCtx(ZSTD_DCtx *c);
size_t __wrap_ZSTD_compress2(ZSTD_CCtx *c, void *out, size_t room, const void *in, size_t len);

ZSTD_CCtx *__wrap_ZSTD_createCCtx(void)
{
	return refused(HEAP_OURS) ? NULL : given(__real_ZSTD_createCCtx());
}

ZSTD_DCtx *__wrap_ZSTD_createDCtx(void)
{
	return refused(HEAP_OURS) ? NULL : given(__real_ZSTD_createDCtx());
}

size_t __wrap_ZSTD_freeCCtx(ZSTD_CCtx *c)
{
	if (c)
		blocks--;
	return __real_ZSTD_freeCCtx(c);
}

size_t __wrap_ZSTD_freeDCtx(ZSTD_DCtx *c)
{
	if (c)
		blocks--;
	return __real_ZSTD_freeDCtx(c);
}

/* A context makes its tables when it is first used, and says so with this code of zstd_errors.h. */
size_t __wrap_ZSTD_compress2(ZSTD_CCtx *c, void *out, size_t room, const void *in, size_t len)
{
	return refused(HEAP_OURS) ? (size_t)-64 : __real_ZSTD_compress2(c, out, room, in, len);
}

/* --- of SQLite ---------------------------------------------------------------------------- */

static void *sqlite_malloc(int n)
{
	void *p = refused(HEAP_SQLITE) ? NULL : sqlite_mem.xMalloc(n);

	if (p)
		sqlite_blocks++;
	return p;
}

static void *sqlite_realloc(void *p, int n)
{
	return refused(HEAP_SQLITE) ? NULL : sqlite_mem.xRealloc(p, n);
}

static void sqlite_free(void *p)
{
	if (p)
		sqlite_blocks--;
	sqlite_mem.xFree(p);
}

void heap_install(void)
{
	sqlite3_mem_methods ours;
	int rc;

	rc = sqlite3_config(SQLITE_CONFIG_GETMALLOC, &sqlite_mem);
	assert(rc == SQLITE_OK);
	ours = sqlite_mem;
	ours.xMalloc = sqlite_malloc;
	ours.xRealloc = sqlite_realloc;
	ours.xFree = sqlite_free;
	rc = sqlite3_config(SQLITE_CONFIG_MALLOC, &ours);
	assert(rc == SQLITE_OK);
	(void)rc;
}
