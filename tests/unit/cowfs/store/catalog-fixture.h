/*
 * catalog-fixture.h - for tests of the catalog: a store to fill, samples of its records, and visits
 * that note what they saw.
 */
#pragma once

#include <errno.h>
#include <stdio.h>

#include "base/le.h"
#include "cowfs/store/catalog.h"
#include "tests/lib/stock.h"
#include "tests/lib/test.h"

#define TEXT_MAX ((size_t)64 << 10)

/* A store of its own for each test, a batch to write to it, and a tree for roots to name. */
struct shelf {
	struct store *s;
	struct batch *b;
	struct object_id root;
};

/* End the batch, committed or not, and begin another. */
static inline void shelf_next(struct shelf *sh)
{
	batch_end(sh->b);
	sh->b = stock_begin(sh->s);
	sh->root = stock_put_root(sh->b, "text");
}

static inline struct shelf shelf_new(const char *name)
{
	struct shelf sh = { .s = stock_open(test_path(name), STORE_CREATE) };

	shelf_next(&sh);
	return sh;
}

static inline void shelf_done(struct shelf *sh)
{
	batch_end(sh->b);
	store_close(sh->s);
}

/* What was put so far can now be read. */
static inline void shelf_commit(struct shelf *sh)
{
	stock_commit(sh->b);
	shelf_next(sh);
}

static char path[] = "/home/a b/\xff\n", message[] = "before the\nstep \xe2\x82\xac";
static char clone_name[] = "try-1";
static char lacks[] = "a b//c/\xff";
static char meta[] = "step=1\nwho=me";
static char image[] = "{\"config\":{}}";
static char part[] = "some/where";

/* The bytes by which the labels of the sample lengthen it. */
#define META_SIZE  (4 + sizeof(meta) - 1)
#define IMAGE_SIZE (4 + sizeof(image) - 1)
#define PART_SIZE  (4 + sizeof(part) - 1)

static const struct catalog_id id_a = { { 0, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77 } };
static const struct catalog_id id_b = { { 0, 0x11, 0x22, 0x3f, 0xff, 0xff, 0xff, 0xff } };
static const struct catalog_id id_c = { { 0xfe, 1, 2, 3, 4, 5, 6, 7 } };

static inline struct project sample_project(const struct catalog_id *id)
{
	return (struct project){ .id = *id, .path = path, .created = -2 };
}

static inline struct snapshot sample_snapshot(const struct shelf *sh, const struct catalog_id *id)
{
	return (struct snapshot){
		.id = *id,
		.root = sh->root,
		.parent = id_b,
		.project = id_c,
		.clone = clone_name,
		.message = message,
		.created = INT64_MIN,
		.files = 3,
		.bytes = UINT64_MAX,
		.lacks = lacks,
		.meta = meta,
		.image = image,
		.part = part,
		.base = id_a,
		.made = SNAPSHOT_MADE_AUTOMATICALLY,
	};
}

static inline struct clone sample_clone(const struct shelf *sh, char *name)
{
	return (struct clone){
		.name = name,
		.root = sh->root,
		.base = id_a,
		.project = id_c,
		.created = 1,
		.expires = INT64_MAX,
		.quota = UINT64_MAX - 1,
		.next_ino = UINT64_MAX,
		.grown = -5,
		.strict = 1,
		.private = 1,
		.no_xattrs = 2,
		.run = UINT64_MAX,
		.start = id_b,
		.owner = UINT64_MAX - 2,
	};
}

static inline void put_snapshot(struct shelf *sh, const struct catalog_id *id)
{
	const struct snapshot s = sample_snapshot(sh, id);
	struct err err = { 0 };

	CHECK_OK(snapshot_put(sh->b, &s, REF_NEW, &err), &err);
}

static inline void put_tag(struct shelf *sh, char *name, const struct catalog_id *id)
{
	const struct tag t = { .name = name, .snapshot = *id };
	struct err err = { 0 };

	CHECK_OK(tag_put(sh->b, &t, REF_NEW, &err), &err);
}

static inline bool same_id(const struct catalog_id *a, const struct catalog_id *b)
{
	return memcmp(a, b, sizeof(*a)) == 0;
}

/* The first byte of each id or name, in the order of visits; stops after `most`. */
struct seen {
	char marks[8];
	size_t n, most;
};

static inline int note(struct seen *s, char mark)
{
	s->marks[s->n++] = mark;
	return s->n == s->most ? 7 : 0;
}

static inline int note_project(const struct project *p, void *ctx, struct err *err)
{
	CHECK_STR(p->path, path);
	return note(ctx, (char)p->id.b[0]);
}

static inline int note_snapshot(const struct snapshot *s, void *ctx, struct err *err)
{
	CHECK_STR(s->message, message);
	return note(ctx, (char)s->id.b[3]);
}

static inline int note_tag(const struct tag *t, void *ctx, struct err *err)
{
	return note(ctx, t->name[0]);
}

static inline int note_clone(const struct clone *c, void *ctx, struct err *err)
{
	CHECK(same_id(&c->base, &id_a));
	return note(ctx, c->name[0]);
}
