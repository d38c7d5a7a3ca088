/*
 * partly-fixture.h - a clone with two large files, all of which is promised, and what stands behind the promise.
 */
#pragma once

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/sys.h"
#include "cowfs/store/catalog.h"
#include "cowfs/store/content.h"
#include "tests/lib/live.h"

#define BLOCK ((uint64_t)CHUNK_SIZE_MAX)
#define SIZE  (160 * BLOCK + 1234) /* more than 8 MiB */

/* What stands behind the promise of one file, and what was asked of it. */
struct behind {
	struct live *v;
	struct object_id promise;
	uint8_t *bytes; /* owned */
	unsigned kept, peeked, hurried;
	size_t peek_max;
	bool lost, unsure, failing;
	struct content content;

	/* `keep` waits at a gate that is shut, and says that it does. */
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool shut, waits;
};

static inline void put_bytes(struct behind *b)
{
	CLEANUP(batch_end_p) struct batch *batch = stock_begin(b->v->store);
	struct err err = { 0 };

	CHECK_OK(content_put(batch, b->bytes, SIZE, &b->content, &err), &err);
	stock_commit(batch);
}

static inline void pass_gate(struct behind *b)
{
	pthread_mutex_lock(&b->lock);
	b->waits = b->shut;
	pthread_cond_broadcast(&b->changed);
	while (b->shut)
		pthread_cond_wait(&b->changed, &b->lock);
	b->waits = false;
	pthread_mutex_unlock(&b->lock);
}

static inline int keep(const struct object_id *promise, struct content *ret, void *ctx,
		       struct err *err)
{
	struct behind *b = ctx;

	CHECK(object_id_equal(promise, &b->promise));
	pass_gate(b);
	if (b->lost)
		return err_set(err, -EIO, "'big' was changed before it was captured");
	if (b->failing)
		return err_set(err, -EIO, "the disk of the store does not answer");
	if (b->kept++ == 0)
		put_bytes(b);
	*ret = b->content;
	return 0;
}

static inline ssize_t peek(const struct object_id *promise, uint64_t off, void *data, size_t len,
			   void *ctx)
{
	struct behind *b = ctx;

	CHECK(object_id_equal(promise, &b->promise));
	if (b->lost || b->failing || off >= SIZE)
		return -EAGAIN;
	len = len < SIZE - off ? len : SIZE - off;
	memcpy(data, b->bytes + off, len);
	b->peeked++;
	b->peek_max = len > b->peek_max ? len : b->peek_max;
	return (ssize_t)len;
}

static inline int hurry(const struct object_id *promise, void *ctx)
{
	struct behind *b = ctx;

	CHECK(object_id_equal(promise, &b->promise));
	b->hurried++;
	return b->lost ? -EIO : b->unsure || b->kept > 0 ? 0 : 1;
}

/* The clone has two files, "big" and "twin", all of which is promised. */
static inline struct object_id put_root(struct behind *b)
{
	CLEANUP(batch_end_p) struct batch *batch = stock_begin(b->v->store);
	CLEANUP(tree_builder_free_p) struct tree_builder *t = NULL;
	struct tree_entry e = { .name = "big",
				.name_len = 3,
				.form = TREE_LAZY,
				.mode = S_IFREG | 0644,
				.ino = 7,
				.id = b->promise,
				.size = SIZE,
				.data = SIZE };
	struct root root = {
		.top = { .name = ROOT_TOP,
			 .name_len = strlen(ROOT_TOP),
			 .form = TREE_DIR,
			 .mode = S_IFDIR | 0755,
			 .ino = 2,
			 .nlink = 2 },
	};
	struct clone clone = { .name = (char[]){ "work" } };
	struct err err = { 0 };

	CHECK_OK(tree_builder_new(batch, &t, &err), &err);
	CHECK_OK(tree_builder_add(t, &e, &err), &err);
	e.name = "twin";
	e.name_len = 4;
	e.ino = 8;
	CHECK_OK(tree_builder_add(t, &e, &err), &err);
	CHECK_OK(tree_builder_finish(t, &root.top.id, &root.top.below, &err), &err);
	CHECK_OK(root_put(batch, &root, &clone.root, &err), &err);
	CHECK_OK(clone_put(batch, &clone, REF_REPLACE, &err), &err);
	stock_commit(batch);
	return clone.root;
}

/* Nothing is persisted unless it is asked for, or v->options say when. */
static inline void begin(struct live *v, struct behind *b, const char *name)
{
	struct test_rng rng = { .s = 23 };
	struct err err = { 0 };

	*b = (struct behind){ .v = v, .bytes = malloc(SIZE) };
	pthread_mutex_init(&b->lock, NULL);
	sys_cond_init(&b->changed);
	CHECK(b->bytes);
	for (size_t i = 0; i < SIZE; i++)
		b->bytes[i] = (uint8_t)(test_rand(&rng) | 1);
	memset(b->promise.b, 7, sizeof(b->promise.b));
	if (v->options.persist_ms == 0)
		v->options.persist_ms = 3600 * 1000;
	v->options.source =
	    (struct layers_source){ .keep = keep, .peek = peek, .hurry = hurry, .ctx = b };
	live_open(v, name);
	layer_discard(TAKE_PTR(v->l));
	put_root(b);
	CHECK_OK(layer_open(v->layers, "work", &v->l, &err), &err);
}

static inline void behind_done(struct behind *b)
{
	pthread_cond_destroy(&b->changed);
	pthread_mutex_destroy(&b->lock);
	free(b->bytes);
}
