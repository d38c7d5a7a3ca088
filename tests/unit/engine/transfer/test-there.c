/*
 * Which packs of earlier pushes a push goes on with, and what it knows of them.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "engine/transfer/there-i.h"
#include "tests/lib/stock.h"

#define MIB ((uint64_t)1 << 20)

static void add(struct manifest *m, size_t n, uint64_t size)
{
	struct err err = { 0 };

	for (size_t i = 0; i < n; i++) {
		const struct manifest_pack p = { .pack = { digest_of(&m->n, sizeof(m->n)), size },
						 .index.size = 100 };

		CHECK_EQ(manifest_add_pack(m, &p, &err), 0);
	}
}

/* Whoever reads a manifest refuses one that lists a pack twice. */
TEST(a_pack_is_listed_once)
{
	CLEANUP(manifest_done) struct manifest m = { 0 };
	struct manifest_pack p;
	struct err err = { 0 };

	add(&m, 3, MIB);
	p = m.packs[1];
	CHECK_EQ(manifest_add_pack(&m, &p, &err), 1);
	CHECK_EQ(m.n, 3);
}

TEST(full_packs_stay_however_many_they_are)
{
	CLEANUP(manifest_done) struct manifest m = { 0 };

	add(&m, MANIFEST_PACKS_MAX / 8 * 7, 48 * MIB);
	CHECK_EQ(there_plan(&m, 1000, MANIFEST_PACKS_MAX * 48 * MIB), THERE_ALL);
	/* With the next ones there would soon be no room in a manifest. */
	add(&m, 1, 48 * MIB);
	CHECK_EQ(there_plan(&m, 1000, MANIFEST_PACKS_MAX * 48 * MIB), THERE_NONE);
}

TEST(few_packs_stay_whatever_they_hold)
{
	CLEANUP(manifest_done) struct manifest m = { 0 };

	add(&m, 128, 48 * MIB);
	CHECK_EQ(there_plan(&m, 0, 0), THERE_ALL);
}

TEST(of_many_small_packs_none_stays)
{
	CLEANUP(manifest_done) struct manifest m = { 0 };

	add(&m, 1000, 48 * MIB);
	add(&m, 128, MIB);
	CHECK_EQ(there_plan(&m, 1000, 48000 * MIB), THERE_ALL);
	add(&m, 1, MIB);
	CHECK_EQ(there_plan(&m, 1000, 48000 * MIB), THERE_LARGE);
}

TEST(packs_that_hold_far_more_than_the_snapshot_go)
{
	CLEANUP(manifest_done) struct manifest m = { 0 };

	add(&m, 1000, 48 * MIB);
	CHECK_EQ(there_plan(&m, 1000, 25000 * MIB), THERE_ALL);
	CHECK_EQ(there_plan(&m, 1000, 23000 * MIB), THERE_NONE);
	/* Names and attributes take room too. */
	CHECK_EQ(there_plan(&m, 25000 << 10, 0), THERE_ALL);
}

/* --- what they hold ----------------------------------------------------------------------- */

#define OBJECTS 10 /* of a pack */

struct place {
	struct engine engine;
	char url[512];
	struct target target;
	struct connections lines;
	struct manifest manifest;
};

static void place_open(struct place *p, const char *name)
{
	struct err err = { 0 };
	char store[512];

	*p = (struct place){ 0 };
	snprintf(store, sizeof(store), "%s", test_path("no-store"));
	p->engine.store_path = store;
	snprintf(p->url, sizeof(p->url), "dir:%s", test_path(name));
	p->target = (struct target){ .url = p->url, .name = p->url };
	CHECK_OK(connections_open(&p->engine, &p->lines, p->url, 0, 0, &err), &err);
	p->engine.store_path = NULL;
}

static void place_close(struct place *p)
{
	connections_done(&p->lines);
	manifest_done(&p->manifest);
}

static struct digest object(enum object_kind kind, unsigned pack, unsigned i, char text[64])
{
	snprintf(text, 64, "%d %u %u", (int)kind, pack, i);
	return digest_of(text, strlen(text));
}

static void put(struct place *p, enum object_kind kind, unsigned number)
{
	CLEANUP(pack_writer_free_p) struct pack_writer *w = NULL;
	CLEANUP(buf_done) struct buf index = BUF_INIT;
	AUTO_CLOSE int fd = open(test_path("new"), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	struct depot *d = p->lines.list[0];
	struct manifest_pack pack = { 0 };
	struct depot_bytes from = { .fd = fd };
	struct err err = { 0 };
	char text[64];

	CHECK(fd >= 0);
	CHECK_OK(pack_writer_new(fd, &w, &err), &err);
	for (unsigned i = 0; i < OBJECTS; i++) {
		const struct digest one = object(kind, number, i, text);

		CHECK_OK(pack_writer_add(w, kind, &one, text, strlen(text), &err), &err);
	}
	CHECK_OK(pack_writer_finish(w, &pack.pack.digest, &pack.pack.size, &index, &err), &err);
	from.size = pack.pack.size;
	CHECK_OK(d->ops->put_blob(d, &pack.pack.digest, &from, NULL, &err), &err);
	CHECK_OK(depot_put(d, index.data, index.len, &pack.index.digest, &err), &err);
	pack.index.size = index.len;
	CHECK_OK(manifest_add_pack(&p->manifest, &pack, &err), &err);
}

/* How many packs of that kind are known, of so many. */
static unsigned known(const struct there *t, enum object_kind kind, unsigned first, unsigned n)
{
	unsigned all = 0;
	char text[64];

	for (unsigned i = first; i < first + n; i++) {
		const struct digest d = object(kind, i, OBJECTS - 1, text);

		all += there_has(t, kind, &d);
	}
	return all;
}

TEST(what_is_known_of_packs_is_bounded_and_they_stay)
{
	CLEANUP(place_close) struct place p;
	CLEANUP(there_done) struct there t = { 0 };
	struct there_source from = { .lines = &p.lines,
				     .manifest = &p.manifest,
				     .target = &p.target };
	struct err err = { 0 };

	place_open(&p, "bounded");
	for (unsigned i = 0; i < 6; i++)
		put(&p, i < 3 ? OBJECT_CHUNK : OBJECT_TREE, i);
	CHECK_OK(there_load(&t, &from, THERE_ALL, &err), &err);
	CHECK_EQ(known(&t, OBJECT_CHUNK, 0, 3), 3);
	CHECK_EQ(known(&t, OBJECT_TREE, 3, 3), 3);
	/* Of each kind two, whatever the other one takes. */
	from.known_max = 2 * p.manifest.packs[0].index.size;
	CHECK_OK(there_load(&t, &from, THERE_ALL, &err), &err);
	CHECK_EQ(known(&t, OBJECT_CHUNK, 0, 3), 2);
	CHECK_EQ(known(&t, OBJECT_TREE, 3, 3), 2);
	for (unsigned i = 0; i < 6; i++)
		CHECK(t.listed[i]);
}

TEST(a_pack_that_is_gone_is_no_ground_to_build_on)
{
	CLEANUP(place_close) struct place p;
	CLEANUP(there_done) struct there t = { 0 };
	struct there_source from = { .lines = &p.lines,
				     .manifest = &p.manifest,
				     .target = &p.target };
	struct err err = { 0 };

	place_open(&p, "gone");
	put(&p, OBJECT_CHUNK, 0);
	p.manifest.packs[0].pack.digest.b[0] ^= 1;
	CHECK_EQ(there_load(&t, &from, THERE_ALL, &err), -EBADMSG);
	CHECK_HAS(err.msg, "lacks a pack: push it with --whole");
	/* Small ones go anyway where only large ones stay. */
	CHECK_OK(there_load(&t, &from, THERE_LARGE, &err), &err);
	CHECK(!t.listed[0]);
}

/* What counts as there is not sent: a remote could get a name that leads to nothing. */
TEST(an_index_of_another_pack_is_no_ground_to_build_on)
{
	CLEANUP(place_close) struct place p;
	CLEANUP(there_done) struct there t = { 0 };
	struct there_source from = { .lines = &p.lines,
				     .manifest = &p.manifest,
				     .target = &p.target };
	struct err err = { 0 };

	place_open(&p, "forged");
	put(&p, OBJECT_CHUNK, 0);
	put(&p, OBJECT_CHUNK, 1);
	CHECK_OK(there_load(&t, &from, THERE_ALL, &err), &err);
	p.manifest.packs[1].index = p.manifest.packs[0].index;
	CHECK_EQ(there_load(&t, &from, THERE_ALL, &err), -EBADMSG);
	CHECK_HAS(err.msg, "lacks the index of a pack: push it with --whole");
}

TEST_MAIN("there")
