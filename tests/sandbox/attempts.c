/*
 * attempts.c - tries what a run must not be able to do, and says how each try ended.
 *
 *   attempts [NAME...]
 *
 * One line a try: its name, and 0 if it got through or the errno that stopped it.  The same
 * program is run outside as the control.  Arguments for some come from the environment:
 * HOST_PID, HOST_ABSTRACT, HOST_PORT, HOST_FILE, HOST_SOCKET.
 *
 * Calls that would do harm are made with arguments that the kernel refuses for another
 * reason, after it has looked at who asks or before: outside that other errno is seen.
 */
#include <arpa/inet.h>
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/attr.h"
#include "tests/sandbox/attempts-files.h"
#include "tests/sandbox/attempts-kernel.h"
#include "tests/sandbox/attempts.h"

static int try_readlink(const char *path)
{
	char text[4096];

	return told(readlink(path, text, sizeof(text)));
}

/* A child that waits to be killed, to do something to. */
static int on_child(int (*act)(pid_t pid))
{
	pid_t pid = fork();
	int r;

	if (pid == 0) {
		pause();
		_exit(0);
	}
	r = act(pid);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	return r;
}

/* A child born with these flags; it ends at once. */
static int try_clone(unsigned long flags)
{
	long pid = syscall(SYS_clone, flags | SIGCHLD, 0, 0, 0, 0);
	int r = told(pid);

	if (pid == 0)
		_exit(0);
	if (pid > 0)
		waitpid((pid_t)pid, NULL, 0);
	return r;
}

static int try_clone3(void)
{
	struct clone_args args = { .flags = CLONE_NEWUSER, .exit_signal = SIGCHLD };
	long pid = syscall(SYS_clone3, &args, sizeof(args));
	int r = told(pid);

	if (pid == 0)
		_exit(0);
	if (pid > 0)
		waitpid((pid_t)pid, NULL, 0);
	return r;
}

static int in_child(int (*act)(void))
{
	int status;
	pid_t pid = fork();

	if (pid == 0)
		_exit(act());
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 255;
}

static int do_unshare_user(void)
{
	return told(unshare(CLONE_NEWUSER));
}

static int do_unshare_time(void)
{
	return told(unshare(CLONE_NEWUSER | CLONE_NEWTIME));
}

static int do_setns(void)
{
	int fd = open("/proc/self/ns/uts", O_RDONLY | O_CLOEXEC);

	return fd < 0 ? errno : told(setns(fd, 0));
}

static int do_chroot(void)
{
	return told(chroot("."));
}

static int do_personality(void)
{
	return told(syscall(SYS_personality, PER_BSD));
}

static int do_no_randomize(void)
{
	return told(syscall(SYS_personality, ADDR_NO_RANDOMIZE));
}

static int do_trace_me(void)
{
	return told(ptrace(PTRACE_TRACEME, 0, 0, 0));
}

static int do_attach(pid_t pid)
{
	return told(ptrace(PTRACE_ATTACH, pid, 0, 0));
}

static int do_seize(pid_t pid)
{
	return told(ptrace(PTRACE_SEIZE, pid, 0, 0));
}

static int do_vm_read(pid_t pid)
{
	static char word[8];
	char into[8];
	struct iovec from = { word, 8 }, to = { into, 8 };

	return told(syscall(SYS_process_vm_readv, pid, &to, 1, &from, 1, 0));
}

static int do_getfd(pid_t pid)
{
	int fd = (int)syscall(SYS_pidfd_open, pid, 0);

	return fd < 0 ? errno : told(syscall(SYS_pidfd_getfd, fd, 2, 0));
}

static int do_kcmp(pid_t pid)
{
	return told(syscall(SYS_kcmp, pid, getpid(), 1, 0, 0));
}

static int try_handle(void)
{
	struct {
		struct file_handle h;
		unsigned char room[128];
	} f = { .h.handle_bytes = 128 };
	int mount, fd, root;

	if (name_to_handle_at(AT_FDCWD, given("HOST_FILE"), &f.h, &mount, 0) < 0) {
		/* Then with the one that every ext4 root has: inode 2. */
		f.h.handle_bytes = 8;
		f.h.handle_type = 1;
		memcpy(f.room, (unsigned char[]){ 2, 0, 0, 0, 0, 0, 0, 0 }, 8);
	}
	root = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	fd = open_by_handle_at(root, &f.h, O_RDONLY | O_CLOEXEC);
	return told(fd);
}

static int try_bpf(void)
{
	union bpf_attr attr = {
		.map_type = BPF_MAP_TYPE_ARRAY, .key_size = 4, .value_size = 4, .max_entries = 1
	};

	return told(syscall(SYS_bpf, BPF_MAP_CREATE, &attr, sizeof(attr)));
}

static int try_perf(void)
{
	struct perf_event_attr attr = { .type = PERF_TYPE_SOFTWARE, .size = sizeof(attr) };

	return told(syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0));
}

static int try_io_uring(void)
{
	unsigned char params[256] = { 0 };

	return told(syscall(SYS_io_uring_setup, 1, params));
}

static int try_vmsplice(void)
{
	int ends[2];
	char byte = 0;
	struct iovec iov = { &byte, 1 };

	return pipe2(ends, O_CLOEXEC) < 0 ? errno : told(vmsplice(ends[1], &iov, 1, 0));
}

static int try_socket(int family, int type, int protocol)
{
	int fd = socket(family, type | SOCK_CLOEXEC, protocol);
	int r = told(fd);

	close(fd);
	return r;
}

static int try_abstract(void)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	const char *name = given("HOST_ABSTRACT");
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(to.sun_path + 1, sizeof(to.sun_path) - 1, "%s", name);
	return told(
	    connect(fd, (struct sockaddr *)&to,
		    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name))));
}

static int try_port(void)
{
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_port = htons((uint16_t)atoi(given("HOST_PORT"))),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	return told(connect(fd, (struct sockaddr *)&to, sizeof(to)));
}

static int do_clock_set(void)
{
	struct timespec never = { .tv_nsec = -1 };

	return told(syscall(SYS_clock_settime, CLOCK_REALTIME, &never));
}

static int try_device(void)
{
	int r = told(mknod("attempt-node", S_IFCHR | 0600, makedev(1, 1)));

	unlink("attempt-node");
	return r;
}

static int try_user_0(void)
{
	return in_child(do_chroot);
}

/* A look at the tree of any other process. */
static int try_roots(void)
{
	DIR *proc = opendir("/proc");
	char path[300];
	int r = ENOENT;

	for (struct dirent *e; proc && r != 0 && (e = readdir(proc));) {
		if (!isdigit(e->d_name[0]) || atoi(e->d_name) == getpid())
			continue;
		snprintf(path, sizeof(path), "/proc/%s/root/etc", e->d_name);
		r = try_open(path, O_RDONLY | O_DIRECTORY) == 0 ? 0 : EACCES;
	}
	closedir(proc);
	return r;
}

/* Anything but three streams, or a socket or directory as one of them.  Before other tries open more. */
static int inherited;

static void look_at_inherited(void)
{
	struct stat st;

	inherited = ENOENT;
	for (int fd = 0; fd < 1024; fd++)
		if (fstat(fd, &st) == 0 && (fd > 2 || S_ISSOCK(st.st_mode) || S_ISDIR(st.st_mode)))
			inherited = 0;
}

static int try_host_socket(void)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int r;

	snprintf(to.sun_path, sizeof(to.sun_path), "%s", given("HOST_SOCKET"));
	r = told(connect(fd, (struct sockaddr *)&to, sizeof(to)));
	close(fd);
	return r;
}

/* FUSE_DEV_IOC_CLONE: another connection for the file system, asked of a file in it. */
static int try_fuse_clone(void)
{
	uint32_t fd = 0;
	int dir = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r = told(ioctl(dir, _IOR(229, 0, uint32_t), &fd));

	close(dir);
	return r;
}

static int try_kill(int sig)
{
	return told(kill(atoi(given("HOST_PID")), sig));
}

static int try_caps(void)
{
	/* CAP_SYS_ADMIN; 0 means that it is in the bounding set. */
	return prctl(PR_CAPBSET_READ, 21, 0, 0, 0) == 1 ? 0 : EPERM;
}

#define RAW(...) told(syscall(__VA_ARGS__))

/* X(name, how it ended) */
#define ATTEMPTS                                                                            \
	X(init_exe, try_open("/proc/1/exe", O_RDONLY))                                      \
	X(init_exe_link, try_readlink("/proc/1/exe"))                                       \
	X(init_root, try_open("/proc/1/root/etc/passwd", O_RDONLY))                         \
	X(init_cwd, try_readlink("/proc/1/cwd"))                                            \
	X(init_fd, try_open("/proc/1/fd", O_RDONLY | O_DIRECTORY))                          \
	X(init_mem, try_open("/proc/1/mem", O_RDWR))                                        \
	X(init_environ, try_open("/proc/1/environ", O_RDONLY))                              \
	X(init_cmdline, try_open("/proc/1/cmdline", O_RDONLY))                              \
	X(init_maps, try_open("/proc/1/maps", O_RDONLY))                                    \
	X(shadow, try_open("/etc/shadow", O_RDONLY))                                        \
	X(host_file, try_open(given("HOST_FILE"), O_RDONLY))                                \
	X(core_pattern, try_open("/proc/sys/kernel/core_pattern", O_WRONLY))                \
	X(modprobe_path, try_open("/proc/sys/kernel/modprobe", O_WRONLY))                   \
	X(net_sysctl, try_open("/proc/sys/net/ipv4/ip_forward", O_WRONLY))                  \
	X(hostname_sysctl, try_open("/proc/sys/kernel/hostname", O_WRONLY))                 \
	X(proc_kallsyms, try_open("/proc/kallsyms", O_RDONLY))                              \
	X(proc_kmsg, try_open("/proc/kmsg", O_RDONLY | O_NONBLOCK))                         \
	X(proc_keys, try_open("/proc/keys", O_RDONLY))                                      \
	X(proc_timer_list, try_open("/proc/timer_list", O_RDONLY))                          \
	X(proc_interrupts, try_open("/proc/interrupts", O_RDONLY))                          \
	X(proc_slabinfo, try_open("/proc/slabinfo", O_RDONLY))                              \
	X(proc_pageflags, try_open("/proc/kpageflags", O_RDONLY))                           \
	X(pressure, try_pressure("/proc/pressure/memory"))                                  \
	X(sys, try_open("/sys/kernel", O_RDONLY | O_DIRECTORY))                             \
	X(dev_kmsg, try_open("/dev/kmsg", O_RDONLY | O_NONBLOCK))                           \
	X(dev_fuse, try_open("/dev/fuse", O_RDWR))                                          \
	X(dev_console, try_open("/dev/tty0", O_RDWR | O_NOCTTY | O_NONBLOCK))               \
	X(dev_loop, try_open("/dev/loop-control", O_RDWR))                                  \
	X(dev_userfaultfd, try_open("/dev/userfaultfd", O_RDWR))                            \
	X(make_device, try_device())                                                        \
	X(open_by_handle, try_handle())                                                     \
	X(chroot, try_user_0())                                                             \
	X(unshare_user, in_child(do_unshare_user))                                          \
	X(unshare_time, in_child(do_unshare_time))                                          \
	X(clone_user, try_clone(CLONE_NEWUSER))                                             \
	X(clone_user_net, try_clone(CLONE_NEWUSER | CLONE_NEWNET))                          \
	X(clone3_user, try_clone3())                                                        \
	X(setns, in_child(do_setns))                                                        \
	X(mount, RAW(SYS_mount, "none", ".", "tmpfs", 0, NULL))                             \
	X(umount, RAW(SYS_umount2, "/attempt-nothing", 0))                                  \
	X(pivot_root, RAW(SYS_pivot_root, "/attempt-nothing", "/attempt-nothing"))          \
	X(fsopen, RAW(SYS_fsopen, "tmpfs", 1))                                              \
	X(fspick, RAW(SYS_fspick, AT_FDCWD, "/proc", 1))                                    \
	X(open_tree, RAW(SYS_open_tree, AT_FDCWD, "/", 1 | 0x80000))                        \
	X(move_mount, RAW(SYS_move_mount, -1, "attempt-nothing", -1, "attempt-nothing", 0)) \
	X(mount_setattr, RAW(SYS_mount_setattr, -1, "attempt-nothing", 0, NULL, 0))         \
	X(attach, on_child(do_attach))                                                      \
	X(seize, on_child(do_seize))                                                        \
	X(vm_read, on_child(do_vm_read))                                                    \
	X(getfd, on_child(do_getfd))                                                        \
	X(kcmp, on_child(do_kcmp))                                                          \
	X(keyctl, RAW(SYS_keyctl, 0, -3, 1))                                                \
	X(add_key, RAW(SYS_add_key, "user", "attempt", "x", 1, -1))                         \
	X(request_key, RAW(SYS_request_key, "user", "attempt-none", NULL, 0))               \
	X(bpf, try_bpf())                                                                   \
	X(perf, try_perf())                                                                 \
	X(userfaultfd, RAW(SYS_userfaultfd, 1))                                             \
	X(io_uring, try_io_uring())                                                         \
	X(io_setup, try_io_setup())                                                         \
	X(memfd_secret, RAW(447, 0))                                                        \
	X(sched_core, in_child(do_sched_core))                                              \
	X(core_limit, in_child(do_core_limit))                                              \
	X(vmsplice, try_vmsplice())                                                         \
	X(fanotify, RAW(SYS_fanotify_init, 0x200, 0))                                       \
	X(mbind, RAW(SYS_mbind, 0, 0, 0, NULL, 0, 0))                                       \
	X(move_pages, RAW(SYS_move_pages, 0, 0, NULL, NULL, NULL, 0))                       \
	X(migrate_pages, RAW(SYS_migrate_pages, 0, 0, NULL, NULL))                          \
	X(set_mempolicy, RAW(SYS_set_mempolicy, 0, NULL, 0))                                \
	X(personality, in_child(do_personality))                                            \
	X(syslog, RAW(SYS_syslog, 10, NULL, 0))                                             \
	X(acct, RAW(SYS_acct, "/attempt-nothing"))                                          \
	X(swapon, RAW(SYS_swapon, "/attempt-nothing", 0))                                   \
	X(swapoff, RAW(SYS_swapoff, "/attempt-nothing"))                                    \
	X(quotactl, RAW(SYS_quotactl, 0, "/attempt-nothing", 0, NULL))                      \
	X(reboot, RAW(SYS_reboot, 0, 0, 0, NULL))                                           \
	X(kexec, RAW(SYS_kexec_load, 0, 0, NULL, 0xffffffff))                               \
	X(init_module, RAW(SYS_init_module, NULL, 0, ""))                                   \
	X(delete_module, RAW(SYS_delete_module, "attempt_nothing", 0))                      \
	X(sethostname, RAW(SYS_sethostname, NULL, -1))                                      \
	X(setdomainname, RAW(SYS_setdomainname, NULL, -1))                                  \
	X(clock_set, do_clock_set())                                                        \
	X(adjtimex, RAW(SYS_clock_adjtime, 99, NULL))                                       \
	X(vsock, try_socket(40, SOCK_STREAM, 0))                                            \
	X(alg, try_socket(38, SOCK_SEQPACKET, 0))                                           \
	X(packet, try_socket(17, SOCK_RAW, 0))                                              \
	X(xdp, try_socket(44, SOCK_RAW, 0))                                                 \
	X(raw_ip, try_socket(AF_INET, SOCK_RAW, 1))                                         \
	X(netlink_uevent, try_socket(16, SOCK_RAW, 15))                                     \
	X(netlink_netfilter, try_socket(16, SOCK_RAW, 12))                                  \
	X(netlink_audit, try_socket(16, SOCK_RAW, 9))                                       \
	X(sctp, try_socket(AF_INET, SOCK_STREAM, 132))                                      \
	X(sctp_packets, try_socket(AF_INET, SOCK_SEQPACKET, 0))                             \
	X(dccp, try_socket(AF_INET, 6, 33))                                                 \
	X(l2tp, try_socket(AF_INET, SOCK_DGRAM, 115))                                       \
	X(smc, try_socket(AF_INET6, SOCK_STREAM, 256))                                      \
	X(packet_old, try_socket(AF_INET, 10, 0x300))                                       \
	X(kernel_tls, try_kernel_tls())                                                     \
	X(bridges, try_socket_ioctl(SIOCBRADDBR))                                           \
	X(bridges_old, try_socket_ioctl(SIOCGIFBR))                                         \
	X(vlans, try_socket_ioctl(SIOCGIFVLAN))                                             \
	X(line_discipline, in_child(do_discipline))                                         \
	X(push_input, in_child(do_push))                                                    \
	X(push_input_high, in_child(do_push_high))                                          \
	X(console_tricks, in_child(do_console))                                             \
	X(host_pid, try_kill(0))                                                            \
	X(init_stop, told(kill(1, SIGSTOP)))                                                \
	X(init_kill, told(kill(1, SIGKILL)))                                                \
	X(roots, try_roots())                                                               \
	X(inherited, inherited)                                                             \
	X(host_socket, try_host_socket())                                                   \
	X(fuse_clone, try_fuse_clone())                                                     \
	X(abstract, try_abstract())                                                         \
	X(port, try_port())                                                                 \
	X(lease, try_lease())                                                               \
	X(xattr_trusted, try_xattr("trusted.attempt", "x", 1))                              \
	X(xattr_security, try_xattr("security.attempt", "x", 1))                            \
	X(xattr_caps, try_file_caps())                                                      \
	X(xattr_large, try_xattr("user.attempt", calloc(1, 65537), 65537))                  \
	X(bounding_set, try_caps())                                                         \
	X(no_randomize, in_child(do_no_randomize))                                          \
	X(trace_me, in_child(do_trace_me))                                                  \
	X(memfd, RAW(SYS_memfd_create, "attempt", 1))                                       \
	X(setid_fchmod, try_setid_fchmod(04000))                                            \
	X(setid_group, try_setid_fchmod(02000))                                             \
	X(setid_fchmodat, try_setid_fchmodat(false))                                        \
	X(setid_fchmodat2, try_setid_fchmodat(true))                                        \
	X(setid_old, try_setid_old())                                                       \
	X(setid_openat, after_setid(SETID_OPEN(SETID_NAME, O_CREAT | O_EXCL)))              \
	X(setid_tmpfile, after_setid(SETID_OPEN(".", O_TMPFILE)))                           \
	X(setid_openat2, try_setid_openat2())                                               \
	X(setid_mknodat,                                                                    \
	  after_setid(syscall(SYS_mknodat, AT_FDCWD, SETID_NAME, S_IFREG | 04755, 0)))      \
	X(setid_folder, try_setid_folder())                                                 \
	X(setid_mkdirat, after_setid(syscall(SYS_mkdirat, AT_FDCWD, SETID_NAME, 02755)))

int main(int argc, char **argv)
{
	/* A try that hangs is one that got through to something. */
	alarm(60);
	look_at_inherited();
#define X(name, how)                                           \
	{                                                      \
		bool wanted = argc < 2;                        \
		for (int i = 1; i < argc; i++)                 \
			wanted |= strcmp(argv[i], #name) == 0; \
		if (wanted) {                                  \
			printf("%s %d\n", #name, (how));       \
			fflush(stdout);                        \
		}                                              \
	}
	ATTEMPTS
	return 0;
}
