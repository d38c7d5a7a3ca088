#include "tests/lib/test.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/xattr.h>

#include "base/sys.h"

TEST(random_bytes_fill_all_of_it_and_differ_each_time)
{
	static unsigned char a[5000], b[5000];
	static const unsigned char zero[16];
	size_t i;

	CHECK_EQ(sys_random(a, sizeof(a)), 0);
	CHECK_EQ(sys_random(b, sizeof(b)), 0);
	CHECK(memcmp(a, b, sizeof(a)) != 0);
	for (i = 0; i + sizeof(zero) <= sizeof(a); i += sizeof(zero))
		CHECK(memcmp(a + i, zero, sizeof(zero)) != 0);
	CHECK(memcmp(a + sizeof(a) - 8, zero, 8) != 0);
	CHECK_EQ(sys_random(a, 0), 0);
}

TEST(a_file_can_be_synced_and_a_bad_descriptor_is_an_error)
{
	AUTO_CLOSE int fd = open(test_path("f"), O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	CHECK(fd >= 0);
	CHECK_EQ(sys_sync_data(fd), 0);
	CHECK_EQ(sys_sync_data(-1), -EBADF);
}

TEST(every_errno_has_a_text_even_an_unknown_one)
{
	char text[128];

	CHECK_STR(sys_errno_text(ENOENT, text, sizeof(text)), "No such file or directory");
	CHECK_HAS(sys_errno_text(54321, text, sizeof(text)), "54321");
}

TEST(file_times_have_one_name)
{
	struct stat st;

	CHECK_EQ(stat(test_dir(), &st), 0);
	CHECK_EQ(SYS_ST_MTIM(&st).tv_sec, st.st_mtime);
	CHECK_EQ(SYS_ST_CTIM(&st).tv_sec, st.st_ctime);
}

TEST(a_node_can_be_held_without_opening_or_following_it)
{
	AUTO_CLOSE int dir = open(test_dir(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	AUTO_CLOSE int link = -1, fifo = -1;
	struct stat st;

	CHECK_EQ(symlinkat("nowhere", dir, "link"), 0);
	CHECK_EQ(mkfifoat(dir, "fifo", 0600), 0);
	link = sys_open_node(dir, "link");
	CHECK(link >= 0);
	CHECK_EQ(fstat(link, &st), 0);
	CHECK(S_ISLNK(st.st_mode));
	fifo = sys_open_node(dir, "fifo");
	CHECK(fifo >= 0);
	CHECK_EQ(fstat(fifo, &st), 0);
	CHECK(S_ISFIFO(st.st_mode));
	CHECK_EQ(sys_list_xattrs(fifo, NULL, 0), 0);
	CHECK_EQ(sys_open_node(dir, "absent"), -ENOENT);
}

TEST(extended_attributes_are_read_through_any_descriptor)
{
	AUTO_CLOSE int fd = open(test_path("attributes"), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	AUTO_CLOSE int node = sys_open_node(AT_FDCWD, test_path("attributes"));
	char names[64], value[8];

	CHECK(fd >= 0 && node >= 0);
	CHECK_EQ(sys_list_xattrs(fd, NULL, 0), 0);
	if (fsetxattr(fd, "user.a", "12345", 5, 0) < 0)
		TEST_SKIP("this file system has no extended attributes");
	for (int i = 0; i < 2; i++) {
		const int by = i == 0 ? fd : node;

		CHECK_EQ(sys_list_xattrs(by, NULL, 0), 7);
		CHECK_EQ(sys_list_xattrs(by, names, 3), -ERANGE);
		CHECK_EQ(sys_list_xattrs(by, names, sizeof(names)), 7);
		CHECK_STR(names, "user.a");
		CHECK_EQ(sys_get_xattr(by, "user.a", NULL, 0), 5);
		CHECK_EQ(sys_get_xattr(by, "user.a", value, 3), -ERANGE);
		CHECK_EQ(sys_get_xattr(by, "user.a", value, sizeof(value)), 5);
		CHECK_MEM(value, 5, "12345", 5);
		CHECK_EQ(sys_get_xattr(by, "user.b", value, sizeof(value)), -ENODATA);
	}
}

TEST_MAIN("sys")
