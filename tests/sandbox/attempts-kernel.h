/*
 * attempts-kernel.h - tries at the kernel itself: terminals, modules, what the machine has once.
 */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <termios.h>
#include <unistd.h>

#include "tests/sandbox/attempts.h"

/* On a terminal of one's own, which it takes a session for. */
static int on_terminal(unsigned long request)
{
	int unlocked = 0, master, slave;

	setsid();
	master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (master < 0 || ioctl(master, TIOCSPTLCK, &unlocked) < 0)
		return 254;
	slave = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (slave < 0 || ioctl(slave, TIOCSCTTY, 0) < 0)
		return 253;
	return told(syscall(SYS_ioctl, slave, request, "x"));
}

static int do_push(void)
{
	return on_terminal(TIOCSTI);
}

static int do_push_high(void)
{
	return on_terminal(TIOCSTI | 1UL << 32);
}

static int do_console(void)
{
	return on_terminal(TIOCLINUX | 1UL << 40);
}

static int do_discipline(void)
{
	return on_terminal(TIOCSETD);
}

static int try_socket_ioctl(unsigned long request)
{
	unsigned char room[256] = { 0 };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int r = told(ioctl(fd, request, room));

	close(fd);
	return r;
}

static int try_kernel_tls(void)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int r = told(setsockopt(fd, IPPROTO_TCP, 31 /* TCP_ULP */, "tls", 3));

	close(fd);
	return r;
}

static int try_io_setup(void)
{
	unsigned long ctx = 0;
	int r = told(syscall(SYS_io_setup, 1, &ctx));

	if (r == 0)
		syscall(SYS_io_destroy, ctx);
	return r;
}

/* PR_SCHED_CORE, PR_SCHED_CORE_CREATE, for this thread */
static int do_sched_core(void)
{
	return told(prctl(62, 1, 0, 0, 0));
}

/* At 0 a core goes to the program of the host that core_pattern names. */
static int do_core_limit(void)
{
	struct rlimit none = { 0, 0 }, now;

	if (setrlimit(RLIMIT_CORE, &none) < 0 || getrlimit(RLIMIT_CORE, &now) < 0)
		return errno;
	return now.rlim_cur == 0 ? 0 : EPERM;
}

/* A trigger costs the kernel work for the whole machine for as long as it is open. */
static int try_pressure(const char *path)
{
	static const char trigger[] = "some 1000000 2000000";
	int fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	int r = fd < 0 ? errno : told(write(fd, trigger, sizeof(trigger)));

	close(fd);
	return r;
}
