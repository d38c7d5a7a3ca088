#include "snapshot/capture/keep.h"

#include "tests/unit/snapshot/capture/capture-fixture.h"

/* --- what is promised --------------------------------------------------------------------- */

static int answer(void *ctx, int fd, struct lease_trial *ret)
{
	const int *code = ctx;

	*ret = (struct lease_trial){ 0 };
	return *code;
}

/* Is the file promised if this comes of the attempt to lease it? */
static bool is_promised_after(struct scene *sc, int code)
{
	const struct catalog_id id = { { 1 } };
	const struct capture_options o = { .lazy = &id, .lease = answer, .hold_ctx = &code };
	CLEANUP(buf_done) struct buf hold = BUF_INIT;
	struct tree_entry e;

	scene_capture_with(sc, &o);
	CHECK_EQ(scene_find(sc, "f", &e, &hold), 0);
	return e.form == TREE_LAZY;
}

TEST(a_file_is_promised_only_if_it_is_known_that_nobody_writes_it)
{
	static const int unknown[] = { -EAGAIN, -ENOMEM, -ENOLCK, -EMFILE, -ENOTSUP, -EINTR };
	CLEANUP(scene_done) struct scene sc = scene_new("keep-lease");

	scene_text(&sc, "f", "some text");
	scene_settle();
	if (!is_promised_after(&sc, 0))
		TEST_SKIP("files of this file system are never promised");
	CHECK(is_promised_after(&sc, -EACCES)); /* another owner's */
	for (size_t i = 0; i < sizeof(unknown) / sizeof(*unknown); i++)
		CHECK(!is_promised_after(&sc, unknown[i]));
}

/* --- reading -------------------------------------------------------------------------------- */

/* Says so when it was asked for the `after`-th time. */
struct patience {
	unsigned asked, after;
};

static bool has_none(void *ctx)
{
	struct patience *p = ctx;

	return ++p->asked >= p->after;
}

TEST(a_file_that_cannot_be_examined_is_lost_by_this_way)
{
	CLEANUP(scene_done) struct scene sc = scene_new("keep-examine");
	CLEANUP(batch_end_p) struct batch *b = stock_begin(sc.s);
	CLEANUP(keeper_free_p) struct keeper *k = NULL;
	const struct catalog_id capture = { { 1 } };
	const struct object_id promise = { { 1 } };
	struct content content;
	struct err err = { 0 };

	CHECK_OK(keeper_new(b, NULL, NULL, &k, &err), &err);
	/* fstat(2) of no descriptor fails, as on a disk that has an error. */
	CHECK_EQ(keeper_read_held(k, -1, 9, &content, &err), KEEP_LOST);
	CHECK_HAS(err.msg, "could not be examined");
	CHECK_EQ(keeper_read_copy(k, -1, &content, &err), KEEP_LOST);
	CHECK_EQ(keeper_read(k, -1, 0, &capture, &promise, &content, &err), KEEP_LOST);
	CHECK_HAS(err.msg, "could not be examined when it was to be captured: ");
}

TEST(the_rest_of_a_large_file_is_not_read_when_it_is_in_vain)
{
	CLEANUP(scene_done) struct scene sc = scene_new("keep-stop");
	CLEANUP(batch_end_p) struct batch *b = stock_begin(sc.s);
	CLEANUP(keeper_free_p) struct keeper *k = NULL;
	struct patience p = { .after = 2 };
	AUTO_CLOSE int fd = -1;
	struct content content;
	struct err err = { 0 };

	scene_text(&sc, "small", "some text");
	for (unsigned i = 0; i < 64; i++) {
		AUTO_FREE uint8_t *block = stock_block(i);
		AUTO_CLOSE int to = openat(sc.fd, "large", O_WRONLY | O_CREAT | O_APPEND, 0644);

		CHECK_EQ(fdio_write(to, block, CHUNK_SIZE_MAX), 0);
	}
	CHECK_OK(keeper_new(b, has_none, &p, &k, &err), &err);
	fd = openat(sc.fd, "large", O_RDONLY | O_CLOEXEC);
	CHECK_EQ(keeper_read_copy(k, fd, &content, &err), -ECANCELED);
	CHECK_EQ(p.asked, 2);
	cleanup_close(&fd);
	/* The next file begins anew; a small one is not worth the question. */
	fd = openat(sc.fd, "small", O_RDONLY | O_CLOEXEC);
	CHECK_OK(keeper_read_copy(k, fd, &content, &err), &err);
	CHECK_EQ(content.size, strlen("some text"));
	CHECK_EQ(p.asked, 2);
}

TEST_MAIN("keep")
