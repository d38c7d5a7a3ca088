#include "snapshot/capture/signatures.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/le.h"
#include "tests/unit/snapshot/capture/capture-fixture.h"

/* The signatures of a small tree with one of everything. */
static struct scene scene_signed(const char *name)
{
	struct scene sc = scene_new(name);

	sc.incremental = true;
	scene_mkdir(&sc, "d");
	scene_mkdir(&sc, "d/deeper");
	scene_text(&sc, "d/f", "text");
	scene_text(&sc, "e", "");
	CHECK_EQ(linkat(sc.fd, "d/f", sc.fd, "link", 0), 0);
	CHECK_EQ(symlinkat("d", sc.fd, "sym"), 0);
	scene_capture(&sc);
	CHECK(sc.known != NULL);
	return sc;
}

static int decode(struct scene *sc, const void *data, size_t len, struct err *err)
{
	CLEANUP(buf_done) struct buf bytes = BUF_INIT;
	CLEANUP(signatures_free_p) struct signatures *s = NULL;

	CHECK_EQ(buf_append(&bytes, data, len), 0);
	return signatures_decode(&bytes, store_key(sc->s), &s, err);
}

TEST(signatures_say_what_was_seen)
{
	CLEANUP(scene_done) struct scene sc = scene_signed("seen");
	struct signature_iter it;
	struct signature s;
	struct stat st;
	struct signature_stat stat;

	CHECK_EQ(sc.known->names, 7);
	CHECK(object_id_equal(&sc.known->root, &sc.id));
	signature_decode(signatures_top(sc.known), &s);
	CHECK(object_id_equal(&s.e.id, &sc.root.top.id));
	it = signatures_names(sc.known, s.record);
	CHECK_EQ(it.left, 4);
	signature_decode(it.next, &s);
	CHECK_MEM(s.e.name, s.e.name_len, "d", 1);
	CHECK_EQ(s.e.form, TREE_DIR);
	CHECK_EQ(signatures_names(sc.known, s.record).left, 2);
	signature_iter_step(&it);
	signature_iter_step(&it);
	signature_decode(it.next, &s);
	CHECK_MEM(s.e.name, s.e.name_len, "link", 4);
	CHECK(s.linked);
	CHECK_EQ(fstatat(sc.fd, "link", &st, 0), 0);
	signature_stat_set(&stat, &st, st.st_dev);
	CHECK_MEM(s.stat, sizeof(stat), &stat, sizeof(stat));
	signature_stat_set(&stat, &st, st.st_dev + 1);
	CHECK(memcmp(s.stat, &stat, sizeof(stat)) != 0);
}

TEST(bytes_that_were_changed_or_cut_are_not_signatures)
{
	CLEANUP(scene_done) struct scene sc = scene_signed("changed");
	struct buf *bytes = &sc.known->bytes;
	struct err err = { 0 };

	CHECK_OK(decode(&sc, bytes->data, bytes->len, &err), &err);
	for (size_t i = 0; i < bytes->len; i++) {
		bytes->data[i] ^= 0x10;
		CHECK_EQ(decode(&sc, bytes->data, bytes->len, &err), -EBADMSG);
		bytes->data[i] ^= 0x10;
		CHECK_EQ(decode(&sc, bytes->data, i, &err), -EBADMSG);
	}
}

/* As if somebody knew the secret: then every byte is looked at for what it says. */
TEST(what_does_not_fit_together_is_found_without_the_sum)
{
	CLEANUP(scene_done) struct scene sc = scene_signed("unfit");
	struct buf *bytes = &sc.known->bytes;
	struct err err = { 0 };

	CHECK_OK(signatures_verify(sc.known, &err), &err);
	for (size_t i = 24; i < bytes->len; i++) {
		for (unsigned bit = 0; bit < 8; bit++) {
			bytes->data[i] ^= (uint8_t)(1 << bit);
			int r = signatures_verify(sc.known, &err);

			CHECK(r == 0 || r == -EBADMSG);
			bytes->data[i] ^= (uint8_t)(1 << bit);
		}
	}
	bytes->data[24]++; /* the version */
	CHECK_EQ(signatures_verify(sc.known, &err), -EBADMSG);
	CHECK_HAS(err.msg, "of another version");
	bytes->data[24]--;
	CHECK_OK(signatures_verify(sc.known, &err), &err);
}

TEST(signatures_of_another_store_are_not_taken)
{
	CLEANUP(scene_done) struct scene sc = scene_signed("store-one");
	CLEANUP(scene_done) struct scene other = scene_signed("store-two");
	struct err err = { 0 };

	CHECK_EQ(decode(&other, sc.known->bytes.data, sc.known->bytes.len, &err), -EBADMSG);
	CHECK_HAS(err.msg, "damaged");
}

TEST_MAIN("signatures")
