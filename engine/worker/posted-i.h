/*
 * posted-i.h - a ticket that was posted, until it has a result.
 *
 * The way there (a queue, Slurm, ssh) is open between posted_begin() and posted_end(), and libnats
 * has threads as long: the caller neither forks nor asks cowfsd anything in between.
 */
#pragma once

#include "engine/worker/ticket.h"
#include "engine/worker/tray.h"
#include "remote/ssh-line.h"

struct posted_options {
	const char *queue, *creds;
	bool insecure;
	const char *remote; /* url of the depot that the ticket names */
	const char *client; /* what the server calls us */
	int stop_fd;        /* when it can be read, the ticket is withdrawn */
	/* How long a server that cannot be reached is tried before it has the ticket; 0: a few times. */
	uint64_t patience_ms;
	/* Output as it comes.  A negative answer ends the following. */
	int (*output)(bool of_stderr, const void *data, size_t len, void *ctx, struct err *err);
	/* All that came so far counts no more: the command begins again. */
	void (*again)(uint64_t attempt, void *ctx);
	/* A worker has it; may be NULL. */
	void (*taken)(const char *worker, const char *host, uint64_t attempt, void *ctx);
	void *ctx;
};

struct posted;

/* A way to whoever runs tickets: each as the function of its name below. */
struct posted_kind {
	int (*begin)(struct posted *p, struct err *err);
	void (*end)(struct posted *p);
	int (*find)(struct posted *p, const char *id, const struct buf *text, struct err *err);
	int (*catch_up)(struct posted *p, const char *id, const struct buf *text, struct err *err);
	int (*follow)(struct posted *p, const char *id, const struct strlist *labels,
		      const struct buf *text, struct err *err);
};

extern const struct posted_kind posted_by_queue, posted_by_slurm, posted_by_ssh;

struct posted {
	const struct posted_options *options;
	const struct posted_kind *kind;
	struct queue *queue;    /* by queue */
	struct queue_need need; /* the same: of the ticket, as its deadline */
	int64_t deadline;
	uint64_t asked_ms;      /* when workers were asked what they offer; 0: never */
	uint64_t short_ms;      /* since when none of them offers that much; 0: one does */
	struct ssh_line line;   /* by ssh */
	char *path;             /* owned; of the depot there */
	uint64_t heard;         /* messages that came over the line */
	struct tray tray;       /* by Slurm */
	const char *partition;  /* borrowed; NULL: none is named */
	uint64_t looked_ms;     /* when Slurm was asked last */
	uint64_t over_ms;       /* since when it knows no job that is under way; 0: it does */
	bool told;              /* that it does not answer */
	struct result result;   /* once it is over */
	uint64_t place, log_at; /* in their streams */
	uint64_t attempt;       /* whose output came last; 0: none did */
	uint64_t next[2];       /* where its output should go on */
	uint64_t missing;       /* bytes of output that did not arrive */
	bool is_over;
	bool cancelled; /* known for certain: its result says so */
};

void posted_done(struct posted *p);

/* Connect.  The options must stay where they are. */
NODISCARD int posted_begin(struct posted *p, const struct posted_options *options, struct err *err);
void posted_end(struct posted *p);

/* 1 and its result in `p` if the ticket has one already, else 0. */
NODISCARD int posted_find(struct posted *p, const char *id, const struct buf *text,
			  struct err *err);

/* Pass the output of one that posted_find() has found on. */
NODISCARD int posted_catch_up(struct posted *p, const char *id, const struct buf *text,
			      struct err *err);

/*
 * Post it, and follow it until it has a result.  One that is there already, or was posted before, is followed
 * and not posted twice.  -EINTR: the caller was asked to end.  The ticket is cancelled if `p->cancelled` says so;
 * otherwise nobody could be told, and the command may run on.  A request to end that comes after the result is
 * too late: 0, as if none had come.
 */
NODISCARD int posted_follow(struct posted *p, const char *id, const struct strlist *labels,
			    const struct buf *text, struct err *err);

/* --- what the ways share -------------------------------------------------------------------- */

/* For so long, or until we are asked to end. */
bool posted_is_interrupted(const struct posted *p, int ms);
/* A piece of output, or a note that names the worker that has the ticket. */
NODISCARD int posted_pass(struct posted *p, const struct queue_log *log, struct err *err);
/* -ECANCELED if it is none. */
NODISCARD int posted_take_result(struct posted *p, const struct buf *text, struct err *err);
/* With its result known: output after the last that came. */
void posted_count_missing(struct posted *p);
/* With its result known, after a try to cancel it: -EINTR if that was in time, else 0. */
NODISCARD int posted_settle(struct posted *p, struct err *err);
