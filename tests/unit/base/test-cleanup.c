#include "tests/lib/test.h"

#include <errno.h>
#include <fcntl.h>

static int n_freed;

struct thing {
	int unused;
};

static void thing_free(struct thing *t)
{
	if (t)
		n_freed++;
}
DEFINE_CLEANUP(struct thing *, thing_free)

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

TEST(an_owner_is_released_when_its_scope_ends)
{
	struct thing thing;

	n_freed = 0;
	{
		CLEANUP(thing_free_p) struct thing *t = &thing;

		CHECK(t);
		CHECK_EQ(n_freed, 0);
	}
	CHECK_EQ(n_freed, 1);
}

static struct thing *hand_over(struct thing *given)
{
	CLEANUP(thing_free_p) struct thing *t = given;

	return TAKE_PTR(t);
}

TEST(what_was_taken_is_not_released)
{
	struct thing thing;

	n_freed = 0;
	CHECK(hand_over(&thing) == &thing);
	CHECK_EQ(n_freed, 0);
}

TEST(a_struct_that_was_taken_is_empty)
{
	struct pair {
		int first, second;
	} from = { 1, 2 }, to;

	to = TAKE_STRUCT(from);
	CHECK_EQ(to.first, 1);
	CHECK_EQ(to.second, 2);
	CHECK_EQ(from.first, 0);
	CHECK_EQ(from.second, 0);
}

static int open_null(bool take)
{
	AUTO_CLOSE int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	int number = fd;

	CHECK(is_open(fd));
	if (take)
		return TAKE_FD(fd);
	return number;
}

TEST(a_descriptor_is_closed_unless_it_is_taken)
{
	int fd = open_null(false);

	CHECK(!is_open(fd));
	fd = open_null(true);
	CHECK(is_open(fd));
	close(fd);
}

TEST(a_descriptor_that_was_never_opened_is_fine)
{
	errno = 0;
	{
		AUTO_CLOSE int fd = -1;

		CHECK_EQ(fd, -1);
	}
	CHECK_EQ(errno, 0);
}

TEST(memory_is_freed_at_every_return)
{
	AUTO_FREE char *a = malloc(10);
	AUTO_FREE char *b = NULL;

	CHECK(a);
	CHECK(!b); /* the leak checker is the other half of this test */
}

TEST(a_descriptor_is_closed_once)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC), was = fd;

	cleanup_close(&fd);
	CHECK(!is_open(was));
	CHECK_EQ(fd, -1);
	cleanup_close(&fd);
}

TEST_MAIN("cleanup")
