/* What becomes of a mover, which here is this program under that name. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/sys.h"
#include "engine/api/mover.h"
#include "engine/host/mover-process-i.h"
#include "tests/lib/test.h"

#define LONG_MS 60000

/* `MOVER_NAME ACT CODE`, in place of the two paths.  It runs before main(). */
__attribute__((constructor)) static void be_mover(int argc, char **argv)
{
	if (argc != 3 || strcmp(argv[0], MOVER_NAME) != 0)
		return;
	if (strcmp(argv[1], "stop") == 0)
		raise(SIGSTOP);
	if (strcmp(argv[1], "die") == 0)
		raise(SIGKILL);
	_exit(atoi(argv[2]));
}

static int end_with(int code)
{
	struct err err = { 0 };
	char text[16];
	int r;

	snprintf(text, sizeof(text), "%d", code);
	r = mover_move("end", text, LONG_MS, &err);
	CHECK_EQ(err.code, r);
	return r;
}

TEST(what_this_machine_never_allows_is_told_from_what_may_pass)
{
	static const int never[] = { EPERM, EACCES, ENOSYS, ENOSPC, EINVAL, EBUSY };
	static const int passing[] = { EAGAIN, ENOMEM, EMFILE, ENFILE, EIO };

	CHECK_EQ(end_with(0), 0);
	for (size_t i = 0; i < ARRAY_LEN(never); i++)
		CHECK_EQ(end_with(never[i]), -ENOTSUP);
	for (size_t i = 0; i < ARRAY_LEN(passing); i++)
		CHECK_EQ(end_with(passing[i]), -passing[i]);
}

TEST(one_that_is_killed_may_be_tried_again)
{
	struct err err = { 0 };

	CHECK_EQ(mover_move("die", "0", LONG_MS, &err), -EINTR);
}

TEST(one_that_is_stopped_is_waited_for_no_longer_than_its_time_and_is_gone_then)
{
	const uint64_t begun = sys_boot_ms();
	struct err err = { 0 };

	CHECK_EQ(mover_move("stop", "0", 100, &err), -ETIMEDOUT);
	CHECK(sys_boot_ms() - begun >= 100);
	CHECK_HAS(err.msg, "moving the mount at 'stop'");
	/* Neither a process nor a zombie. */
	CHECK_EQ(waitpid(-1, NULL, 0), -1);
	CHECK_EQ(errno, ECHILD);
}

TEST_MAIN("mover-process")
