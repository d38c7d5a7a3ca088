/*
 * worker.h - commands that run on other machines.
 *
 * The caller pushes a state to a remote and posts a ticket to a queue, a NATS server with
 * JetStream. A worker takes the ticket, fetches what its store lacks, runs the command in its own
 * sandbox, by its own profiles, pushes the resulting state and posts a result. A ticket has exactly
 * one result, however many workers died over it (docs/design/workers.md).
 */
#pragma once

#include "engine/api/remote.h"
#include "engine/api/run.h"

#define ENGINE_WORKER_JOBS  64
#define ENGINE_WORKER_LEASE UINT64_C(30000) /* ms */

/* --- a worker ----------------------------------------------------------------------------- */

/* Keys of the worker.  All zero: what config.yaml says of the remote, and nothing is signed. */
struct engine_worker_keys {
	const char *sign; /* signs results, and what they left; as of struct engine_push_options */
	const char *identity;          /* reads states that are encrypted */
	struct engine_list encrypt_to; /* may read what was made from them */
};

struct engine_worker_event {
	const char *what;   /* "ready", "taken", "done", "again", "draining", "lost", "back" */
	const char *ticket; /* NULL: of none */
	const char *text;   /* a sentence, or NULL */
	const char *outcome;
	uint64_t code, attempt;
};

struct engine_worker_options {
	const char *queue;  /* nats://HOST[:PORT][/NAME] */
	const char *creds;  /* NULL: none */
	bool insecure;      /* a server elsewhere may go without credentials */
	const char *remote; /* the one place that states come from and go to: a name or a url */
	const char *name;   /* NULL: HOST-PID */
	struct engine_list labels;
	struct engine_list
	    profiles; /* that tickets may name; the first is for those that name none */
	struct engine_list pass_env; /* variables of ours that tickets may ask for */
	struct engine_worker_keys keys;
	uint64_t jobs; /* at once; 0: 1 */
	/* All that tickets that say what they need have together; 0: what the machine has. */
	uint64_t mem, cpus_milli;
	uint64_t
	    lease_ms; /* after which a ticket goes elsewhere if its worker says nothing; 0: 30 s */
	uint64_t tickets; /* end after so many; 0: any number */
	bool once;        /* end when there is none to take */
	void (*tell)(const struct engine_worker_event *ev, void *ctx);
	void *ctx;
};

/*
 * Take tickets until SIGTERM or SIGINT, then finish what is under way; a second signal ends that, too, and
 * hands it back.  Call from a process with one thread.
 */
NODISCARD int engine_worker(struct engine *e, const struct engine_worker_options *options,
			    struct err *err);

/* --- a command on some worker ------------------------------------------------------------- */

struct engine_on_options {
	const char
	    *queue; /* nats://HOST[:PORT][/NAME], ssh:[USER@]HOST[:PORT] or slurm[:PARTITION] */
	const char *creds;
	bool insecure;
	const char *remote; /* NULL: the only one that there is */
	/* Who may sign results; `as` is not used.  -ECANCELED if none of them did. */
	struct engine_trust trust;
	const char *sign;  /* a key to sign the state with, for workers that ask for it; NULL */
	const char *state; /* as engine_push() has it */
	const char *const *argv;
	const char *profile; /* of the worker; NULL: its first */
	struct engine_run_limits limits;
	struct engine_list env, pass_env, labels;
	const char *workdir;  /* from the top of the project; NULL: there */
	uint64_t deadline_ms; /* that it may wait and run; 0: any time */
	const char *tag;      /* for the result; NULL: run/TICKET */
	const char
	    *ticket; /* one of the same command that was sent before, to be followed again; NULL */
	int out_fd, err_fd; /* -1: into the result */
	struct engine_watch watch;
};

struct engine_on {
	char ticket
	    [ENGINE_TICKET_SIZE]; /* also after a failure: once it was sent, it can be followed again */
	char *
	    outcome; /* owned; "exit", "time", "refused", "expired", "cancelled", "failed", "lost" */
	char *worker, *host, *problem, *limit; /* owned; may be NULL */
	char *signer; /* owned; the principal who signed the result; NULL: none was asked for */
	int code;     /* what `snap run` exits with */
	uint64_t attempt, duration_ms, cpu_ms, max_rss;
	uint64_t added, modified, deleted;
	char *pushed;                  /* owned; the snapshot here that was sent */
	char *tag;                     /* owned; of the result; NULL: nothing changed */
	char snapshot[ENGINE_ID_SIZE]; /* of the result; "": nothing changed */
	uint64_t sent, skipped;        /* packed bytes, from here */
	uint64_t received;             /* to here */
	uint64_t worker_received, worker_sent;
	uint64_t missing; /* bytes of output that did not arrive */
	bool cancelled;   /* after a failure: the ticket is, and cannot be followed again */
	struct buf out, err;
	uint64_t elapsed_ms;
};

void engine_on_done(struct engine_on *r);

/*
 * 0 however the command ended, also if it had ended before a signal came.  -EINTR: a signal came; with
 * `ret->cancelled` the ticket counts as cancelled everywhere, without it the command may still run.  Call from a
 * process with one thread.
 */
NODISCARD int engine_run_on(struct engine *e, const struct engine_on_options *options,
			    struct engine_on *ret, struct err *err);

/* --- the far end of ssh ------------------------------------------------------------------- */

struct engine_serve_ssh_options {
	const char *root;  /* all paths lie below that directory; NULL: anywhere */
	const char *store; /* as of struct engine_options */
	bool tickets;      /* run them, too */
	/* Limits for tickets.  With a root, or one of these, a ticket may use no more than they name. */
	struct engine_list profiles, pass_env;
	struct engine_worker_keys keys;
};

/*
 * Answer another machine on standard input and output until the input ends.  A ticket that was begun goes on then,
 * and has its result when the client comes back.  Call from a process with one thread.
 */
NODISCARD int engine_serve_ssh(const struct engine_serve_ssh_options *options, struct err *err);

/* The name of what it speaks then, with its version. */
const char *engine_serve_protocol(void);

/* --- a job of Slurm ----------------------------------------------------------------------- */

struct engine_worker_job_options {
	const char *file; /* DIR/ID.ticket, which `run --on slurm` has written */
	struct engine_list profiles, pass_env; /* as of struct engine_serve_ssh_options */
	struct engine_worker_keys keys;
};

/*
 * Do one ticket; what comes of it goes into files beside it.  0 also if it has a result, or if another process does
 * it.  Call from a process with one thread.
 */
NODISCARD int engine_worker_job(const struct engine_worker_job_options *options, struct err *err);

/* --- looking ------------------------------------------------------------------------------ */

struct engine_worker_job {
	char *ticket, *command, *experiment, *arm; /* owned; the last two may be NULL */
	uint64_t attempt, running_ms;
};

struct engine_worker_state {
	char *name, *host; /* owned */
	int64_t pid, started;
	uint64_t jobs, done, failed, refused; /* tickets, since it began */
	/* Since it began; busy: of all slots together.  0: an earlier version does not say. */
	uint64_t up_ms, busy_ms;
	uint64_t fetched, pushed; /* packed bytes, of tickets that are over */
	uint64_t mem, cpus_milli; /* the most that a ticket may ask for; 0: as above */
	bool draining;
	char **labels;
	size_t n_labels;
	struct engine_worker_job *running;
	size_t n_running;
};

/* A ticket that is over. */
struct engine_worker_done {
	char *ticket, *outcome, *worker, *host, *command, *experiment,
	    *arm; /* owned; may be NULL */
	uint64_t code, attempt, duration_ms, fetched, pushed;
	int64_t ended;
};

struct engine_worker_status {
	char *queue; /* owned; its name */
	uint64_t waiting, taken, redelivered, results;
	struct engine_worker_state *workers; /* owned; by name */
	size_t n_workers;
	struct engine_worker_done *done; /* owned; newest first */
	size_t n_done;
};

void engine_worker_status_done(struct engine_worker_status *s);

struct engine_worker_status_options {
	const char *queue, *creds;
	bool insecure;
	uint64_t wait_ms; /* for answers; 0: 500 */
	size_t max;       /* of tickets that are over */
};

NODISCARD int engine_worker_status(struct engine *e,
				   const struct engine_worker_status_options *options,
				   struct engine_worker_status *ret, struct err *err);
