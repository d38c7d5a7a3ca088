/*
 * run.h - commands in a sandbox on a clone: running one, and the records of those that ran.
 *
 * The command sees the clone at the project's own path and nothing else that it could change
 * (docs/design/run.md). The calling process runs it, and must have one thread; or a process that
 * engine_run_start() makes. cowfsd only prepares the clone and reports afterwards what changed.
 * Every run leaves a record and its output in the store's directory, until engine_runs_prune()
 * finds it too old. With these, any process of the same user can wait for the run, follow its
 * output and cancel it.
 */
#pragma once

#include <stddef.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/strlist.h"
#include "base/traceparent.h"
#include "engine/api/clone.h"
#include "engine/api/engine.h"
#include "engine/api/question.h"

#define ENGINE_RUN_ID_SIZE 13 /* 12 hex digits and a NUL */
#define ENGINE_WALLS_MAX   32
#define ENGINE_AS_SIZE     16 /* "65535:65535" and a NUL */

#define ENGINE_UNSAID     UINT64_MAX          /* of a limit: what the profile has */
#define ENGINE_RUN_OUTPUT ((uint64_t)1 << 30) /* the limit of output, which no profile has */

/* Of numbers 0 is no limit. */
struct engine_run_limits {
	uint64_t mem, cpus_milli, pids, time_ms;
	uint64_t disk;   /* bytes that the clone may grow by */
	uint64_t inodes; /* files, directories and all else that may be made in it */
	uint64_t fsize, nofile;
	uint64_t output;  /* bytes of both streams that are passed on */
	uint64_t net_out; /* bytes that may be sent to the hosts of a list */
};

/* Nothing is said. */
void engine_run_limits_init(struct engine_run_limits *l);

struct engine_run;

struct engine_performing;

struct engine_run_options {
	const char *id;    /* that the run gets, noted before it begins; NULL: any new one */
	const char *clone; /* NULL: one that is made for it, and removed after it, */
	const char *from;  /* of this snapshot; NULL: of the project now */
	const char *like;  /* files that are hidden in this clone are hidden, too; NULL: none */
	/*
	 * The clone is a whole root file system: it is the run's `/`, in which the command is root.
	 * `root_dir`: of that directory, captured now, instead of `from`; NULL: none.
	 */
	bool root;
	const char *root_dir;
	const char *as;          /* "UID:GID" that the command has there; NULL: 0:0, root's */
	const char *const *argv; /* NULL at the end */
	const char *profile;     /* NULL: what a run gets without one (profile.h) */
	struct engine_run_limits limits;
	const char *net; /* "none", "loopback", "host" or HOST:PORT,...; NULL: the profile's */
	/*
	 * How long what is refused waits for an answer (question.h); 0: it does not; ENGINE_UNSAID: as the
	 * profile says.  `asks` hears of each question, and of its answer, which is NULL at first.
	 */
	uint64_t ask_ms;
	void (*asks)(const struct engine_question *q, const struct engine_answered *a, void *ctx);
	void *asks_ctx;
	bool prompts;  /* answers come from the terminal `answer_fd`, too, a line each: */
	int answer_fd; /* "allow CODE", "allow run CODE", "deny", "deny run"; it never blocks */
	const char *workdir;              /* from the engine's directory; NULL: that directory */
	struct engine_list ro, rw, hide;  /* paths */
	struct engine_list env;           /* NAME=VALUE */
	struct engine_list pass_env;      /* names; one that is not set is passed over */
	struct engine_list secrets;       /* NAME, of the environment, or NAME=FILE */
	struct engine_list secret_for;    /* URL=NAME: what the run uses and never sees */
	struct engine_list tls_inspect;   /* HOST[:PORT],... whose TLS the proxy ends */
	struct engine_list allow_missing; /* walls */
	struct engine_list publish;       /* PORT[:HOSTPORT],... */
	struct engine_list artifacts;     /* paths from the top of the project, saved after it */
	bool no_snapshot;                 /* of a named clone */
	bool lazy;                        /* the clone that is made: files may be read later */
	bool eager;                       /* the same: they may not, however many there are */
	bool skip_unreadable;             /* the same: without what cannot be read */
	const char *part;                 /* the same: of this directory alone; NULL: of all */
	bool keep;                        /* the clone that is made */
	bool strict;                      /* fsync in the clone that is made waits for the disk */
	bool remove;                      /* the clone that is named */
	uint64_t ttl_ms; /* of a clone that is kept; 0: for ever; ENGINE_UNSAID: the profile's */
	struct engine_waiting **waits; /* the clone that is made waits there; NULL: it does not */
	bool tty;                      /* a terminal of its own */
	int in_fd;                     /* -1: nothing to read */
	int out_fd, err_fd;            /* -1: into the result, as far as it goes */
	bool out_is_data;              /* for a program of ours: no log of the run has it */
	bool show_out, show_err;       /* to a person: as base/visible.h has it */
	struct engine_watch watch;     /* while the clone is made ready */
	void (*begins)(void *ctx);     /* the command is next; may be NULL */
	void *begins_ctx;
	/* All walls stand, its time begins, and the record is there; NULL: who cares. */
	void (*began)(const struct engine_run *run, void *ctx);
	void *began_ctx;
	bool
	    detached; /* nobody takes the output: it goes to the log alone.  Of engine_run_start() */
	/*
	 * Does it instead of the sandbox, of engine_run_start() on a named clone: run->exit_code and all
	 * else that came of it is then set.  -EINTR: it was asked to end.  Any other failure says that
	 * nothing ran.  NULL: the sandbox does it.
	 */
	int (*perform)(struct engine_performing *p, void *ctx, struct err *err);
	void *perform_ctx;
};

enum engine_run_state {
	ENGINE_RUN_RUNNING,
	ENGINE_RUN_ENDED,
	ENGINE_RUN_REFUSED,   /* the sandbox could not be set up, and nothing ran */
	ENGINE_RUN_LOST,      /* the process that ran it was killed, and so was the run */
	ENGINE_RUN_CANCELLED, /* by engine_run_cancel() */
};

/* Something that the run wanted and did not get; all strings are owned. */
struct engine_refusal {
	char *kind; /* "connection", or "call" of the system */
	char *what; /* "evil.org:443"; "mount" */
	char *rule; /* by which it was refused, in a word of docs/design/network.md; or "filter" */
	char *flag; /* what would allow it; "" if nothing would */
	char *message; /* a sentence */
	uint64_t count;
};

struct engine_refusals {
	struct engine_refusal *list; /* owned; in the order in which they came up */
	size_t n;
	uint64_t more; /* that have no place in the list */
};

/* Walls that a run may do without, and did. */
struct engine_missing {
	struct {
		const char *wall;
		char reason[252];
	} list[4];
	size_t n;
};

/* A port of the run that can be reached on the loopback of this machine while it runs. */
struct engine_published {
	uint16_t port, host_port;
};

#define ENGINE_PUBLISHED_MAX 16

/* What its options asked for, beside what `struct engine_run` has. */
struct engine_asked {
	bool known;             /* else an older version wrote the record, and all else is empty */
	bool scrubbed;          /* some word of the command had a secret in it, which is not kept */
	struct strlist passed;  /* names of variables from the caller's environment */
	struct strlist secrets; /* the same, whose values nobody may see */
	struct strlist set;     /* names whose values came from elsewhere and are not kept */
	struct strlist hide, ro, rw; /* absolute paths */
};

/* A path that was to be saved after the run (artifact.h). */
struct engine_run_artifact {
	char *path; /* owned */
	char id[ENGINE_ID_SIZE];
	char *problem; /* owned; why there is none, or NULL */
};

#define ENGINE_TICKET_SIZE 65 /* 64 hex digits and a NUL */

/* The machine that did it, if it was not this one. */
struct engine_machine {
	char ticket[ENGINE_TICKET_SIZE]; /* "": it was this one */
	char *worker, *host;             /* owned; NULL: nobody has it yet */
	uint64_t attempt;                /* 1: no other worker died over it */
	bool lost;                       /* all that took it died */
	bool distrusted;                 /* no allowed signer signed its result */
	uint64_t received;               /* packed bytes that came here */
	uint64_t worker_received, worker_sent;
};

struct engine_run {
	char id[ENGINE_RUN_ID_SIZE];
	enum engine_run_state state;
	char *clone, *project, *cwd;     /* owned */
	char project_id[ENGINE_ID_SIZE]; /* "": a record of an earlier version */
	bool made;                       /* the clone, for this run */
	bool removed;                    /* the clone, by the end of it */
	uint64_t unread; /* bytes of it that were still to be read at the start; of no record */
	char before[ENGINE_ID_SIZE];
	struct strlist argv;
	struct strlist env; /* names */
	struct engine_asked asked;
	char *profile, *net;        /* owned */
	struct strlist secret_for;  /* the URLs */
	struct strlist tls_inspect; /* HOST:PORT, each */
	struct engine_published published[ENGINE_PUBLISHED_MAX];
	size_t n_published;
	struct engine_run_limits limits;
	pid_t pid;     /* of the process that runs it */
	bool detached; /* and that is a process of its own */
	int64_t started, ended;
	char trace[TRACEPARENT_SIZE]; /* of the caller; "": none */

	int exit_code; /* as `snap run` has it: 124 for time, 126 and 127 if it could not be executed */
	int signal;      /* 0: none ended it */
	int interrupted; /* the first signal that ends its caller and came; not in its record */
	bool timed_out, oom_killed;
	char limit[16]; /* that ended or cut it; "": none */
	bool root;      /* the clone was its `/` */
	char ids[8]; /* that it had there: "one", "range" of the user's, "all"; "": no such run */
	char as[ENGINE_AS_SIZE];             /* "UID:GID" that it was there; "": root */
	const char *walls[ENGINE_WALLS_MAX]; /* that stood */
	size_t n_walls;
	int landlock; /* level of its interface that was in force; 0: none */
	char cgroup
	    [8]; /* what held the limits: "v1", "v2", "scope" of systemd, "none"; "": unknown */
	bool owners_lost;              /* with one id: not all that chown(2) set is recorded */
	struct engine_missing missing; /* walls that stood not, though they were asked for */
	uint64_t duration_ms, cpu_ms, max_rss, max_mem;
	char *curve;   /* owned; for engine_run_curve(); NULL: it was short, or has not ended */
	char *problem; /* owned; why it could not be started, or NULL */
	struct engine_refusals refusals;
	struct engine_answers answers;         /* to what it was asked about */
	uint64_t net_sent;                     /* bytes, to the hosts of a list */
	struct engine_run_artifact *artifacts; /* owned */
	size_t n_artifacts;

	struct engine_machine machine;

	bool compared; /* what follows is known */
	uint64_t added, modified, deleted;
	struct engine_paths changed; /* not of a record */

	struct buf out, err; /* not of a record */
	bool truncated;      /* some of it is missing there, or was not passed on */
	uint64_t logged[2];  /* bytes of stdout and stderr that are kept */
	bool log_truncated;  /* there was more */
};

void engine_refusal_done(struct engine_refusal *r);
void engine_run_done(struct engine_run *r);

/*
 * 0 when the command ran, however it ended, and also if it could not be executed (126, 127).  A
 * failure with ret->state ENGINE_RUN_REFUSED is one of the sandbox; with any other nothing was
 * begun, or who should get the output would not take it.
 */
/*
 * Of a command inside of a run: 1 and the id of a snapshot of the run's clone, 0 if this is no run.
 * -EPERM with a sentence if the run's profile does not allow it, -EDQUOT if it has taken all.
 */
#define ENGINE_RUN_SNAPSHOTS_MAX 100
bool engine_is_inside(void);
NODISCARD int engine_inside_snapshot(char id[static ENGINE_ID_SIZE], struct err *err);

NODISCARD int engine_run(struct engine *e, const struct engine_run_options *options,
			 struct engine_run *ret, struct err *err);

/*
 * The same by a process of its own session, which goes on when we have gone: it holds limits, time, log
 * and record, and kill -9 of it ends all of the run.  Returns when the walls stand, and *ret is what
 * the record says then.  Of the options, input and output count for nothing, and `tty` and `waits`
 * must not be set.  It fails as engine_run() does; if we are killed before it returns, nothing runs.
 */
NODISCARD int engine_run_start(struct engine *e, const struct engine_run_options *options,
			       struct engine_run *ret, struct err *err);

/* A run that another machine performs, for `perform`. */
struct engine_performing {
	struct engine *engine;
	const struct engine_run_options *options;
	struct engine_run *run;
	int stop_fd; /* can be read when it is to end */
	/* Output, into the log. */
	void (*output)(struct engine_performing *p, bool of_stderr, const void *data, size_t len);
	/* Others read in the record what `run` says so far. */
	void (*note)(struct engine_performing *p);
};

/* --- a clone that waits for a decision ----------------------------------------------------- */

/*
 * A clone that was made for a run and is there until somebody decides.  It hangs on a connection to
 * cowfsd: if that ends first, by kill -9 too, it is removed; and should cowfsd die, it has a day to live.
 */
struct engine_waiting;

/* It stays for good.  It need not be released then any less. */
NODISCARD int engine_waiting_keep(struct engine_waiting *w, struct err *err);

/* Remove it now. */
NODISCARD int engine_waiting_discard(struct engine_waiting *w, struct err *err);
void engine_waiting_free(
    struct engine_waiting *w); /* what was not decided is removed; NULL is fine */
DEFINE_CLEANUP(struct engine_waiting *, engine_waiting_free)

/* --- looking back ------------------------------------------------------------------------- */

struct engine_runs {
	struct engine_run *list; /* owned; newest first */
	size_t n;
};

void engine_runs_done(struct engine_runs *r);

struct engine_runs_options {
	const char *clone; /* NULL: all */
	bool all;          /* of every project, else of the one here */
	bool running;      /* those only */
};

NODISCARD int engine_runs(struct engine *e, const struct engine_runs_options *options,
			  struct engine_runs *ret, struct err *err);

/* Was another run of the store than that one without this wall?  Reads records until one says so. */
bool engine_runs_lacked(struct engine *e, const char *wall, const char *but);

/* One by its id or the beginning of it; NULL: the newest.  -ENOENT with a sentence if none is. */
NODISCARD int engine_run_find(struct engine *e, const char *id, struct engine_run *ret,
			      struct err *err);

/* 1 if the state that it began with is still kept, so that it can be run again; else 0. */
NODISCARD int engine_run_has_start(struct engine *e, const struct engine_run *run, struct err *err);

enum engine_log_streams { ENGINE_LOG_BOTH, ENGINE_LOG_OUT, ENGINE_LOG_ERR };

struct engine_log_options {
	enum engine_log_streams streams;
	uint64_t since; /* bytes of these that are passed over */
	uint64_t last;  /* no more than so many at the end of what there is; 0: all */
	bool follow;    /* and what comes, until the run has ended */
	int stop_fd;    /* when it can be read, following ends with -EINTR; -1: none */
};

/*
 * What is kept of its output, in the order in which it came, to `fn`, which ends it with a negative
 * answer; `of_stderr` says of which stream.  *ret_next (may be NULL) is what `since` would be to go on.
 */
typedef int (*engine_log_fn)(bool of_stderr, const void *data, size_t len, void *ctx,
			     struct err *err);
NODISCARD int engine_run_log(struct engine *e, const struct engine_run *run,
			     const struct engine_log_options *options, engine_log_fn fn, void *ctx,
			     uint64_t *ret_next, struct err *err);

/* --- runs of other processes too ------------------------------------------------------------------ */

struct engine_wait_options {
	const char *const *ids; /* as engine_run_find() takes them */
	size_t n;
	bool any;            /* the first that ends is enough */
	uint64_t timeout_ms; /* ENGINE_UNSAID: as long as it takes; 0: look only */
	int stop_fd;         /* when it can be read, waiting ends with -EINTR; -1: none */
};

/*
 * Wait until they have ended, however they do, also by kill -9 of the process that holds them.  *ret has what is known of
 * each, in the order of `ids`.  1 if time was up before.
 */
NODISCARD int engine_run_wait(struct engine *e, const struct engine_wait_options *options,
			      struct engine_runs *ret, struct err *err);

/*
 * End it, wherever it was started: SIGTERM to all of it, SIGKILL to what is left after two seconds.  It
 * has ended when this returns, and *ret is what the record says then: ENGINE_RUN_CANCELLED with the exit code
 * 143.  1 if it had ended before, and nothing was done.  -EACCES: it is another user's.
 */
NODISCARD int engine_run_cancel(struct engine *e, const char *id, struct engine_run *ret,
				struct err *err);

/*
 * Several at once: all are asked before any is waited for, so they share one deadline.  engine_run_cancel() tells
 * what came of each.
 */
void engine_run_cancel_all(struct engine *e, const char *const *ids, size_t n);

#define ENGINE_RUN_CANCELLED_CODE 143 /* 128 + SIGTERM */

/* What one that runs uses now. */
struct engine_run_use {
	bool known;
	uint64_t processes, memory, cpu_ms;
	uint64_t written; /* bytes given to file systems so far */
	uint64_t left_ms; /* 0: it has no limit of time */
};

void engine_run_look(const struct engine_run *run, struct engine_run_use *ret);

#define ENGINE_RUNS_KEPT    100
#define ENGINE_RUNS_DAYS    14
#define ENGINE_RUNS_LOG_MAX ((uint64_t)1 << 30) /* bytes of output, of all that are kept */

/*
 * Remove records and output of all but the last that are young enough, and whose output fits; the
 * number of those.  A run does so too, once there are twice as many, or when it said much itself:
 * nobody need ask for it, and no number of runs fills the disk with what they said.
 */
NODISCARD int engine_runs_prune(struct engine *e, bool dry_run, uint64_t *ret, struct err *err);
