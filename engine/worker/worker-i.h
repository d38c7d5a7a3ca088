/*
 * worker-i.h - a worker: one thread that waits for the queue, for its slots and for signals.
 *
 * Its knowledge of a ticket is in the slot; everything that counts is in the streams, so it can be
 * killed at any point.
 */
#pragma once

#include "base/signals.h"
#include "engine/api/worker.h"
#include "engine/transfer/transfer-i.h"
#include "engine/worker/slot-i.h"

struct worker {
	struct engine *e;
	const struct engine_worker_options *options;
	struct queue *queue;
	struct perform_rules rules;
	struct target target;
	char *name, *dir; /* owned */
	char host[256];
	struct strlist labels;   /* sorted */
	struct queue_need total; /* of all tickets that run at once */
	struct queue_need most;  /* that one of them may ask for */
	uint64_t lease_ms;
	struct slot slots[ENGINE_WORKER_JOBS];
	size_t n_slots;
	struct signals signals;
	bool draining, stopped, away; /* away: the server cannot be reached */
	uint64_t look;                /* when to look for tickets */
	uint64_t taken, done, failed, refused;
	uint64_t busy_ms, fetched, pushed; /* of tickets that are over, all slots together */
	int64_t started;
	uint64_t began; /* the same by engine_clock_ms() */
};

/* Take tickets and do them until it is stopped, drained or cannot go on. */
NODISCARD int worker_loop(struct worker *w, struct err *err);

/* --- what it reports, to its caller and to the queue ---------------------------------------- */

void worker_tell(struct worker *w, const struct engine_worker_event *ev);
void worker_tell_ticket(struct worker *w, const struct slot *s, const char *what, const char *text);

/* Whoever follows the ticket reads who has it. */
void worker_sign(struct worker *w, const struct slot *s);

/* Say once that the server is gone, and once that it is back.  Returns r unless waiting helps. */
NODISCARD int worker_note(struct worker *w, int r, const struct err *why);

/* Make the streams, again if the server has forgotten them. */
NODISCARD int worker_serve(struct worker *w, struct err *err);

/* A slot takes the next ticket when its child has ended: what that says last is of this one. */
void worker_release(struct worker *w, struct slot *s);

/* Store the result of a slot and release it.  0 if the server cannot be reached: later. */
NODISCARD int worker_store_slot(struct worker *w, struct slot *s, struct err *err);

/* The result of a ticket that does not run. */
NODISCARD int worker_answer_at_once(struct worker *w, const struct queue_taken *t, const char *id,
				    const char *outcome, const char *why, struct err *err);
