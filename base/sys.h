/*
 * sys.h - every system call that differs between Linux and macOS, and nothing else.
 *
 * The only header with an #ifdef for the platform; sys-linux.c and sys-darwin.c
 * implement it.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>

#include "base/attr.h"

#ifdef __APPLE__
#define SYS_ST_ATIM(st) ((st)->st_atimespec)
#define SYS_ST_MTIM(st) ((st)->st_mtimespec)
#define SYS_ST_CTIM(st) ((st)->st_ctimespec)
#else
#define SYS_ST_ATIM(st) ((st)->st_atim)
#define SYS_ST_MTIM(st) ((st)->st_mtim)
#define SYS_ST_CTIM(st) ((st)->st_ctim)
#endif

/* Fill with bytes nobody can predict; 0 or a negative errno. */
NODISCARD int sys_random(void *data, size_t len);

/*
 * Memory for what no child and no core dump may have: a process that is forked finds nothing there.
 * NULL, with errno.  From then on the process makes no core file.  Giving it back wipes it first; NULL
 * is fine.
 */
void *sys_map_secret(size_t len);
void sys_unmap_secret(void *at, size_t len);

/* Wipe memory in a way that no compiler leaves out. */
void sys_wipe(void *at, size_t len);

/* Make a file's data durable, through the drive's own cache where the system can. */
NODISCARD int sys_sync_data(int fd);

/* What `errnum` means, written to `text` or constant; strerror() for any thread. */
const char *sys_errno_text(int errnum, char *text, size_t size);

/*
 * A descriptor for looking at what bears a name, of any type, without opening it: good
 * for fstat(2) and the functions below.  No symlink is followed.  A negative errno,
 * -ENOTSUP for a type that this system cannot hold so.
 */
NODISCARD int sys_open_node(int dirfd, const char *name);

/*
 * openat(2) of a name in a directory, which enters no mount, also none of the same file system:
 * -EXDEV where one is.  A system that cannot tell opens it.
 */
NODISCARD int sys_open_here(int dirfd, const char *name, int flags);

/*
 * The same for a path of any number of names.  Follows no symlink on the way and never leaves the
 * directory: -ELOOP, -EXDEV.  -ENOTSUP where no single call promises all that, or takes a path of that
 * length; the caller must then open name after name.
 */
NODISCARD int sys_open_below(int dirfd, const char *path, int flags);

/* A file or directory, as long as this machine runs and nobody removes it. */
struct sys_place {
	dev_t dev;
	ino_t ino;
};

/*
 * open(2) of a directory on the way to which is no symlink.  With a place (or NULL) it is that one:
 * -ESTALE if another stands at the path, -ELOOP if there is a symlink.
 */
NODISCARD int sys_open_place(const char *path, const struct sys_place *place);

/*
 * The names of a file's extended attributes, each with its NUL; a file system without
 * any has none.  Both answer with the length, and for size 0 with the length that is
 * needed; -ERANGE if `size` is too small, -ENODATA if there is no such attribute.
 */
NODISCARD ssize_t sys_list_xattrs(int fd, char *names, size_t size);
NODISCARD ssize_t sys_get_xattr(int fd, const char *name, void *value, size_t size);

/*
 * Each name in a directory that was opened just now, in no order, without "." and ".."; `type` is
 * a DT_ of <dirent.h>, and DT_UNKNOWN says nothing.  A non-zero answer of `fn` ends the walk and
 * is returned.
 */
typedef int (*sys_name_fn)(const char *name, unsigned char type, void *ctx);
NODISCARD int sys_each_name(int fd, sys_name_fn fn, void *ctx);

/*
 * Does the file system of `fd` give a directory a new ctime with every name that comes, goes or is
 * given to something else in it?  POSIX says so; false where that is not known to be kept.
 */
bool sys_dir_times_tell(int fd);

/* Both may change what such a descriptor stands for; 0 or a negative errno. */
NODISCARD int sys_set_xattr(int fd, const char *name, const void *value, size_t size);
NODISCARD int sys_remove_xattr(int fd, const char *name);

/*
 * rename(2) that replaces nothing (-EEXIST), and one by which two names change places.
 * -ENOTSUP if the file system cannot, with nothing changed.
 */
NODISCARD int sys_rename_new(int dirfd, const char *name, int new_dirfd, const char *new_name);
NODISCARD int sys_exchange(int dirfd, const char *name, int other_dirfd, const char *other_name);

/*
 * Copy bytes of a file to the same place in another without reading them, or by sharing what is stored;
 * fewer if the file ends.  -ENOTSUP if that cannot be done between these two, with some of it copied perhaps.
 */
NODISCARD int sys_copy_range(int from, int to, off_t off, off_t len);

/* Make all durable that was written to the file system of an open file. */
NODISCARD int sys_sync_all(int fd);

/* --- time ------------------------------------------------------------------------------- */

/* Milliseconds since the machine was booted, those that it slept included: a clock that nobody sets. */
uint64_t sys_boot_ms(void);

/* A name that this boot has and no other; "" if it cannot be told. */
void sys_boot_id(char *ret, size_t size);

/* --- processes and sockets -------------------------------------------------------------- */

/* pipe(2) and accept(2); all of them close on exec.  0 or a descriptor, or a negative errno. */
NODISCARD int sys_pipe(int fds[2]);
NODISCARD int sys_accept(int fd);

/*
 * A unix stream socket, bound or connected to a name in an open directory, however long
 * the path of that is.  The descriptor or a negative errno; a bound one has mode 0600.
 */
NODISCARD int sys_listen_at(int dirfd, const char *name, int backlog);
NODISCARD int sys_connect_at(int dirfd, const char *name);

/*
 * send(2) and recv(2) on a unix socket, with a descriptor beside the bytes: `give` is borrowed, and -1
 * for none; *ret_given is owned by the caller, and is left alone if none came.  Bytes or a negative errno.
 */
NODISCARD ssize_t sys_send_with(int fd, const void *data, size_t len, int flags, int give);
NODISCARD ssize_t sys_receive_with(int fd, void *to, size_t room, int *ret_given);

/* The user at the other end of a connected unix socket. */
NODISCARD int sys_peer_uid(int fd, uid_t *ret);

/* All groups of the peer, its own first: how many, at most `max`; -ERANGE if there are more. */
NODISCARD int sys_peer_groups(int fd, gid_t *ret, size_t max);

/*
 * 1 if a user's number means the same to the peer as to us: it is not in a user namespace that an
 * ordinary user can make.  0: it is, or it cannot be told.  Of another user's process the kernel shows
 * us less than sys_peer_place() needs.
 */
NODISCARD int sys_peer_shares_ids(int fd);

/*
 * Where the peer is, by its namespaces; -ESRCH if it is gone, or what else keeps us from telling.
 */
enum sys_peer_place {
	SYS_PEER_HERE,      /* our user and mount namespaces */
	SYS_PEER_BESIDE,    /* our user namespace and another mount namespace */
	SYS_PEER_ELSEWHERE, /* another user namespace: its ids mean something else */
};
NODISCARD int sys_peer_place(int fd);

/*
 * 1 if the peer sees at `path` the directory that we see there, below the same parents, and can
 * write there if we can; else 0.  The path is absolute and has no symlink in it.  What is mounted
 * there for the peer alone is never asked anything.
 */
NODISCARD int sys_peer_sees(int fd, const char *path);

/* A path by which the running program can be started again; NULL if there is none. */
const char *sys_self_path(char *path, size_t size);

void sys_close_from(int lowest); /* every descriptor from that one on */

/* Until a process that is no child of ours has let go of everything, but for `ms` at most. */
void sys_wait_process(pid_t pid, int ms);

/*
 * A signal to a process that has the file of `fd` open: a number that was written down may be
 * another's by now, or mean another one in other namespaces.  -ESRCH if it has not, or is gone.
 */
NODISCARD int sys_signal_holder(pid_t pid, int fd, int sig);

/* What any thread of the machine is doing; -ESRCH if there is none of that number. */
struct sys_task {
	bool asleep;     /* it waits for something other than a processor or a disk */
	uint64_t cpu_ms; /* that it has run, in whole clock ticks (10 ms) */
};
NODISCARD int sys_look_at_task(pid_t id, struct sys_task *ret);

/* What a directory keeps when it is renamed, and no other of its file system has. */
struct sys_identity {
	uint64_t ino;
	int64_t born; /* nanoseconds since 1970 */
	uint64_t fs;  /* the file system, of which a copy may have the other two; 0: not known */
};

/* -ENOTSUP where the file system does not say when it was made. */
NODISCARD int sys_identify(const char *dir, struct sys_identity *ret);

/* Is it on a file system that is gone for good once it is unmounted? */
bool sys_is_in_memory(const char *dir);

/* What a process and all that descend from it use; -ESRCH if it is gone, -ENOTSUP if nobody knows. */
struct sys_tree {
	uint64_t processes;
	uint64_t memory;  /* bytes that are resident, shared ones each time */
	uint64_t cpu_ms;  /* with that of children that have ended */
	uint64_t written; /* bytes given to file systems, the same; of processes that may be read */
};
NODISCARD int sys_look_at_tree(pid_t id, struct sys_tree *ret);

/* May it do with files what only root may? */
bool sys_task_is_root(pid_t id);

/* The calling process, which `parent` forked, ends when that does.  macOS has no way to say so. */
void sys_end_with(pid_t parent);

void sys_name_process(const char *name);

/*
 * Move the calling process, which has one thread, into a mount namespace without any mounts of others.  Its
 * descriptors stay good, paths do not.  `dir` is a directory to work in; nobody else sees it change.  A
 * negative errno if the system refuses; the process must end then.
 */
NODISCARD int sys_leave_mounts(const char *dir);

/* This thread's work can wait when others want the processor. */
void sys_lower_priority(void);

/*
 * Let this thread run soon after it is woken, for a short turn: for one that answers others and is
 * done at once.  It gets no more of the processors than before.
 */
void sys_take_short_turns(void);

/*
 * A condition whose timed waits use CLOCK_MONOTONIC, so that setting the clock does not prolong them.
 * A wait returns 0, or -ETIMEDOUT from `until` on, or when so many milliseconds have passed.
 */
void sys_cond_init(pthread_cond_t *cond);
int sys_cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *lock, const struct timespec *until);
int sys_cond_wait_ms(pthread_cond_t *cond, pthread_mutex_t *lock, uint64_t ms);

/* Have the first `len` bytes of a file read while we do something else, if the system likes. */
void sys_read_ahead(int fd, off_t len);

unsigned sys_processors(void); /* that this process may use; at least 1 */

/*
 * Threads of the machine that run or could, this one too; 0: nobody knows.  The descriptor is
 * for asking again and again; -1 is fine.
 */
int sys_load_open(void);
unsigned sys_runnable(int load_fd);

/* Few places to take memory from: what many threads give back is then found again by all. */
void sys_gather_memory(void);
void sys_return_memory(void); /* what is free goes back to the system */

uint64_t sys_memory(void); /* bytes that the machine has; 1 GiB if nobody knows */

/* Bytes that new things could use before others had to make room; UINT64_MAX: nobody knows. */
uint64_t sys_available_memory(void);

/*
 * Each mount that this process sees, in the order in which they were mounted; `path` is
 * borrowed.  A non-zero answer of `fn` ends the walk and is returned.
 */
typedef int (*sys_mount_fn)(const char *path, dev_t dev, void *ctx);
NODISCARD int sys_each_mount(sys_mount_fn fn, void *ctx);
