#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/log.h"
#include "base/path.h"
#include "cli/fail.h"
#include "cli/main/line.h"
#include "engine/api/daemon.h"
#include "engine/api/keeper.h"
#include "engine/api/mover.h"
#include "engine/api/remote.h"
#include "engine/api/walker.h"

/*
 * A stream that was closed would lend its number to the next file opened, and what
 * is printed would go into that.  Output that nobody takes must still fail.
 */
static void fill_closed_streams(void)
{
	for (int fd = 0; fd <= 2; fd++)
		if (fcntl(fd, F_GETFD) < 0 && errno == EBADF)
			IGNORE_RESULT(open("/dev/null", fd == 1 ? O_RDONLY : O_RDWR),
				      "then the number stays free, as it was");
}

/* A reader that left early is no error to report; the code is the one of a death by SIGPIPE. */
static int output_failed(const struct invocation *inv, int code, const char *sentence)
{
	if (code == -EPIPE)
		return 128 + 13;
	log_error("%s", sentence);
	return fail_status(inv);
}

/* Did all that was printed arrive? */
static int finish_output(const struct invocation *inv, int status)
{
	struct err err = { 0 };

	errno = 0;
	if (fflush(inv->out) == EOF && errno != 0)
		err_sys(&err, "writing to standard output");
	else if (ferror(inv->out))
		err_set(&err, -EIO, "writing to standard output failed");
	else
		return status;
	return output_failed(inv, err.code, err.msg);
}

int main(int argc, char **argv)
{
	struct invocation inv = { .out = stdout, .program = "snap" };
	struct err err = { 0 };
	int status;

	log_set_by_environment();
	/* Nobody types these: it is how a command starts the daemon, and that another process. */
	if (argc > 0 && strcmp(argv[0], DAEMON_NAME) == 0)
		return daemon_main(argc, argv);
	if (argc > 0 && strcmp(argv[0], KEEPER_NAME) == 0)
		return keeper_main(argc, argv);
	if (argc > 0 && strcmp(argv[0], FETCHER_NAME) == 0)
		return fetcher_main(argc, argv);
	if (argc > 0 && strcmp(argv[0], WALKER_NAME) == 0)
		return walker_main(argc > 2 ? argv[2] : NULL);
	if (argc > 0 && strcmp(argv[0], MOVER_NAME) == 0)
		return mover_main(argc, argv);
	fill_closed_streams();
	/* Under Ubuntu `snap` may be another program, so hints name the one that was called. */
	if (argc > 0 && strcmp(path_base(argv[0]), "snapcow") == 0)
		inv.program = "snapcow";

	status = line_run(&inv, argc > 0 ? argc - 1 : 0, argv + (argc > 0), &err);
	if (status < 0)
		return output_failed(&inv, status, err.msg);
	return finish_output(&inv, status);
}
