#include "tests/lib/test.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>
#include <zstd.h>

#include "base/fdio.h"
#include "base/le.h"
#include "remote/pack/pack.h"

static int open_temp(const char *name)
{
	const int fd = open(test_path(name), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	CHECK(fd >= 0);
	return fd;
}

/* A pack of `n` chunks: number i is i + 1 bytes of the letter i. */
static int write_pack(const char *name, unsigned n, struct buf *index)
{
	CLEANUP(pack_writer_free_p) struct pack_writer *w = NULL;
	struct err err = { 0 };
	const int fd = open_temp(name);
	struct digest d;
	uint64_t size;
	char bytes[4096];

	CHECK_OK(pack_writer_new(fd, &w, &err), &err);
	for (unsigned i = 0; i < n; i++) {
		memset(bytes, (int)('a' + i % 26), i + 1);
		d = digest_of(bytes, i + 1);
		CHECK_OK(pack_writer_add(w, OBJECT_CHUNK, &d, bytes, i + 1, &err), &err);
	}
	CHECK_OK(pack_writer_finish(w, &d, &size, index, &err), &err);
	CHECK_EQ(lseek(fd, 0, SEEK_END), size);
	return fd;
}

TEST(what_went_in_comes_out)
{
	CLEANUP(buf_done) struct buf index = BUF_INIT, out = BUF_INIT;
	CLEANUP(pack_set_done) struct pack_set s = { 0 };
	const int fd = write_pack("whole", 2000, &index);
	struct err err = { 0 };
	struct digest d;
	char bytes[4096];

	CHECK_OK(pack_set_add(&s, index.data, index.len, fd, &err), &err);
	CHECK(s.packs[0].n_frames >= 3);
	for (unsigned i = 0; i < 2000; i += 7) {
		memset(bytes, (int)('a' + i % 26), i + 1);
		d = digest_of(bytes, i + 1);
		CHECK(pack_set_has(&s, OBJECT_CHUNK, &d));
		CHECK(!pack_set_has(&s, OBJECT_TREE, &d));
		CHECK_OK(pack_set_get(&s, OBJECT_CHUNK, &d, &out, &err), &err);
		CHECK_MEM(out.data, out.len, bytes, i + 1);
	}
	d = digest_of("nothing", 7);
	CHECK_EQ(pack_set_get(&s, OBJECT_CHUNK, &d, &out, &err), -ENOENT);
}

/* Chunks of 4 MiB that nothing makes shorter, until the pack is full; how many. */
static unsigned fill_pack(struct pack_writer *w, unsigned pause_us)
{
	CLEANUP(buf_done) struct buf bytes = BUF_INIT;
	struct err err = { 0 };
	uint64_t dice = 7;
	unsigned n = 0;
	struct digest d;

	CHECK(buf_extend(&bytes, OBJECT_SIZE_MAX));
	for (size_t i = 0; i < bytes.len; i += sizeof(dice)) {
		dice = dice * 6364136223846793005u + 1442695040888963407u;
		le64_store(bytes.data + i, dice ^ dice >> 29);
	}
	d = digest_of(bytes.data, bytes.len);
	while (!pack_writer_is_full(w)) {
		CHECK_OK(pack_writer_add(w, OBJECT_CHUNK, &d, bytes.data, bytes.len, &err), &err);
		n++;
		usleep(pause_us);
	}
	return n;
}

TEST(where_a_pack_ends_does_not_depend_on_how_fast_it_is_pressed)
{
	struct digest first = { 0 }, d;

	for (unsigned round = 0; round < 2; round++) {
		CLEANUP(pack_writer_free_p) struct pack_writer *w = NULL;
		CLEANUP(buf_done) struct buf index = BUF_INIT;
		AUTO_CLOSE int fd = open_temp("even");
		struct err err = { 0 };
		uint64_t size;

		CHECK_OK(pack_writer_new(fd, &w, &err), &err);
		/* Twelve fill it; two may wait to be pressed when that is seen. */
		CHECK_EQ(fill_pack(w, round * 30000), 14);
		CHECK_OK(pack_writer_finish(w, &d, &size, &index, &err), &err);
		CHECK(size <= PACK_MAX);
		if (round == 0)
			first = d;
		CHECK(digest_equal(&d, &first));
	}
}

TEST(a_disk_that_is_full_while_a_pack_is_pressed_is_said)
{
	CLEANUP(pack_writer_free_p) struct pack_writer *w = NULL;
	CLEANUP(buf_done) struct buf index = BUF_INIT;
	AUTO_CLOSE int fd = open("/dev/full", O_RDWR | O_CLOEXEC);
	AUTO_FREE char *bytes = calloc(1, PACK_FRAME);
	struct err err = { 0 };
	struct digest d = { 0 };
	uint64_t size;
	int r = 0;

	CHECK(fd >= 0 && bytes);
	CHECK_OK(pack_writer_new(fd, &w, &err), &err);
	for (unsigned i = 0; r == 0 && i < 100; i++)
		r = pack_writer_add(w, OBJECT_CHUNK, &d, bytes, PACK_FRAME, &err);
	CHECK_EQ(r, -ENOSPC);
	CHECK(strstr(err.msg, "writing a pack"));
	CHECK_EQ(pack_writer_finish(w, &d, &size, &index, &err), -ENOSPC);
}

TEST(a_pack_that_is_not_here_is_wanted)
{
	CLEANUP(buf_done) struct buf index = BUF_INIT, out = BUF_INIT;
	CLEANUP(pack_set_done) struct pack_set s = { 0 };
	AUTO_CLOSE int fd = write_pack("absent", 3, &index);
	const struct digest d = digest_of("a", 1);
	struct err err = { 0 };

	CHECK_OK(pack_set_add(&s, index.data, index.len, -1, &err), &err);
	CHECK_EQ(pack_set_get(&s, OBJECT_CHUNK, &d, &out, &err), -ENODATA);
	CHECK(s.packs[0].wanted);
	/* The same in a pack that is here is read from there. */
	CHECK_OK(pack_set_add(&s, index.data, index.len, dup(fd), &err), &err);
	CHECK_OK(pack_set_get(&s, OBJECT_CHUNK, &d, &out, &err), &err);
}

TEST(any_changed_byte_of_a_pack_shows)
{
	CLEANUP(buf_done) struct buf index = BUF_INIT, out = BUF_INIT, file = BUF_INIT;
	AUTO_CLOSE int fd = write_pack("damaged", 40, &index);
	struct err err = { 0 };

	CHECK_OK(fdio_read_file(AT_FDCWD, test_path("damaged"), 1 << 20, &file, &err), &err);
	for (size_t at = 0; at < file.len; at++) {
		CLEANUP(pack_set_done) struct pack_set s = { 0 };
		const uint8_t wrong = file.data[at] ^ 0x20;
		size_t sound = 0;

		CHECK_EQ(fdio_pwrite(fd, &wrong, 1, (off_t)at), 0);
		CHECK_OK(pack_set_add(&s, index.data, index.len, dup(fd), &err), &err);
		for (unsigned i = 0; i < 40; i++) {
			char bytes[64];
			struct digest d;
			int r;

			memset(bytes, (int)('a' + i % 26), i + 1);
			d = digest_of(bytes, i + 1);
			r = pack_set_get(&s, OBJECT_CHUNK, &d, &out, &err);
			CHECK(r == 0 || r == -EBADMSG);
			if (r == 0)
				CHECK_MEM(out.data, out.len, bytes, i + 1);
			sound += r == 0;
		}
		/* A bit that zstd does not look at may change nothing: then all of it is right. */
		CHECK(sound <= 40);
		CHECK_EQ(fdio_pwrite(fd, file.data + at, 1, (off_t)at), 0);
	}
}

/* Change a u32 of the index; then it must be refused. */
static void refuse(const struct buf *index, size_t at, uint32_t value)
{
	CLEANUP(buf_done) struct buf bad = BUF_INIT;
	CLEANUP(pack_set_done) struct pack_set s = { 0 };
	struct err err = { 0 };

	CHECK_EQ(buf_append(&bad, index->data, index->len), 0);
	le32_store(bad.data + at, value);
	CHECK_EQ(pack_set_add(&s, bad.data, bad.len, -1, &err), -EBADMSG);
	CHECK_HAS(err.msg, "index of a pack is malformed");
}

TEST(an_index_that_lies_is_refused)
{
	CLEANUP(buf_done) struct buf index = BUF_INIT;
	const size_t frame = 56, object = frame + 8;
	struct pack_set s = { 0 };
	struct err err = { 0 };

	close(write_pack("index", 5, &index));
	CHECK_EQ(index.len, 56 + 8 + 5 * 36);
	refuse(&index, 0, 0);
	refuse(&index, 8, 2); /* frames */
	refuse(&index, 8, 0xffffffff);
	refuse(&index, 12, 4); /* objects */
	refuse(&index, 12, 0);
	refuse(&index, 12, 0xffffffff);
	refuse(&index, 16, 1);    /* length of the pack */
	refuse(&index, 20, 1);    /* beyond 4 GiB */
	refuse(&index, frame, 0); /* packed */
	refuse(&index, frame, 0xffffffff);
	refuse(&index, frame + 4, 0);       /* unpacked */
	refuse(&index, frame + 4, 1 << 30); /* a bomb */
	refuse(&index, frame + 4, 16);      /* does not fit the objects */
	refuse(&index, object + 32, 0);     /* kind and length */
	refuse(&index, object + 32, 9 << 24 | 1);
	refuse(&index, object + 32, 1 << 24);
	refuse(&index, object + 32, 1 << 24 | 2);
	refuse(&index, object + 32, 1 << 24 | 0xffffff);
	le64_store(index.data + 16, 40000);
	refuse(&index, frame, 40000); /* more than 15 bytes ever need */
	CHECK_EQ(pack_set_add(&s, index.data, index.len - 1, -1, &err), -EBADMSG);
	CHECK_EQ(pack_set_add(&s, index.data, 10, -1, &err), -EBADMSG);
	le32_store(index.data + 4, 2);
	CHECK_EQ(pack_set_add(&s, index.data, index.len, -1, &err), -EPROTO);
	CHECK_EQ(s.n, 0);
	pack_set_done(&s);
}

TEST(a_frame_that_unpacks_to_more_than_it_says_is_refused)
{
	CLEANUP(buf_done) struct buf index = BUF_INIT, out = BUF_INIT, bomb = BUF_INIT;
	CLEANUP(pack_set_done) struct pack_set s = { 0 };
	AUTO_FREE void *zeros = calloc(1, 64 << 10);
	const int fd = open_temp("bomb");
	const struct digest d = digest_of("x", 1);
	struct err err = { 0 };
	uint8_t head[56] = "SNPI";
	size_t rc;

	CHECK(zeros && buf_extend(&bomb, ZSTD_compressBound(64 << 10)));
	rc = ZSTD_compress(bomb.data, bomb.len, zeros, 64 << 10, 1);
	CHECK(!ZSTD_isError(rc) && rc < ZSTD_compressBound(1));
	CHECK_EQ(fdio_write(fd, bomb.data, rc), 0);
	le32_store(head + 4, 1);
	le32_store(head + 8, 1);
	le32_store(head + 12, 1);
	le64_store(head + 16, rc);
	CHECK_EQ(buf_append(&index, head, sizeof(head)), 0);
	CHECK_EQ(buf_append_u32(&index, (uint32_t)rc), 0);
	CHECK_EQ(buf_append_u32(&index, 1), 0);
	CHECK_EQ(buf_append(&index, d.b, sizeof(d.b)), 0);
	CHECK_EQ(buf_append_u32(&index, 1 << 24 | 1), 0);
	CHECK_OK(pack_set_add(&s, index.data, index.len, fd, &err), &err);
	CHECK_EQ(pack_set_get(&s, OBJECT_CHUNK, &d, &out, &err), -EBADMSG);
	CHECK_HAS(err.msg, "does not unpack to 1 bytes");
}

TEST_MAIN("pack")
