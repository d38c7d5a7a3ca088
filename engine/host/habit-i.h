/*
 * habit-i.h - how many clones of a project were made at once lately.
 *
 * A user who made eight a minute ago, one after the other or with one command, is likely to make
 * eight again. It counts clones that follow each other within a few seconds, and forgets after a
 * while. Pure: the caller passes the time, and locks.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "cowfs/store/catalog.h"

#define HABIT_BURST_MS 10000  /* clones that are made within this are made at once */
#define HABIT_KEEP_MS  600000 /* after this it is no habit any more */
#define HABIT_MAX      8

struct habit {
	struct catalog_id project; /* that was cloned last */
	uint64_t began;            /* the clones that are being made at once, in ms, */
	size_t burst;              /* and how many they are */
	size_t most;               /* of those that were made at once of late, */
	uint64_t most_at;          /* and when */
};

/* So many clones of the project were made just now. */
void habit_note(struct habit *h, const struct catalog_id *project, size_t made, uint64_t now);

/*
 * How many are likely to be made next: at least 1, and as many as fit into a fraction of the memory
 * that is free, if one takes `each` bytes.
 */
size_t habit_expects(const struct habit *h, const struct catalog_id *project, uint64_t now,
		     uint64_t each, uint64_t free_memory);
