/*
 * Many chunks at once: read ahead of a push, and put by several threads in a fetch.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "remote/pack/inbound.h"
#include "remote/pack/outbound.h"
#include "tests/lib/stock.h"

#define DIRS   8
#define FILES  260 /* of a directory: more than are read ahead */
#define BLOCKS 40  /* of the large file */

/* A store with a snapshot "many", and what came of sending it. */
struct trip {
	struct store *from;
	struct object_id root;
	int fd;
	struct pack_writer *writer;
	struct digest_table sent;
	uint64_t n, wrong; /* objects; the number of the chunk that is sent with another byte */
	struct digest digest;
	struct digests known;
	uint64_t files; /* that the walk counted */
	struct buf index;
};

static struct store *open_store(void)
{
	static unsigned n;
	char name[32];

	snprintf(name, sizeof(name), "store-%u", n++);
	return stock_open(test_path(name), STORE_CREATE);
}

static void add_file(struct tree_builder *t, const char *name, struct object_id id,
		     enum tree_form form, uint64_t size)
{
	const struct tree_entry e = {
		.name = name,
		.name_len = strlen(name),
		.form = form,
		.mode = S_IFREG | 0644,
		.ino = 1,
		.size = size,
		.data = size,
		.id = id,
	};
	struct err err = { 0 };

	CHECK_OK(tree_builder_add(t, &e, &err), &err);
}

static struct tree_entry finish_dir(struct tree_builder *t, const char *name, uint32_t nlink)
{
	struct tree_entry e = { .name = name,
				.name_len = strlen(name),
				.form = TREE_DIR,
				.mode = S_IFDIR | 0755,
				.ino = 2,
				.nlink = nlink };
	struct err err = { 0 };

	CHECK_OK(tree_builder_finish(t, &e.id, &e.below, &err), &err);
	return e;
}

/* Files of all lengths.  Every other directory is like the one before it, but for a name. */
static struct tree_entry put_dir(struct batch *b, struct tree_builder *t, unsigned number,
				 const char *name)
{
	AUTO_FREE uint8_t *noise = malloc(CHUNK_SIZE_MAX);

	CHECK(noise);
	for (unsigned i = 0; i < FILES; i++) {
		char file[16];
		const size_t len = 1 + (i * 97) % 20000;

		stock_noise(noise, number / 2 * FILES + i / 2);
		snprintf(file, sizeof(file), "f%04u", i);
		add_file(t, file, stock_put(b, OBJECT_CHUNK, noise, len), TREE_CHUNK, len);
	}
	if (number % 2)
		add_file(t, "z", stock_put(b, OBJECT_CHUNK, name, 2), TREE_CHUNK, 2);
	return finish_dir(t, name, 2);
}

static struct object_id put_large(struct batch *b)
{
	AUTO_FREE struct recipe_node *node = calloc(1, sizeof(*node));
	AUTO_FREE uint8_t *noise = malloc(CHUNK_SIZE_MAX);
	CLEANUP(buf_done) struct buf bytes = BUF_INIT;

	CHECK(node && noise);
	node->n = BLOCKS;
	for (unsigned i = 0; i < BLOCKS; i++) {
		stock_noise(noise, 1000000 + i);
		node->id[i] = stock_put(b, OBJECT_CHUNK, noise, CHUNK_SIZE_MAX);
	}
	CHECK_EQ(recipe_encode(node, &bytes), 0);
	return stock_put(b, OBJECT_RECIPE, bytes.data, bytes.len);
}

static void fill(struct trip *t)
{
	CLEANUP(tree_builder_free_p) struct tree_builder *builder = NULL;
	struct batch *b = stock_begin(t->from);
	struct tree_entry dirs[DIRS];
	struct root root = { 0 };
	struct err err = { 0 };
	char names[DIRS][4];

	CHECK_OK(tree_builder_new(b, &builder, &err), &err);
	for (unsigned i = 0; i < DIRS; i++) {
		snprintf(names[i], sizeof(names[i]), "d%u", i);
		dirs[i] = put_dir(b, builder, i, names[i]);
	}
	for (unsigned i = 0; i < DIRS; i++)
		CHECK_OK(tree_builder_add(builder, &dirs[i], &err), &err);
	add_file(builder, "large", put_large(b), TREE_RECIPE, BLOCKS * CHUNK_SIZE_MAX);
	root.top = finish_dir(builder, "top", 2 + DIRS);
	CHECK_OK(root_put(b, &root, &t->root, &err), &err);
	stock_name(b, REF_SNAPSHOT, "many", &t->root, REF_NEW);
	stock_commit(b);
	batch_end(b);
}

static bool has_none(void *ctx, enum object_kind kind, const struct digest *d)
{
	(void)ctx;
	(void)kind;
	(void)d;
	return false;
}

static int add_object(void *ctx, enum object_kind kind, const struct digest *d, const void *data,
		      size_t len, struct err *err)
{
	struct trip *t = ctx;
	const struct digest have = digest_of(data, len);
	CLEANUP(buf_done) struct buf bytes = BUF_INIT;

	CHECK(digest_equal(&have, d));
	/* Each once. */
	CHECK_EQ(digest_table_add(&t->sent, kind, d, 0), 0);
	CHECK_EQ(buf_append(&bytes, data, len), 0);
	if (kind == OBJECT_CHUNK && ++t->n == t->wrong)
		bytes.data[len / 2] ^= 1;
	return pack_writer_add(t->writer, kind, d, bytes.data, len, err);
}

static int count_files(void *ctx, uint64_t files, struct err *err)
{
	struct trip *t = ctx;

	(void)err;
	t->files += files;
	return 0;
}

static struct trip trip_begin(uint64_t wrong)
{
	struct trip t = { .from = open_store(), .wrong = wrong };
	const struct outbound_sink sink = { has_none, add_object, count_files, &t };
	struct digest unused;
	struct err err = { 0 };
	uint64_t size;

	fill(&t);
	t.fd = open(test_path("pack"), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	CHECK(t.fd >= 0);
	CHECK_OK(pack_writer_new(t.fd, &t.writer, &err), &err);
	CHECK_OK(outbound_root(t.from, &t.known, &t.root, &sink, &t.digest, &err), &err);
	CHECK_OK(pack_writer_finish(t.writer, &unused, &size, &t.index, &err), &err);
	return t;
}

static void trip_end(struct trip *t)
{
	store_close(t->from);
	pack_writer_free(t->writer);
	digest_table_done(&t->sent);
	digests_done(&t->known);
	buf_done(&t->index);
}

/* The number of all chunks: directories are alike in pairs. */
#define CHUNKS (DIRS / 2 * (FILES + 1) + BLOCKS)
#define ALL    (DIRS * FILES + DIRS / 2 + 1) /* files */

TEST(what_is_read_ahead_is_sent_once_and_has_its_digest)
{
	CLEANUP(trip_end) struct trip t = trip_begin(0);

	CHECK_EQ(t.n, CHUNKS);
	close(t.fd);
}

/* All but the root. */
static bool has_below(void *ctx, enum object_kind kind, const struct digest *d)
{
	const struct trip *t = ctx;

	return kind == OBJECT_TREE && !digest_equal(d, &t->digest);
}

static int count_object(void *ctx, enum object_kind kind, const struct digest *d, const void *data,
			size_t len, struct err *err)
{
	struct trip *t = ctx;

	t->n++;
	return 0;
}

/* Whoever waits sees how much is left, also if little of it travels. */
TEST(files_count_whether_they_travel_or_are_there)
{
	CLEANUP(trip_end) struct trip t = trip_begin(0);
	const struct outbound_sink sink = { has_below, count_object, count_files, &t };
	struct digest again;
	struct err err = { 0 };

	CHECK_EQ(t.files, ALL);
	t.files = t.n = 0;
	CHECK_OK(outbound_root(t.from, &t.known, &t.root, &sink, &again, &err), &err);
	CHECK(digest_equal(&again, &t.digest));
	CHECK_EQ(t.n, 1);
	CHECK_EQ(t.files, ALL);
	close(t.fd);
}

static int bring(struct trip *t, struct store *to, struct digest *ret_again, struct err *err)
{
	CLEANUP(digests_done) struct digests known = { 0 };
	CLEANUP(pack_set_done) struct pack_set packs = { 0 };
	const struct inbound_options o = { .packs = &packs, .known = &known };
	const struct outbound_sink sink = { has_none, add_object, NULL, t };
	CLEANUP(batch_end_p) struct batch *b = stock_begin(to);
	struct inbound_result got;
	int r;

	CHECK_OK(pack_set_add(&packs, t->index.data, t->index.len, t->fd, err), err);
	CHECK(packs.packs[0].n_frames > 20);
	r = inbound_root(b, &o, &t->digest, &got, err);
	if (r < 0)
		return r;
	CHECK_EQ(got.files, ALL);
	CHECK(got.objects > t->n);
	stock_name(b, REF_SNAPSHOT, "many", &got.root, REF_NEW);
	stock_commit(b);

	/* It leaves that store as it came. */
	digest_table_done(&t->sent);
	digests_done(&known);
	pack_writer_free(t->writer);
	CHECK_OK(pack_writer_new(open("/dev/null", O_WRONLY | O_CLOEXEC), &t->writer, err), err);
	CHECK_OK(outbound_root(to, &known, &got.root, &sink, ret_again, err), err);
	return 0;
}

TEST(what_several_threads_put_is_what_was_sent)
{
	CLEANUP(store_close_p) struct store *to = open_store();
	CLEANUP(trip_end) struct trip t = trip_begin(0);
	struct digest again;
	struct err err = { 0 };

	CHECK_OK(bring(&t, to, &again, &err), &err);
	CHECK(digest_equal(&again, &t.digest));
	stock_check_clean(to);
}

/* Of a small file, of one in the last frames, of the large one. */
TEST(one_wrong_byte_among_many_is_refused)
{
	static const uint64_t wrong[] = { 1, FILES, 2 * FILES + 7 };

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		CLEANUP(store_close_p) struct store *to = open_store();
		CLEANUP(trip_end) struct trip t = trip_begin(wrong[i]);
		struct digest again;
		struct err err = { 0 };

		CHECK(t.n >= wrong[i]);
		CHECK_EQ(bring(&t, to, &again, &err), -EBADMSG);
		CHECK_HAS(err.msg, "holds wrong bytes for a chunk");
	}
}

/* It may be in a pack whose index did not come. */
TEST(what_no_index_lists_is_asked_for_if_some_are_not_here)
{
	CLEANUP(trip_end) struct trip t = trip_begin(0);
	CLEANUP(pack_set_done) struct pack_set packs = { 0 };
	CLEANUP(buf_done) struct buf out = BUF_INIT;
	const struct digest none = digest_of("none", 4);
	struct err err = { 0 };

	CHECK_OK(pack_set_add(&packs, t.index.data, t.index.len, t.fd, &err), &err);
	CHECK_EQ(pack_set_get(&packs, OBJECT_CHUNK, &none, &out, &err), -ENOENT);
	CHECK(!packs.asked);
	packs.unlisted = true;
	CHECK_EQ(pack_set_get(&packs, OBJECT_CHUNK, &none, &out, &err), -ENODATA);
	CHECK(packs.asked);
}

TEST_MAIN("transit")
