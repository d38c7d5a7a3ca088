/*
 * supplying-i.h - shared by the files of a supply.
 */
#pragma once

#include <pthread.h>

#include "engine/host/supply-i.h"

#define SUPPLY_LOOK_MS   100   /* between two looks of somebody who waits */
#define SUPPLY_BAD_MS    5000  /* before a frame that was wrong twice is brought again */
#define SUPPLY_AWAY_MS   4000  /* of failures in a row, before waiting readers fail */
#define SUPPLY_SILENT_MS 20000 /* without a byte, the same */

#define SUPPLY_STRIKES 2 /* so often wrong is too often */

enum frame_state {
	FRAME_ABSENT, /* or here: struct pack says that */
	FRAME_WANTED, /* somebody waits for it */
	FRAME_COMING, /* a process has it in hand */
};

struct frame {
	uint8_t state;   /* enum frame_state */
	uint8_t strikes; /* how often it was wrong */
	uint64_t bad_until_ms;
};

struct frames {
	struct frame *list; /* owned; as many as the pack has */
	uint32_t here;      /* how many are */
};

struct want {
	uint32_t pack, frame;
};

struct supply {
	int dir;              /* owned */
	pthread_mutex_t lock; /* guards all that follows */
	pthread_cond_t changed;
	struct pack_set packs;
	struct frames *frames; /* owned; for each pack */
	struct want *wants;    /* owned; in the order in which they were asked for */
	size_t n_wants, cap_wants;
	uint64_t process;             /* that brings frames; 0: none yet */
	size_t next_pack;             /* no frame of those before is absent, unless it was wrong */
	uint64_t opened_ms, heard_ms; /* by engine_clock_ms(): a process asked; 0: none has */
	uint64_t news_ms;             /* something came */
	uint64_t failures;
	uint64_t away_ms;   /* the first failure since something came; 0: none */
	struct err why;     /* the last one */
	uint64_t completed; /* packs that were here from end to end */
	size_t n_bad;       /* frames that were wrong too often, and have not come again */
	struct err bad;     /* the last one, why */
	bool ending;        /* nobody waits any more */
};

/* lock held */
struct engine_range supply_range(const struct supply *s, size_t pack, uint32_t frame, uint32_t n);

/* Without the lock: until something changes, or so long. */
void supply_await(struct supply *s, unsigned ms);
