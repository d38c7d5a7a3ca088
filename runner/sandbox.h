/*
 * sandbox.h - run one command where it can do no harm.
 *
 * A struct sandbox_spec says what the command may see and use; sandbox_run() builds exactly that or
 * runs nothing. There is no best effort: a namespace, filter or limit that cannot be set up, or
 * that this build lacks, is an error, unless the spec itself names that wall as one that may be
 * missing.
 *
 * When sandbox_run() returns, every process of the run is gone, with its mounts and its cgroups. If
 * the caller is killed, they go within a moment.
 *
 * A failed step in the child comes back as a struct err through a close-on-exec socket. Call from a
 * process with one thread. docs/design/sandbox.md has the rules, and what is not promised.
 */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/attr.h"
#include "base/err.h"

/*
 * The signal by which somebody else ends a run: SIGTERM to all of it, and SIGKILL after the grace, as
 * when time is up.  Every other that the caller gets goes on to the command.
 */
#define SANDBOX_CANCEL SIGVTALRM

#define SANDBOX_MOUNTS_MAX 256
#define SANDBOX_WORDS_MAX  65536 /* of argv, and of the environment */

/* What stands between the command and the host; the result lists those in force. */
enum sandbox_wall {
	WALL_USER,     /* user namespace: no id of it is a privileged one outside */
	WALL_MOUNT,    /* mount namespace with a root of its own */
	WALL_PID,      /* pid namespace, so that nothing outlives the run */
	WALL_NET,      /* network namespace with nothing but loopback */
	WALL_IPC,      /* System V and POSIX queues of its own */
	WALL_UTS,      /* host name of its own */
	WALL_CGROUPNS, /* does not see where its cgroups lie */
	WALL_GROUPS,   /* no supplementary group; an ordinary user who has some cannot drop them */
	WALL_IDMAP,    /* files of root stay root's on disk, though the run is not root */
	WALL_CAPS,     /* no capability, now or ever again */
	WALL_SECCOMP,  /* list of allowed system calls */
	WALL_LANDLOCK, /* second list of files; no signal or abstract socket to the outside */
	WALL_RLIMITS,  /* limits of each process: files, file size, processor time, data */
	WALL_MEMORY,   /* memory of all of it together, by cgroup */
	WALL_PIDS,     /* number of processes, by cgroup or by the user namespace's own count */
	WALL_CPU,      /* share of the processors, by cgroup */
	SANDBOX_N_WALLS,
};

#define WALL_BIT(w) (1u << (w))

/* Those a spec may name as missing; without any of the others there is no sandbox. */
#define SANDBOX_MAY_MISS \
	(WALL_BIT(WALL_LANDLOCK) | WALL_BIT(WALL_MEMORY) | WALL_BIT(WALL_PIDS) | WALL_BIT(WALL_CPU))

const char *sandbox_wall_name(enum sandbox_wall w);
int sandbox_wall_find(const char *name); /* the wall, or -1 */

enum sandbox_mount_kind {
	SANDBOX_BIND,  /* `host` is seen at `guest`, with all that is mounted below it */
	SANDBOX_FRESH, /* an empty directory that ends with the run, writable by it */
	SANDBOX_HIDE,  /* `guest`, if it is there by then, is empty and closed */
	SANDBOX_LINK,  /* `guest` is a symlink that says `host` */
	SANDBOX_TEXT,  /* `guest` is a file in which `host` stands, read-only */
};

struct sandbox_mount {
	enum sandbox_mount_kind kind;
	const char *host; /* BIND: absolute, clean, without a symlink in it */
	int host_fd;      /* BIND: what `host` must still be, or -1 */
	const char
	    *guest; /* absolute and clean; what is missing of it is made, not through symlinks */
	bool only_over; /* TEXT: over a file that is there, through no symlink; else not at all */
	bool writable;  /* BIND: else read-only with all below */
	bool owned;     /* BIND: the ids on it mean inside what they mean on disk (WALL_IDMAP) */
	uint64_t ino;   /* HIDE: the number of what must be there; 0: whatever is, or nothing */
	bool
	    as_is; /* BIND, `owned`: by sandbox_ids_outside(), whoever serves it has seen to that */
};

/* 0 is no limit, everywhere. */
struct sandbox_limits {
	uint64_t mem;        /* bytes, of the whole run */
	uint64_t cpus_milli; /* thousandths of a processor */
	uint64_t pids;       /* processes and threads, the run's init among them */
	uint64_t wall_ms;    /* from the moment at which all walls stand */
	uint64_t grace_ms;   /* between SIGTERM and SIGKILL when time is up */
	uint64_t
	    cpu_ms; /* processor time, of the whole run where a cgroup counts it, else of each process */
	uint64_t fsize;  /* bytes in a file */
	uint64_t nofile; /* open files of a process */
	uint64_t output; /* bytes of stdout and stderr together; what comes after is dropped */
	uint64_t tmp;    /* bytes in all of SANDBOX_FRESH and /dev/shm together */

	/*
	 * Limits that nobody asked for by name: where no cgroup can be had, memory is then
	 * bounded by RLIMIT_DATA of each process and WALL_MEMORY is not in force.  Without
	 * this a limit that no cgroup holds is an error.
	 */
	bool mem_is_default;
};

enum sandbox_net {
	SANDBOX_NET_NONE,   /* nothing but its own loopback */
	SANDBOX_NET_HELPER, /* the same, on which every port may be listened on without privilege */
	SANDBOX_NET_HOST,
};
enum sandbox_stream { SANDBOX_OUT, SANDBOX_ERR };

/* What the run wrote, as it comes; with a terminal all of it is SANDBOX_OUT.  < 0 ends the run. */
typedef int (*sandbox_output_fn)(void *ctx, enum sandbox_stream stream, const void *data,
				 size_t len);

/*
 * Runs inside beside the command, behind the same walls but for exec: it has `fd` and
 * nothing else, blocks all signals, and ends with the run.  The command starts when it has
 * written a byte to `ready_fd`, and nothing starts if it ends before that: why is in `err`.
 */
typedef int (*sandbox_helper_fn)(void *ctx, int fd, int ready_fd, struct err *err);

struct sandbox_helper {
	sandbox_helper_fn main;
	void *ctx;
	int fd;
};

/*
 * Something of the caller's that goes on beside the run: called whenever its descriptor can be
 * read, and must not block.  1: that was all; < 0 ends the run.
 */
typedef int (*sandbox_beside_fn)(void *ctx, struct err *err);

struct sandbox_beside {
	sandbox_beside_fn step;
	void *ctx;
	int fd;
};

#define SANDBOX_HELPERS_MAX 2
#define SANDBOX_BESIDE_MAX  4

/*
 * The list of system calls has refused one; `args` are what it was called with.  After
 * SANDBOX_REFUSED_MAX of them the run waits a millisecond for each.
 */
typedef void (*sandbox_refused_fn)(void *ctx, const char *call, const uint64_t args[6]);

#define SANDBOX_REFUSED_MAX 1000

/*
 * Refused system calls that somebody may let through all the same: those of seccomp_askable[], whose
 * arguments decide nothing in memory that the run could change meanwhile.  Such a call waits in the
 * kernel, and with it its thread, until sandbox_calls_answer(); once the run is over, no call waits.
 */
enum sandbox_verdict { SANDBOX_CALL_NO, SANDBOX_CALL_YES, SANDBOX_CALL_WAITS };

struct sandbox_calls {
	enum sandbox_verdict (*ask)(void *ctx, const char *call, uint64_t id);
	void *ctx;
	int listener; /* of the run, which sets it; -1: nobody waits */
};

/* Also of a call whose process has gone meanwhile. */
void sandbox_calls_answer(const struct sandbox_calls *c, uint64_t id, bool allow);

/*
 * A run asks for a snapshot of what it works on by this ioctl, on any descriptor: the list of system
 * calls knows the number and lets nobody but the caller answer, so nothing but a register goes in or
 * out.  Without `snapshot` it is refused (EPERM).  With an argument that is not 0 it takes none and
 * says 0, for a program that wants to know where it is.
 */
#define SANDBOX_ASK_SNAPSHOT 0x534e4150u /* "SNAP" */

struct sandbox_snapshots {
	/* Must not wait.  0: sandbox_snapshots_answer() follows; or a negative errno for the run. */
	int (*ask)(void *ctx, uint64_t id);
	void *ctx;
	int listener; /* of the run, which sets it; -1: nobody waits */
};

/* A negative errno, or 0 and a number that is none of the last 4,095 (errors).  Also of one that is gone. */
void sandbox_snapshots_answer(const struct sandbox_snapshots *s, uint64_t id, int error,
			      uint64_t number);

/*
 * What a run uses, at moments while it lives.  The first is SANDBOX_SAMPLE_MS after its time began, so one
 * that ends sooner is not looked at; the answer is how many ms later the next one is.
 */
#define SANDBOX_SAMPLE_MS 250

struct sandbox_sample {
	uint64_t at_ms;   /* since its time began */
	uint64_t cpu_ms;  /* so far, as the next but one; neither ever falls */
	uint64_t mem;     /* bytes: of its cgroup, else what its processes have resident */
	uint64_t written; /* bytes given to file systems */
	uint64_t pids;    /* processes, without the run's init */
};

typedef uint64_t (*sandbox_sample_fn)(void *ctx, const struct sandbox_sample *sample);

/*
 * A whole root file system that the command sees as its `/`, in which it is root: with the
 * capabilities of caps-linux.c in its own namespaces, and none outside.  `serve` gets the kernel's end of a FUSE
 * mount that was made inside, borrowed, and must answer it before it returns; ids in its requests
 * are the run's.  With `one` the run has this user and group only: files must be shown as theirs, and
 * an owner comes as the attribute "security.snapcow.owner", "33:-1", in which -1 leaves it as it is.  A device
 * comes as the attribute "security.snapcow.node" of its directory, "259:null": the next whiteout of that name
 * there is to be shown as the character device of this number.
 */
typedef int (*sandbox_serve_fn)(void *ctx, int fd, const uint32_t *one, struct err *err);

struct sandbox_root {
	sandbox_serve_fn serve;
	const char *home; /* made, with mode 0700, if its top lacks it; NULL: none */
	void *ctx;
};

/* The ids that a run on a root of its own has. */
enum sandbox_ids {
	SANDBOX_IDS_ONE, /* 0: the caller; owners are recorded, and changes of ids answered only */
	SANDBOX_IDS_RANGE, /* the others are the caller's range in /etc/subuid and /etc/subgid */
	SANDBOX_IDS_ALL,   /* 65,536 that own nothing outside: the caller is root */
};

/* Those that this caller's would have; if it is one, why there are no more. */
enum sandbox_ids sandbox_root_ids(struct err *why);

/* What comes to be known of a spec only while the run begins. */
struct sandbox_view {
	const char *cwd;                    /* NULL: that of the spec */
	const struct sandbox_mount *mounts; /* after those of the spec */
	size_t n_mounts;
	uint64_t mounted_by_ms; /* monotonic: what is mounted later means that nothing runs; 0 */
};

/*
 * Asked for once, and all of it is copied.  For root the run's init is at work meanwhile on
 * what it needs in any case: a mount that the caller opens only here can be shown by root if it is
 * `owned`, and only such a one may have a `host_fd`.  < 0: nothing is run.
 */
typedef int (*sandbox_view_fn)(void *ctx, struct sandbox_view *ret, struct err *err);

struct sandbox_spec {
	const char *const *argv; /* NULL at the end; argv[0] is looked up in PATH of `env` */
	const char *const *env;  /* NULL at the end; exactly this */
	const char *cwd;         /* inside */
	const char *hostname;
	const struct sandbox_mount *mounts; /* in this order */
	size_t n_mounts;
	uint64_t mounted_by_ms; /* as in a view */
	sandbox_view_fn view;   /* NULL: that is all */
	void *view_ctx;

	const struct sandbox_root *root; /* NULL: one of the host's folders */

	/* Inside.  An ordinary user can be nobody else, but 0 with a `root`; root may be any below 65536. */
	uid_t uid;
	gid_t gid;

	enum sandbox_net net;
	struct sandbox_limits limits;
	uint32_t may_miss; /* bits of walls, of SANDBOX_MAY_MISS only */

	/*
	 * struct sock_filters in the place of our own list of system calls (oci.h makes them
	 * from a profile), or NULL.  What comes after it is prlimit64, sendmsg, close_range
	 * and execve: a filter without these runs nothing.
	 */
	const void *filter;
	size_t filter_len; /* bytes */
	bool
	    strict_calls; /* no tracing, no files without a name, addresses stay random; without `filter` */

	int in_fd; /* read by us and passed on; -1: nothing to read */
	sandbox_output_fn output;
	void *output_ctx;

	void (*began)(
	    void *ctx); /* all walls stand, and its time begins; NULL: nobody wants to know */
	void *began_ctx;

	sandbox_sample_fn sample; /* NULL: nobody wants to know */
	void *sample_ctx;

	bool tty; /* a terminal of its own; in_fd says how large, if it is one */

	struct sandbox_helper helpers[SANDBOX_HELPERS_MAX]; /* started in this order */
	size_t n_helpers;

	sandbox_refused_fn refused; /* NULL: nobody wants to know.  Not with a `filter` */
	void *refused_ctx;
	struct sandbox_calls *calls; /* NULL: what is refused stays refused.  Only with `refused` */

	struct sandbox_snapshots *snapshots; /* NULL: it takes none.  Only with `refused` */

	/*
	 * While it is true, the streams stand still: `in_fd` is not read, and what the run writes stays in
	 * its pipes, which are finite.  NULL: they never do.
	 */
	const bool *hold_streams;

	struct sandbox_beside beside[SANDBOX_BESIDE_MAX];
	size_t n_beside;
};

struct sandbox_result {
	bool exec_failed; /* everything stood but the program could not be started */
	int exit_code;    /* of the command, 128 + signal if one ended it */
	int signal;       /* 0 if it ended by itself */
	bool timed_out;
	bool cancelled;  /* by SANDBOX_CANCEL */
	int interrupted; /* the first signal that ends the caller, came to it and was passed on; 0 */
	bool oom_killed;
	bool truncated;
	const char *limit; /* the one that ended or cut it: "memory", "time", ...; NULL for none */
	uint32_t walls;    /* bits of those in force */
	enum sandbox_ids ids; /* with a `root` */
	bool owners_lost;     /* with one id: not all that chown(2) set is recorded */
	int landlock;         /* level of Landlock's interface that is in force; 0: none */
	const char *cgroup;   /* what holds the limits: "v1", "v2", "scope" of systemd, "none" */
	uint32_t
	    missing; /* bits of those that the spec asked for and let be missing, and that are */
	struct err unbounded; /* why no cgroup holds a limit, if one is among these */
	uint64_t duration_ms;
	uint64_t cpu_ms;
	uint64_t max_rss; /* bytes, of its largest process */
	uint64_t max_mem; /* bytes, of the whole run; 0 where nobody counts */
};

/*
 * What the first *ret_n ids of a run of this caller's are outside; 0 of them if it maps none but the
 * caller's own, to itself.  What shows a file under those ids has it `as_is`.
 */
uint32_t sandbox_ids_outside(uint32_t *ret_n);

/* A spec for the caller: its ids, no limits, nothing to see. */
void sandbox_spec_init(struct sandbox_spec *spec);

/* Whether it can mean anything: -EINVAL with a sentence if not.  Touches nothing. */
NODISCARD int sandbox_spec_check(const struct sandbox_spec *spec, struct err *err);

/*
 * 0 when the command ran, however it ended.  A negative errno when it did not:
 * nothing of it was started, unless the reason is that `output` or `beside` said so.  With
 * ret->exec_failed it is what exec failed with.
 */
NODISCARD int sandbox_run(const struct sandbox_spec *spec, struct sandbox_result *ret,
			  struct err *err);
