/*
 * slot-i.h - processes that carry out tickets for a worker.
 *
 * The worker has threads of libnats and must not fork, and the sandbox forks. So a slot is a
 * process that is made before the queue is opened: it has one thread, and makes a child for each
 * ticket. All of them die with the worker.
 */
#pragma once

#include <sys/types.h>

#include "engine/worker/perform.h"

enum slot_state {
	SLOT_IDLE,
	SLOT_WORKING,
	SLOT_STORING, /* its result is to be stored, and the ticket to be acknowledged */
	SLOT_LEAVING, /* all is done, but its child has not ended yet */
	SLOT_DEAD,
};

struct slot {
	enum slot_state state;
	pid_t pid;   /* of the slot */
	pid_t child; /* that does the ticket; 0: none, or not known yet */
	int sock, out, err;
	/* Of the ticket. */
	struct ticket ticket;
	char id[QUEUE_ID_SIZE];
	char *reply; /* owned */
	uint64_t attempt;
	struct buf result;          /* of SLOT_STORING */
	bool cancelled, ended;      /* ended: its child */
	uint64_t at[2];             /* bytes of output so far */
	uint64_t began, beat, kill; /* engine_clock_ms(): when; next heartbeat; SIGKILL, 0: not */
};

/* Make `n` of them.  From a process with one thread. */
NODISCARD int slots_start(struct slot *slots, size_t n, const struct perform_config *config,
			  struct err *err);
/* They end, with what they do. */
void slots_end(struct slot *slots, size_t n);

/* Hand a ticket to an idle one. */
NODISCARD int slot_send(struct slot *s, const struct buf *text, struct err *err);

enum slot_word {
	SLOT_CHILD = 'C',  /* it has begun: the child's pid */
	SLOT_RESULT = 'R', /* the text of a struct result, without what only the worker knows */
	SLOT_LATER = 'N',  /* a sentence: it cannot be done now */
	SLOT_ENDED = 'E',  /* the child is gone */
};

/* 1 and what it said; 0: nothing more now; -ECHILD: it is dead. */
NODISCARD int slot_read(struct slot *s, enum slot_word *ret_word, struct buf *ret, struct err *err);
