/*
 * keep-i.h - what cowfsd keeps for a client until its connection ends.
 *
 * A verb puts things here that must stay while the client uses them. A list belongs to one
 * connection, and so to one thread.
 */
#pragma once

#include <stddef.h>

/* The first member of what is kept. */
struct kept {
	struct kept *next;
	void (*release)(struct kept *k); /* and free it */
};

static inline void keep_add(struct kept **list, struct kept *k)
{
	k->next = *list;
	*list = k;
}

static inline void keep_release(struct kept **list)
{
	while (*list) {
		struct kept *k = *list;

		*list = k->next;
		k->release(k);
	}
}
