/*
 * batch-fixture.h - for tests of batches: short texts as chunks.
 */
#pragma once

#include <errno.h>
#include <string.h>

#include "tests/lib/stock.h"

static inline int put_text(struct batch *b, const char *text)
{
	struct object_id id;
	struct err err = { 0 };
	int r = batch_put(b, OBJECT_CHUNK, text, strlen(text), &id, &err);

	CHECK_OK(r, &err);
	return r;
}

static inline bool has_text(struct store *s, const char *text)
{
	const struct object_id id = object_id_of(store_key(s), OBJECT_CHUNK, text, strlen(text));
	CLEANUP(buf_done) struct buf out = BUF_INIT;
	struct err err = { 0 };
	int r = store_get(s, OBJECT_CHUNK, &id, &out, &err);

	CHECK_OK(r == -ENOENT ? 0 : r, &err);
	if (r == 0)
		CHECK_MEM(out.data, out.len, text, strlen(text));
	return r == 0;
}
