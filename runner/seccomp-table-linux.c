/*
 * seccomp-table-linux.c - the list, for x86_64 and aarch64 alike.
 *
 * It allows the calls that build tools, interpreters, databases and debuggers of one's own children
 * were seen to use and that act on the run itself only. The names are those of libseccomp; calls of
 * only one of the two architectures are listed among the others.
 */
#include "runner/sandbox.h"
#include "runner/seccomp-table.h"

#include <linux/sched.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/attr.h"

/* clang-format off */
const char *const seccomp_allowed[] = {
	/* files by name */
	"access", "chdir", "chown", "faccessat", "faccessat2", "fchdir", "fchown", "fchownat",
	"fstat", "fstatfs", "futimesat", "getcwd", "getdents", "getdents64", "inotify_add_watch",
	"inotify_init", "inotify_init1", "inotify_rm_watch", "lchown", "link", "linkat", "lstat",
	"newfstatat", "readlink", "readlinkat", "rename", "renameat", "renameat2", "rmdir", "stat",
	"statfs", "statx", "symlink", "symlinkat", "truncate", "umask", "unlink", "unlinkat",
	"ustat", "utime", "utimensat", "utimes", "fgetxattr", "flistxattr", "fremovexattr",
	"fsetxattr", "getxattr", "lgetxattr", "listxattr", "llistxattr", "lremovexattr",
	"lsetxattr", "removexattr", "setxattr",
	/* files by descriptor */
	"close", "close_range", "copy_file_range", "dup", "dup2", "dup3", "fadvise64", "fallocate",
	"fdatasync", "flock", "fsync", "ftruncate", "lseek", "pread64", "preadv", "preadv2",
	"pwrite64", "pwritev", "pwritev2", "read", "readahead", "readv", "sendfile", "splice",
	"sync", "sync_file_range", "syncfs", "tee", "write", "writev", "cachestat",
	/* waiting */
	"epoll_create", "epoll_create1", "epoll_ctl", "epoll_ctl_old", "epoll_pwait",
	"epoll_pwait2", "epoll_wait", "epoll_wait_old", "eventfd", "eventfd2", "pipe", "pipe2",
	"poll", "ppoll", "pselect6", "select", "signalfd", "signalfd4", "timerfd_create",
	"timerfd_gettime", "timerfd_settime",
	/* memory */
	"brk", "madvise", "membarrier", "memfd_create", "mincore", "mlock", "mlock2", "mlockall",
	"mmap", "mprotect", "mremap", "msync", "munlock", "munlockall", "munmap", "pkey_alloc",
	"pkey_free", "pkey_mprotect", "get_mempolicy", "mseal", "map_shadow_stack",
	/* processes and threads */
	"arch_prctl", "capget", "capset", "execve", "execveat", "exit", "exit_group", "fork",
	"futex", "futex_waitv", "futex_wake", "futex_wait", "futex_requeue", "get_robust_list",
	"get_thread_area", "getcpu", "getegid", "geteuid", "getgid", "getgroups", "getpgid",
	"getpgrp", "getpid", "getppid", "getpriority", "getresgid", "getresuid", "getrlimit",
	"getrusage", "getsid", "gettid", "getuid", "ioprio_get", "ioprio_set", "kill",
	"pidfd_open", "pidfd_send_signal", "restart_syscall", "rseq",
	"sched_get_priority_max", "sched_get_priority_min", "sched_getaffinity", "sched_getattr",
	"sched_getparam", "sched_getscheduler", "sched_rr_get_interval", "sched_setaffinity",
	"sched_setattr", "sched_setparam", "sched_setscheduler", "sched_yield", "seccomp",
	"set_robust_list", "set_thread_area", "set_tid_address", "setfsgid", "setfsuid", "setgid",
	"setgroups", "setpgid", "setpriority", "setregid", "setresgid", "setresuid", "setreuid",
	"setsid", "setuid", "tgkill", "time", "times", "tkill", "uname", "sysinfo",
	"vfork", "wait4", "waitid", "landlock_create_ruleset", "landlock_add_rule",
	"landlock_restrict_self",
	/* signals */
	"alarm", "getitimer", "pause", "rt_sigaction", "rt_sigpending", "rt_sigprocmask",
	"rt_sigqueueinfo", "rt_sigreturn", "rt_sigsuspend", "rt_sigtimedwait", "rt_tgsigqueueinfo",
	"setitimer", "sigaltstack",
	/* time, to read and to wait for */
	"clock_getres", "clock_gettime", "clock_nanosleep", "gettimeofday", "nanosleep",
	"timer_create", "timer_delete", "timer_getoverrun", "timer_gettime", "timer_settime",
	/* sockets that exist */
	"accept", "accept4", "bind", "connect", "getpeername", "getsockname", "getsockopt",
	"listen", "recvfrom", "recvmmsg", "recvmsg", "sendmmsg", "sendmsg", "sendto",
	"shutdown",
	/* System V and POSIX queues, of the run's own namespace */
	"mq_getsetattr", "mq_notify", "mq_open", "mq_timedreceive", "mq_timedsend", "mq_unlink",
	"msgctl", "msgget", "msgrcv", "msgsnd", "semctl", "semget", "semop", "semtimedop", "shmat",
	"shmctl", "shmdt", "shmget",
	"getrandom",
};

const char *const seccomp_refused[] = {
	/* mounts and roots */
	"chroot", "fsconfig", "fsmount", "fsopen", "fspick", "mount", "mount_setattr", "move_mount",
	"open_tree", "pivot_root", "umount", "umount2", "listmount", "statmount",
	/* ways around the names of files */
	"fanotify_init", "fanotify_mark", "lookup_dcookie", "name_to_handle_at", "open_by_handle_at",
	/* other processes */
	"kcmp", "pidfd_getfd", "process_madvise", "process_vm_readv", "process_vm_writev", "setns",
	/* keys: the caller's are not those of a run */
	"add_key", "keyctl", "request_key",
	/* parts of the kernel that had more holes than uses here */
	"bpf", "perf_event_open", "userfaultfd", "vmsplice", "remap_file_pages",
	/* memory of other nodes */
	"mbind", "migrate_pages", "move_pages", "set_mempolicy", "set_mempolicy_home_node",
	/* the machine */
	"_sysctl", "acct", "adjtimex", "clock_adjtime", "clock_settime", "create_module",
	"delete_module", "finit_module", "get_kernel_syms", "init_module", "ioperm", "iopl",
	"kexec_file_load", "kexec_load", "modify_ldt", "nfsservctl", "query_module", "quotactl",
	"quotactl_fd", "reboot", "setdomainname", "sethostname", "settimeofday", "stime", "swapoff",
	"swapon", "sysfs", "syslog", "uselib", "vhangup", "vserver",
};
/* clang-format on */

#define ALL_BITS 0xffffffffu

#define NEW_NAMESPACES                                                                 \
	(CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | \
	 CLONE_NEWPID | CLONE_NEWNET)

/*
 * Numbers of <linux/ptrace.h>, <linux/personality.h>, <asm-generic/ioctls.h>, <linux/sockios.h>,
 * <linux/tcp.h>, <linux/prctl.h> and <linux/fcntl.h>.
 */
#define TRACE_ATTACH    16
#define TRACE_SEIZE     0x4206
#define NO_RANDOMIZE    0x0040000
#define ASK_PERSONALITY 0xffffffffu
#define PUSH_INPUT      0x5412 /* TIOCSTI */
#define CONSOLE_TRICKS  0x541c /* TIOCLINUX */
#define LINE_DISCIPLINE 0x5423 /* TIOCSETD */
#define OLD_BRIDGES     0x8940 /* SIOCGIFBR and, with the lowest bit, SIOCSIFBR */
#define VLANS           0x8980 /* SIOCADDDLCI and SIOCDELDLCI, SIOCGIFVLAN and SIOCSIFVLAN */
#define BRIDGES         0x89a0 /* SIOCBRADDBR, SIOCBRDELBR */
#define LOWEST_BIT      1u
#define LOWEST_TWO      3u
#define UPPER_LAYER     31   /* TCP_ULP */
#define ADD_AO_KEY      38   /* TCP_AO_ADD_KEY */
#define SHARE_CORE      62   /* PR_SCHED_CORE */
#define TAKE_LEASE      1024 /* F_SETLEASE */
#define TAKE_DELEGATION 1040 /* F_SETDELEG: the same for a directory */

/* Of a socket: SOCK_STREAM, SOCK_DGRAM and SOCK_RAW are 1 to 3, of the four bits that are the type. */
#define UNUSUAL_TYPES 0xcu
#define INET_OR_INET6 ((unsigned int)(AF_INET ^ AF_INET6)) /* one bit */
#define MULTIPATH_TCP 262                                  /* IPPROTO_MPTCP */

#define SETID      06000     /* S_ISUID | S_ISGID */
#define MAKES_FILE 020000100 /* O_CREAT, and what O_TMPFILE has beside O_DIRECTORY */

/* Its argument `at` is the mode. */
#define NO_SETID(name, at)                                                       \
	{                                                                        \
		.call = name, .n_cases = 1,                                      \
		.cases = { { at, SETID, 0, true, .then = SECCOMP_SAYS_EPERM } }, \
		.otherwise = SECCOMP_SAYS_ALLOW,                                 \
	}

/* The same; the argument before it says whether a file is made, else nobody reads the mode. */
#define NO_SETID_FILE(name, at)                                                   \
	{                                                                         \
		.call = name, .n_cases = 2,                                       \
		.cases = { { (at)-1, MAKES_FILE, 0, .then = SECCOMP_SAYS_ALLOW }, \
			   { at, SETID, 0, true, .then = SECCOMP_SAYS_EPERM } },  \
		.otherwise = SECCOMP_SAYS_ALLOW,                                  \
	}

/*
 * A run by root with a folder of the host to write to would leave a program there that makes
 * anybody root.  mkdir is listed though today's kernels drop the bits there.
 *
 * A core that is piped goes to a program of the host, with the host's rights (core_pattern).  Only a
 * limit of 1 byte prevents that, so it stays; programs that switch cores off must not fail.
 */
const struct seccomp_judged seccomp_kept[] = {
	NO_SETID("chmod", 1),
	NO_SETID("fchmod", 1),
	NO_SETID("fchmodat", 2),
	NO_SETID("fchmodat2", 2),
	NO_SETID("mkdir", 1),
	NO_SETID("mkdirat", 2),
	NO_SETID("mknod", 1),
	NO_SETID("mknodat", 2),
	NO_SETID("creat", 1),
	NO_SETID_FILE("open", 2),
	NO_SETID_FILE("openat", 3),
	{
	    /* Its mode lies in memory, where a filter cannot look; programs then take openat. */
	    .call = "openat2",
	    .otherwise = SECCOMP_SAYS_ENOSYS,
	},
	/* A ring opens files past every filter. */
	{ .call = "io_uring_setup", .otherwise = SECCOMP_SAYS_EPERM },
	{ .call = "io_uring_enter", .otherwise = SECCOMP_SAYS_EPERM },
	{ .call = "io_uring_register", .otherwise = SECCOMP_SAYS_EPERM },
	{
	    .call = "setrlimit",
	    .n_cases = 1,
	    .cases = { { 0, ALL_BITS, RLIMIT_CORE, .then = SECCOMP_SAYS_DONE } },
	    .otherwise = SECCOMP_SAYS_ALLOW,
	},
	{
	    /*
	     * Its third argument points at the new limit, the fourth at room for the old one, if they
	     * are there.  Nobody could fill that room, so a call that has both fails.
	     */
	    .call = "prlimit64",
	    .n_cases = 5,
	    .cases = { { 1, ALL_BITS, RLIMIT_CORE, true, SECCOMP_SAYS_ALLOW },
		       { 2, ALL_BITS, 0, .unless = true, .with_next = true },
		       { 3, ALL_BITS, 0, true, SECCOMP_SAYS_EPERM },
		       { 2, ALL_BITS, 0, true, SECCOMP_SAYS_DONE },
		       { 2, ALL_BITS, 0, true, SECCOMP_SAYS_DONE, .high = true } },
	    .otherwise = SECCOMP_SAYS_ALLOW,
	},
};

const struct seccomp_judged seccomp_judged[] = {
	{
	    .call = "clone", /* its first argument on both architectures is the flags */
	    .n_cases = 1,
	    .cases = { { 0, NEW_NAMESPACES, 0, .then = SECCOMP_SAYS_ALLOW } },
	    .otherwise = SECCOMP_SAYS_EPERM,
	},
	{
	    /* Its flags lie in memory, where a filter cannot look; libc then takes clone. */
	    .call = "clone3",
	    .otherwise = SECCOMP_SAYS_ENOSYS,
	},
	{
	    .call = "unshare",
	    .n_cases = 1,
	    .cases = { { 0, NEW_NAMESPACES | CLONE_NEWTIME, 0, .then = SECCOMP_SAYS_ALLOW } },
	    .otherwise = SECCOMP_SAYS_EPERM,
	},
	{
	    /* Line disciplines, bridges and VLANs load modules of the kernel for any caller. */
	    .call = "ioctl",
	    .n_cases = 7,
	    .cases = { { 1, ALL_BITS, PUSH_INPUT, .then = SECCOMP_SAYS_EPERM },
		       { 1, ALL_BITS, CONSOLE_TRICKS, .then = SECCOMP_SAYS_EPERM },
		       { 1, ALL_BITS, LINE_DISCIPLINE, .then = SECCOMP_SAYS_EPERM },
		       { 1, ~LOWEST_BIT, OLD_BRIDGES, .then = SECCOMP_SAYS_EPERM },
		       { 1, ~LOWEST_TWO, VLANS, .then = SECCOMP_SAYS_EPERM },
		       { 1, ~LOWEST_BIT, BRIDGES, .then = SECCOMP_SAYS_EPERM },
		       { 1, ALL_BITS, SANDBOX_ASK_SNAPSHOT, .then = SECCOMP_SAYS_EPERM } },
	    .otherwise = SECCOMP_SAYS_ALLOW,
	},
	{
	    /* A program that opens a leased file waits 45 s, outside too, and asks for no lock. */
	    .call = "fcntl",
	    .n_cases = 2,
	    .cases = { { 1, ALL_BITS, TAKE_LEASE, .then = SECCOMP_SAYS_EPERM },
		       { 1, ALL_BITS, TAKE_DELEGATION, .then = SECCOMP_SAYS_EPERM } },
	    .otherwise = SECCOMP_SAYS_ALLOW,
	},
	{
	    /* A debugger may start its program, and trace what asked to be. */
	    .call = "ptrace",
	    .n_cases = 2,
	    .cases = { { 0, ALL_BITS, TRACE_ATTACH, .then = SECCOMP_SAYS_EPERM },
		       { 0, ALL_BITS, TRACE_SEIZE, .then = SECCOMP_SAYS_EPERM } },
	    .otherwise = SECCOMP_SAYS_ALLOW,
	},
	{
	    .call = "personality",
	    .n_cases = 3,
	    .cases = { { 0, ALL_BITS, 0, .then = SECCOMP_SAYS_ALLOW },
		       { 0, ALL_BITS, NO_RANDOMIZE, .then = SECCOMP_SAYS_ALLOW },
		       { 0, ALL_BITS, ASK_PERSONALITY, .then = SECCOMP_SAYS_ALLOW } },
	    .otherwise = SECCOMP_SAYS_EPERM,
	},
	{
	    /* TLS and others in the kernel's TCP; and keys for it, which name a hash that is loaded. */
	    .call = "setsockopt",
	    .n_cases = 4,
	    .cases = { { 1, ALL_BITS, IPPROTO_TCP, .with_next = true },
		       { 2, ALL_BITS, UPPER_LAYER, .then = SECCOMP_SAYS_EPERM },
		       { 1, ALL_BITS, IPPROTO_TCP, .with_next = true },
		       { 2, ALL_BITS, ADD_AO_KEY, .then = SECCOMP_SAYS_EPERM } },
	    .otherwise = SECCOMP_SAYS_ALLOW,
	},
	{
	    /* With a core of its own, a run keeps the core's other half from everybody. */
	    .call = "prctl",
	    .n_cases = 1,
	    .cases = { { 0, ALL_BITS, SHARE_CORE, .then = SECCOMP_SAYS_EPERM } },
	    .otherwise = SECCOMP_SAYS_ALLOW,
	},
	{
	    /*
	     * Of the internet's families, streams and datagrams of the usual protocols.  Any other
	     * (SCTP, DCCP, L2TP, SMC, AF_PACKET by its old name SOCK_PACKET) loads a module whoever
	     * asks.
	     */
	    .call = "socket",
	    .n_cases = 11,
	    .cases = { { 0, ALL_BITS, AF_UNIX, .then = SECCOMP_SAYS_ALLOW },
		       { 1, UNUSUAL_TYPES, 0, true, SECCOMP_SAYS_EAFNOSUPPORT },
		       { 0, ALL_BITS, AF_NETLINK, .with_next = true },
		       { 2, ALL_BITS, 0 /* NETLINK_ROUTE */, .then = SECCOMP_SAYS_ALLOW },
		       { 0, ~INET_OR_INET6, AF_INET, true, SECCOMP_SAYS_EAFNOSUPPORT },
		       { 2, ALL_BITS, IPPROTO_IP, .then = SECCOMP_SAYS_ALLOW },
		       { 2, ALL_BITS, IPPROTO_TCP, .then = SECCOMP_SAYS_ALLOW },
		       { 2, ALL_BITS, IPPROTO_UDP, .then = SECCOMP_SAYS_ALLOW },
		       { 2, ALL_BITS, IPPROTO_ICMP, .then = SECCOMP_SAYS_ALLOW },
		       { 2, ALL_BITS, IPPROTO_ICMPV6, .then = SECCOMP_SAYS_ALLOW },
		       { 2, ALL_BITS, MULTIPATH_TCP, .then = SECCOMP_SAYS_ALLOW } },
	    .otherwise = SECCOMP_SAYS_EAFNOSUPPORT,
	},
	{
	    .call = "socketpair",
	    .n_cases = 1,
	    .cases = { { 0, ALL_BITS, AF_UNIX, .then = SECCOMP_SAYS_ALLOW } },
	    .otherwise = SECCOMP_SAYS_EAFNOSUPPORT,
	},
};

/*
 * Harmless as far as we know, but useful for attacking the kernel or hiding a program: for runs that
 * are no debuggers and that nobody trusts.
 */
const struct seccomp_judged seccomp_strict[] = {
	{ .call = "ptrace", .otherwise = SECCOMP_SAYS_EPERM },
	{ .call = "memfd_create", .otherwise = SECCOMP_SAYS_EPERM }, /* programs without a file */
	{ .call = "memfd_secret", .otherwise = SECCOMP_SAYS_EPERM },
	{
	    .call = "personality", /* addresses stay random */
	    .n_cases = 2,
	    .cases = { { 0, ALL_BITS, 0, .then = SECCOMP_SAYS_ALLOW },
		       { 0, ALL_BITS, ASK_PERSONALITY, .then = SECCOMP_SAYS_ALLOW } },
	    .otherwise = SECCOMP_SAYS_EPERM,
	},
};

/*
 * Of a root file system of its own, all files are the run's: set-id bits there give no more than its own
 * ids, no other folder of the host is writable for it, and what it changes its root to is in that.
 */
/* clang-format off */
const char *const seccomp_root[] = {
	"chmod", "fchmod", "fchmodat", "fchmodat2", "mkdir", "mkdirat", "creat", "open",
	"openat", "openat2", "chroot",
};
/* clang-format on */

/*
 * FIFOs, sockets and whiteouts are made, devices are not: the caller may have one shown that cannot be
 * opened (device-linux.c).  Those with number 0 need no case: the kernel refuses what is no whiteout.
 */
#define NO_DEVICE(name, at)                                                       \
	{                                                                         \
		.call = name, .n_cases = 3,                                       \
		.cases = { { (at) + 1, ALL_BITS, 0, .then = SECCOMP_SAYS_ALLOW }, \
			   { at, S_IFMT, S_IFCHR, .then = SECCOMP_SAYS_EPERM },   \
			   { at, S_IFMT, S_IFBLK, .then = SECCOMP_SAYS_EPERM } }, \
		.otherwise = SECCOMP_SAYS_ALLOW,                                  \
	}

const struct seccomp_judged seccomp_root_judged[] = {
	NO_DEVICE("mknod", 1),
	NO_DEVICE("mknodat", 2),
};
/* clang-format off */

/*
 * What the kernel would refuse, since there is no id to give a file to, to become, or groups to take.  A
 * change of owner is recorded (owner-linux.c); the others are answered as if they had worked.  A program that
 * "dropped" to another user so is still root, in a run where there is nobody else.
 */
const char *const seccomp_one_id[] = {
	"chown", "fchown", "fchownat", "lchown", "setgroups", "setgid", "setregid", "setresgid",
	"setresuid", "setreuid", "setuid",
};
/* clang-format on */

/*
 * A call that is let through is executed as it stands, so nothing that matters may lie in memory,
 * where another thread could change it after the decision.  Here it is the number of the call, and
 * numbers in registers: a process of the run, a flag, a range of its own memory.  What memory holds
 * (the name of a memfd, where to copy to, a set of nodes) makes no difference to the decision.  The
 * kernel checks as always, so none of these reaches a process outside or gains a privilege.
 *
 * Everything else that is refused leads to namespaces, mounts, keys, devices, other families of
 * sockets or parts of the kernel with many holes, or goes around the list itself (io_uring).
 */
/* clang-format off */
const char *const seccomp_askable[] = {
	"kcmp", "mbind", "memfd_create", "personality", "process_vm_readv", "process_vm_writev",
	"ptrace", "set_mempolicy",
};
/* clang-format on */

const size_t seccomp_n_root = ARRAY_LEN(seccomp_root);
const size_t seccomp_n_root_judged = ARRAY_LEN(seccomp_root_judged);
const size_t seccomp_n_one_id = ARRAY_LEN(seccomp_one_id);
const size_t seccomp_n_askable = ARRAY_LEN(seccomp_askable);
const size_t seccomp_n_allowed = ARRAY_LEN(seccomp_allowed);
const size_t seccomp_n_refused = ARRAY_LEN(seccomp_refused);
const size_t seccomp_n_kept = ARRAY_LEN(seccomp_kept);
const size_t seccomp_n_judged = ARRAY_LEN(seccomp_judged);
const size_t seccomp_n_strict = ARRAY_LEN(seccomp_strict);
