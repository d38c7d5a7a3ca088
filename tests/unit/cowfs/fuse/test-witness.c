/*
 * Whether a thread has left a write(2), as the mount that hands its pieces in tells: what happens
 * while it is looked at makes the look worthless.
 */
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/sys.h"
#include "cowfs/fuse/mount-i.h"
#include "cowfs/fuse/request.h"
#include "tests/lib/test.h"

#define WRITER 1234

static void (*meanwhile)(struct mount *m);
static struct mount *looked_from;
static struct mounts alone = { .mates_lock = PTHREAD_RWLOCK_INITIALIZER };
static bool asleep;

int __wrap_sys_look_at_task(pid_t id, struct sys_task *ret);

int __wrap_sys_look_at_task(pid_t id, struct sys_task *ret)
{
	CHECK_EQ(id, WRITER);
	if (meanwhile)
		meanwhile(looked_from);
	*ret = (struct sys_task){ .asleep = asleep };
	return 0;
}

static bool has_left(struct mount *m, void (*fn)(struct mount *m))
{
	m->fd = eventfd(0, EFD_CLOEXEC);
	CHECK(m->fd >= 0);
	pthread_mutex_init(&m->lock, NULL);
	looked_from = m;
	meanwhile = fn;

	const bool left = request_witness(m, WRITER, 7, 4096);

	pthread_mutex_destroy(&m->lock);
	close(m->fd);
	return left;
}

TEST(who_sleeps_and_of_whom_nothing_is_here_has_left)
{
	struct mount m = { .all = &alone };

	asleep = true;
	CHECK(has_left(&m, NULL));
	asleep = false;
	CHECK(!has_left(&m, NULL));
}

TEST(while_something_is_being_answered_nobody_has)
{
	struct mount m = { .all = &alone, .turn = 1 };

	asleep = true;
	CHECK(!has_left(&m, NULL));
}

static void answer(struct mount *m)
{
	m->turn += 2;
}

static void land(struct mount *m)
{
	m->landings++;
}

static void ask(struct mount *m)
{
	CHECK_EQ(eventfd_write(m->fd, 1), 0);
}

TEST(who_was_answered_while_he_was_looked_at_may_go_on)
{
	void (*const events[])(struct mount * m) = { answer, land, ask };

	asleep = true;
	for (size_t i = 0; i < ARRAY_LEN(events); i++) {
		struct mount m = { .all = &alone };

		CHECK(!has_left(&m, events[i]));
	}
}

TEST_MAIN("witness")
