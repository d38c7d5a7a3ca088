/*
 * FIFOs, sockets and devices.
 */
#include <sys/socket.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "tests/posix/posix.h"

static void write_to_fifo(void *arg)
{
	int fd = (int)NEED(open(arg, O_WRONLY | O_CLOEXEC));

	IS(write(fd, "through the pipe", 16), 16);
}

CASE(special, a_fifo_carries_bytes_and_keeps_none)
{
	char have[32], p[] = "p";
	struct stat st;
	pid_t pid;
	int fd;

	NEED(mkfifo("p", 0640));
	st = stat_of("p");
	IS(st.st_mode, S_IFIFO | 0640);
	IS(st.st_nlink, 1);
	IS(st.st_size, 0);
	FAILS(open("p", O_WRONLY | O_NONBLOCK | O_CLOEXEC), ENXIO);
	pid = start(write_to_fifo, p);
	fd = (int)NEED(open("p", O_RDONLY | O_CLOEXEC));
	IS(read(fd, have, sizeof(have)), 16);
	IS(memcmp(have, "through the pipe", 16), 0);
	IS(read(fd, have, 1), 0);
	close(fd);
	gather(pid);
	IS(size_of("p"), 0);
	OK(rename("p", "q"));
	OK(chmod("q", 0600));
	IS(stat_of("q").st_mode, S_IFIFO | 0600);
	FAILS(truncate("q", 0), EINVAL);
	OK(unlink("q"));
}

static struct sockaddr_un address(const char *path)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };

	snprintf(a.sun_path, sizeof(a.sun_path), "%s", path);
	return a;
}

CASE(special, a_socket_is_met_at_its_name)
{
	struct sockaddr_un a = address("s");
	int server, client, peer;
	char have[8];

	server = (int)NEED(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
	NEED(bind(server, (struct sockaddr *)&a, sizeof(a)));
	TRUE(S_ISSOCK(stat_of("s").st_mode));
	NEED(listen(server, 1));
	client = (int)NEED(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
	OK(rename("s", "t")); /* who moves the name moves the meeting place */
	FAILS(connect(client, (struct sockaddr *)&a, sizeof(a)), ENOENT);
	a = address("t");
	NEED(connect(client, (struct sockaddr *)&a, sizeof(a)));
	peer = (int)NEED(accept(server, NULL, NULL));
	IS(write(client, "hello", 5), 5);
	IS(read(peer, have, sizeof(have)), 5);
	FAILS(open("t", O_RDWR | O_CLOEXEC), ENXIO);
	FAILS(bind((int)NEED(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)), (struct sockaddr *)&a,
		   sizeof(a)),
	      EADDRINUSE);
	close(server);
	FAILS(connect((int)NEED(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)),
		      (struct sockaddr *)&a, sizeof(a)),
	      ECONNREFUSED);
	OK(unlink("t"));
}

CASE(special, devices_keep_their_numbers)
{
	static const dev_t numbers[] = { 0x103, 0x0, 0xfff00fff, 0x105 };
	char name[32];
	struct stat st;
	size_t i;
	int fd;

	need_root();
	for (i = 0; i < ARRAY_LEN(numbers); i++) {
		dev_t dev = makedev(numbers[i] >> 8 & 0xfff, numbers[i] & 0xff);
		mode_t type = i % 2 ? S_IFBLK : S_IFCHR;

		snprintf(name, sizeof(name), "dev-%zu", i);
		if (mknod(name, type | 0640, dev) != 0 && errno == EPERM)
			skip("no devices can be made here");
		st = stat_of(name);
		IS(st.st_mode, type | 0640);
		IS(st.st_rdev, dev);
		IS(st.st_size, 0);
	}
	fd = open("dev-0", O_RDWR | O_CLOEXEC);
	if (fd >= 0)
		IS(write(fd, "x", 1), 1); /* it is the null device */
	else
		IS(errno, EACCES); /* a mount with nodev */
}

CASE(special, an_ordinary_user_makes_no_devices)
{
	if (geteuid() == 0)
		skip("root may");
	FAILS(mknod("c", S_IFCHR | 0644, makedev(1, 3)), EPERM);
	FAILS(mknod("b", S_IFBLK | 0644, makedev(7, 0)), EPERM);
	OK(mknod("p", S_IFIFO | 0644, 0));
	OK(mknod("s", S_IFSOCK | 0644, 0));
	OK(mknod("f", S_IFREG | 0644, 0));
}

CASE(special, mknod_makes_what_it_is_told)
{
	OK(mknod("f", S_IFREG | 0644, 0));
	TRUE(S_ISREG(stat_of("f").st_mode));
	IS(size_of("f"), 0);
	OK(mknod("g", 0600, 0));
	TRUE(S_ISREG(stat_of("g").st_mode));
	OK(mknod("p", S_IFIFO | 0644, 0));
	TRUE(S_ISFIFO(stat_of("p").st_mode));
	OK(mknod("s", S_IFSOCK | 0644, 0));
	TRUE(S_ISSOCK(stat_of("s").st_mode));
	FAILS(mknod("d", S_IFDIR | 0755, 0), EPERM);
	FAILS(mknod("l", S_IFLNK | 0755, 0), EINVAL);
}
