/*
 * tty-linux.c - a terminal for a run: one of its own instance of devpts, so that its name means
 * something inside. The caller gets the other side.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "runner/sandbox-i.h"

int tty_open(struct run *run, struct err *err)
{
	AUTO_CLOSE int master = open("/dev/pts/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC), slave = -1;
	struct line_msg msg = { .kind = LINE_TTY };
	struct winsize size;
	int unlocked = 0, r;

	if (master < 0)
		return err_sys(err, "opening the terminal of the run");
	if (ioctl(master, TIOCSPTLCK, &unlocked) < 0)
		return err_sys(err, "unlocking the terminal of the run");
	slave = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (slave < 0)
		return err_sys(err, "opening the other side of the terminal of the run");
	if (run->spec->in_fd >= 0 && ioctl(run->spec->in_fd, TIOCGWINSZ, &size) == 0)
		ioctl(slave, TIOCSWINSZ, &size);
	if (ioctl(slave, TIOCSCTTY, 0) < 0)
		return err_sys(err, "making the terminal of the run its own");
	r = line_send(run->line, &msg, &master, 1);
	if (r < 0)
		return err_wrap(err, r, "handing out the terminal of the run");
	for (int i = 0; i < 3; i++) {
		if (run->their[i] >= 0)
			close(run->their[i]);
		run->their[i] = fcntl(slave, F_DUPFD_CLOEXEC, 3);
		if (run->their[i] < 0)
			return err_sys(err, "copying the terminal of the run");
	}
	return 0;
}
