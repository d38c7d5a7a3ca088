#include "base/buf.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/le.h"

#define BUF_CAP_MIN 64

void buf_done(struct buf *b)
{
	free(b->data);
	*b = BUF_INIT;
}

void buf_reset(struct buf *b)
{
	b->len = 0;
}

void buf_swap(struct buf *a, struct buf *b)
{
	struct buf t = *a;

	*a = *b;
	*b = t;
}

int buf_reserve(struct buf *b, size_t extra)
{
	size_t need, cap;
	unsigned char *p;

	if (extra <= b->cap - b->len)
		return 0;
	if (__builtin_add_overflow(b->len, extra, &need) || need > PTRDIFF_MAX)
		return -ENOMEM;

	cap = b->cap < BUF_CAP_MIN ? BUF_CAP_MIN : b->cap;
	while (cap < need)
		if (__builtin_mul_overflow(cap, (size_t)2, &cap))
			cap = need;
	p = realloc(b->data, cap);
	if (!p)
		return -ENOMEM;
	b->data = p;
	b->cap = cap;
	return 0;
}

void *buf_extend(struct buf *b, size_t n)
{
	void *p;

	/* For n = 0 too the answer must not be NULL. */
	if (buf_reserve(b, n > 0 ? n : 1) < 0)
		return NULL;
	p = b->data + b->len;
	b->len += n;
	return p;
}

int buf_append(struct buf *b, const void *data, size_t len)
{
	void *p;

	if (len == 0)
		return 0;
	p = buf_extend(b, len);
	if (!p)
		return -ENOMEM;
	memcpy(p, data, len);
	return 0;
}

int buf_append_str(struct buf *b, const char *s)
{
	return buf_append(b, s, strlen(s));
}

int buf_append_zero(struct buf *b, size_t n)
{
	void *p = buf_extend(b, n);

	if (!p)
		return -ENOMEM;
	memset(p, 0, n);
	return 0;
}

int buf_append_u8(struct buf *b, uint8_t v)
{
	return buf_append(b, &v, 1);
}

int buf_append_u32(struct buf *b, uint32_t v)
{
	unsigned char bytes[4];

	le32_store(bytes, v);
	return buf_append(b, bytes, sizeof(bytes));
}

int buf_append_u64(struct buf *b, uint64_t v)
{
	unsigned char bytes[8];

	le64_store(bytes, v);
	return buf_append(b, bytes, sizeof(bytes));
}

static int append_formatted(struct buf *b, const char *fmt, va_list ap) PRINTF_LIKE(2, 0);

static int append_formatted(struct buf *b, const char *fmt, va_list ap)
{
	va_list again;
	int n;

	va_copy(again, ap);
	n = vsnprintf(NULL, 0, fmt, again);
	va_end(again);
	if (n < 0)
		return -ENOMEM;

	/* The NUL that vsnprintf() insists on is not part of the content. */
	if (buf_reserve(b, (size_t)n + 1) < 0)
		return -ENOMEM;
	vsnprintf((char *)b->data + b->len, (size_t)n + 1, fmt, ap);
	b->len += (size_t)n;
	return 0;
}

int buf_printf(struct buf *b, const char *fmt, ...)
{
	va_list ap;
	int r;

	va_start(ap, fmt);
	r = append_formatted(b, fmt, ap);
	va_end(ap);
	return r;
}

const char *buf_str(struct buf *b)
{
	if (buf_reserve(b, 1) < 0)
		return NULL;
	b->data[b->len] = '\0';
	return (const char *)b->data;
}
