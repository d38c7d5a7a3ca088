#include "tests/lib/test.h"

#include <errno.h>
#include <fcntl.h>

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

TEST_MAIN("sys")
