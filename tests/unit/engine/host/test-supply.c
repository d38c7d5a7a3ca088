/*
 * Packs of a lazy fetch as a stranger could make them, and how the rest of it goes on.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/fdio.h"
#include "base/hex.h"
#include "engine/host/supply-i.h"
#include "remote/pack/portable.h"
#include "tests/lib/stock.h"

struct shelf {
	char *packs[2]; /* owned; their digests, in hex */
	size_t n;
	struct supply *supply;
};

static void shelf_done(struct shelf *s)
{
	supply_free(s->supply);
	for (size_t i = 0; i < s->n; i++)
		free(s->packs[i]);
}

static void put_file(const char *hex, const char *end, const void *data, size_t len)
{
	char name[80];
	struct err err = { 0 };

	snprintf(name, sizeof(name), "%s.%s", hex, end);
	CHECK_OK(fdio_swap_file(AT_FDCWD, test_path(name), data, len, 0600, &err), &err);
}

/* A pack of these objects, all of one frame, which is there if `have`. */
static void add_pack(struct shelf *s, enum object_kind kind, const void *data, size_t len,
		     bool have)
{
	CLEANUP(pack_writer_free_p) struct pack_writer *w = NULL;
	CLEANUP(buf_done) struct buf index = BUF_INIT;
	CLEANUP(buf_done) struct buf pack = BUF_INIT;
	const int fd = open(test_path("new"), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	struct digest d = digest_of(data, len);
	char hex[SHA256_HEX_SIZE];
	struct err err = { 0 };
	uint64_t size;

	CHECK(fd >= 0);
	CHECK_OK(pack_writer_new(fd, &w, &err), &err);
	CHECK_OK(pack_writer_add(w, kind, &d, data, len, &err), &err);
	CHECK_OK(pack_writer_finish(w, &d, &size, &index, &err), &err);
	close(fd);
	CHECK_OK(fdio_read_file(AT_FDCWD, test_path("new"), PACK_MAX, &pack, &err), &err);
	s->packs[s->n] = strdup(hex_encode(d.b, sizeof(d.b), hex));
	CHECK(s->packs[s->n++]);
	put_file(hex, "index", index.data, index.len);
	put_file(hex, "pack", pack.data, pack.len);
	put_file(hex, "have", have ? "\1" : "\0", 1);
}

static void open_shelf(struct shelf *s)
{
	struct err err = { 0 };

	CHECK_OK(supply_open(test_dir(), s->packs, s->n, &s->supply, &err), &err);
}

static int get(struct shelf *s, const struct supply_file *what)
{
	static unsigned n;
	char name[32];
	CLEANUP(digests_done) struct digests known = { 0 };
	CLEANUP(store_close_p) struct store *store = NULL;
	struct content content;
	struct err err = { 0 };
	struct batch *b;
	int r;

	snprintf(name, sizeof(name), "store-%u", n++);
	store = stock_open(test_path(name), STORE_CREATE);
	b = stock_begin(store);
	r = supply_content(s->supply, b, &known, what, false, &content, &err);
	batch_end(b);
	return r;
}

static struct supply_file place(struct shelf *s, enum object_kind kind, const void *data,
				size_t len, uint64_t size)
{
	struct supply_file f = { .digest = digest_of(data, len), .size = size, .kind = kind };

	CHECK(supply_place(s->supply, &f));
	return f;
}

/* The bytes are those that were meant, so it makes no sense to ask for them again. */
TEST(a_list_of_chunks_that_makes_no_file_is_told_from_wrong_bytes)
{
	static struct portable_recipe node;
	static char block[CHUNK_SIZE_MAX];
	CLEANUP(shelf_done) struct shelf s = { 0 };
	CLEANUP(buf_done) struct buf bytes = BUF_INIT;
	struct supply_file f;

	node.n = 2;
	node.slot[0] = digest_of("x", 1);
	node.slot[1] = digest_of(block, sizeof(block));
	CHECK_EQ(portable_recipe_encode(&node, &bytes), 0);
	add_pack(&s, OBJECT_RECIPE, bytes.data, bytes.len, true);
	add_pack(&s, OBJECT_CHUNK, "x", 1, true);
	open_shelf(&s);
	f = place(&s, OBJECT_RECIPE, bytes.data, bytes.len, sizeof(block) + 1);
	CHECK_EQ(get(&s, &f), -EPROTO);
	CHECK(supply_has(s.supply, &f, false) == false);
}

TEST(a_frame_that_is_wrong_over_and_over_lets_others_come)
{
	CLEANUP(shelf_done) struct shelf s = { 0 };
	struct engine_supply_options o = { .process = 1, .first = true, .most = 1 << 20 };
	struct engine_range range = { 0 };
	struct supply_file f;
	struct err err = { 0 };

	add_pack(&s, OBJECT_CHUNK, "one", 3, true);
	add_pack(&s, OBJECT_CHUNK, "two", 3, false);
	put_file(s.packs[0], "pack", "junk that is none", 17);
	open_shelf(&s);
	f = place(&s, OBJECT_CHUNK, "one", 3, 3);
	CHECK_EQ(get(&s, &f), -EAGAIN);
	CHECK_OK(supply_report(s.supply, &o, &err), &err);
	o.first = false;
	CHECK(supply_next(s.supply, &o, &range));
	CHECK_STR(range.pack, s.packs[0]);
	o.done = range;
	CHECK_OK(supply_report(s.supply, &o, &err), &err);
	CHECK_EQ(get(&s, &f), -EBADMSG);
	CHECK_EQ(supply_check(s.supply, &err), -EIO);
	o.done = (struct engine_range){ 0 };
	CHECK(supply_next(s.supply, &o, &range));
	CHECK_STR(range.pack, s.packs[1]);
}

/* The first reader has not said so yet when the second one meets a wrong frame of its own. */
TEST(wrong_frames_that_two_readers_meet_at_once_both_come_again)
{
	CLEANUP(shelf_done) struct shelf s = { 0 };
	CLEANUP(buf_done) struct buf bytes = BUF_INIT;
	struct supply_file one, two;
	struct err err = { 0 };

	add_pack(&s, OBJECT_CHUNK, "one", 3, true);
	add_pack(&s, OBJECT_CHUNK, "two", 3, true);
	put_file(s.packs[0], "pack", "junk that is none", 17);
	put_file(s.packs[1], "pack", "junk that is none", 17);
	open_shelf(&s);
	one = place(&s, OBJECT_CHUNK, "one", 3, 3);
	two = place(&s, OBJECT_CHUNK, "two", 3, 3);
	CHECK_EQ(pack_set_get(supply_packs(s.supply), OBJECT_CHUNK, &one.digest, &bytes, &err),
		 -EILSEQ);
	CHECK_EQ(get(&s, &two), -EAGAIN);
	CHECK(!supply_has_object(s.supply, &one) && !supply_has_object(s.supply, &two));
	CHECK_EQ(get(&s, &one), -EAGAIN);
}

/* The list of a large file's chunks: whoever only looks whether all is here meets it first. */
TEST(a_wrong_list_of_chunks_comes_again_also_if_nobody_reads_the_file)
{
	static struct portable_recipe node;
	static char block[CHUNK_SIZE_MAX];
	CLEANUP(shelf_done) struct shelf s = { 0 };
	CLEANUP(buf_done) struct buf bytes = BUF_INIT;
	struct engine_supply_options o = { .process = 1, .first = true, .most = 1 << 20 };
	struct engine_range range = { 0 };
	struct supply_file f;
	struct err err = { 0 };
	uint64_t completed;

	node.n = 2;
	node.slot[0] = digest_of(block, sizeof(block));
	node.slot[1] = digest_of("x", 1);
	CHECK_EQ(portable_recipe_encode(&node, &bytes), 0);
	add_pack(&s, OBJECT_RECIPE, bytes.data, bytes.len, true);
	put_file(s.packs[0], "pack", "junk that is none", 17);
	open_shelf(&s);
	completed = supply_completed(s.supply);
	f = place(&s, OBJECT_RECIPE, bytes.data, bytes.len, sizeof(block) + 1);
	CHECK(!supply_has(s.supply, &f, false));
	CHECK_OK(supply_report(s.supply, &o, &err), &err);
	o.first = false;
	CHECK(supply_next(s.supply, &o, &range));
	CHECK_STR(range.pack, s.packs[0]);
	o.done = range;
	CHECK_OK(supply_report(s.supply, &o, &err), &err);
	CHECK(supply_completed(s.supply) > completed);
}

TEST(nobody_waits_for_bytes_when_cowfsd_ends)
{
	CLEANUP(shelf_done) struct shelf s = { 0 };
	CLEANUP(buf_done) struct buf bytes = BUF_INIT;
	static struct portable_recipe node;
	static char block[CHUNK_SIZE_MAX];
	struct supply_file f;
	struct err err = { 0 };
	char got[3];

	memset(block, 'x', sizeof(block));
	node.n = 2;
	node.slot[0] = digest_of(block, sizeof(block));
	node.slot[1] = digest_of("x", 1);
	CHECK_EQ(portable_recipe_encode(&node, &bytes), 0);
	add_pack(&s, OBJECT_RECIPE, bytes.data, bytes.len, true);
	add_pack(&s, OBJECT_CHUNK, block, sizeof(block), false);
	open_shelf(&s);
	f = place(&s, OBJECT_RECIPE, bytes.data, bytes.len, sizeof(block) + 1);
	supply_end(s.supply);
	CHECK_EQ(supply_read(s.supply, &f, 0, got, sizeof(got), &err), -EIO);
	CHECK(strstr(err.msg, "cowfsd ends"));
}

TEST_MAIN("supply")
