/*
 * buf.h - a growing run of bytes.
 *
 * Growth is checked: a function that may grow returns 0, or -ENOMEM with nothing changed. Integers
 * are appended little-endian, as in every format of ours.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"

struct buf {
	unsigned char *data; /* owned */
	size_t len;
	size_t cap;
};

#define BUF_INIT ((struct buf){ 0 })

void buf_done(struct buf *b);  /* frees; the buffer is then empty and usable */
void buf_reset(struct buf *b); /* length 0, memory kept */
void buf_swap(struct buf *a, struct buf *b);

/* Make room for `extra` bytes behind the present end. */
NODISCARD int buf_reserve(struct buf *b, size_t extra);

/* Lengthen by `n` bytes of undefined content and point at them; NULL when out of memory. */
NODISCARD void *buf_extend(struct buf *b, size_t n);

NODISCARD int buf_append(struct buf *b, const void *data, size_t len);
NODISCARD int buf_append_str(struct buf *b, const char *s); /* without the NUL */
NODISCARD int buf_append_zero(struct buf *b, size_t n);
NODISCARD int buf_append_u8(struct buf *b, uint8_t v);
NODISCARD int buf_append_u32(struct buf *b, uint32_t v);
NODISCARD int buf_append_u64(struct buf *b, uint64_t v);
NODISCARD int buf_printf(struct buf *b, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* The content as a C string, borrowed until the next change; NULL when out of memory. */
NODISCARD const char *buf_str(struct buf *b);
