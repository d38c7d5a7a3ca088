/*
 * sender-i.h - packs travel while the next ones are made.
 *
 * Each parcel goes over one of several connections, from threads of the sender's own. A few wait at
 * most, so that a slow remote does not fill the disk. The first parcel that fails ends the
 * transfer: sender_add() and sender_finish() return its error. Only after sender_finish() is
 * everything there; the caller moves no name before that.
 */
#pragma once

#include "base/spread.h"
#include "engine/transfer/transfer-i.h"

#define SENDER_WAITING 2

/* A pack with its index. */
struct parcel {
	int fd; /* owned; -1: none */
	struct buf index;
	struct manifest_pack pack;
	bool sealed;
};

void parcel_done(struct parcel *p);

struct sender_thread {
	struct sender *sender;
	unsigned member; /* of the connections */
	struct spread thread;
};

struct sender {
	struct connections *lines; /* borrowed; NULL: not begun */
	struct meter *meter;       /* borrowed */
	struct sender_thread threads[CREW_MAX];
	unsigned n_threads;   /* the caller's alone */
	pthread_mutex_t lock; /* guards what follows */
	pthread_cond_t moved;
	struct parcel waiting[SENDER_WAITING];
	size_t first, next; /* of those that wait */
	unsigned n_busy;
	bool over; /* nothing more will come */
	struct err failure;
};

void sender_begin(struct sender *s, struct connections *lines, struct meter *meter);
/* Ends what is under way; one that was never begun ({ 0 }) is fine. */
void sender_done(struct sender *s);

/* Takes what the parcel owns, in any case.  Waits while too many wait. */
NODISCARD int sender_add(struct sender *s, struct parcel *parcel, struct err *err);
/* Wait until all are there. */
NODISCARD int sender_finish(struct sender *s, struct err *err);
