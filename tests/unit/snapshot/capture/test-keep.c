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

TEST(a_file_that_cannot_be_examined_is_lost_by_this_way)
{
	CLEANUP(scene_done) struct scene sc = scene_new("keep-examine");
	CLEANUP(batch_end_p) struct batch *b = stock_begin(sc.s);
	CLEANUP(keeper_free_p) struct keeper *k = NULL;
	const struct catalog_id capture = { { 1 } };
	const struct object_id promise = { { 1 } };
	struct content content;
	struct err err = { 0 };

	CHECK_OK(keeper_new(b, &k, &err), &err);
	/* fstat(2) of no descriptor fails, as on a disk that has an error. */
	CHECK_EQ(keeper_read_held(k, -1, 9, &content, &err), KEEP_LOST);
	CHECK_HAS(err.msg, "could not be examined");
	CHECK_EQ(keeper_read_copy(k, -1, &content, &err), KEEP_LOST);
	CHECK_EQ(keeper_read(k, -1, 0, &capture, &promise, &content, &err), KEEP_LOST);
	CHECK_HAS(err.msg, "could not be examined when it was to be captured: ");
}

TEST_MAIN("keep")
