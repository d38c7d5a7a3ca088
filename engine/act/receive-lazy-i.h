/*
 * receive-lazy-i.h - make a snapshot when only names and attributes have come; the rest is
 * promised.
 */
#pragma once

#include "cowfs/store/catalog.h"
#include "engine/host/supply-i.h"

struct task;

/* Begins as { 0 }. */
struct receive_lazy {
	struct supply *supply; /* owned; NULL: nothing is promised, all of it is here */
	struct store *store;
	struct lazy record;
	struct buf promised, source; /* for promises_put_remote() */
	struct digest_table known;   /* promises that are in it */
};

void receive_lazy_done(struct receive_lazy *l);

/* Open what the command line has brought for the lazy fetch that the options name. */
NODISCARD int receive_lazy_open(struct receive_lazy *l, struct store *s,
				const struct engine_receive_options *o, struct err *err);

/* Have inbound promise the bytes of files. */
void receive_lazy_options(struct receive_lazy *l, struct inbound_options *o);

/* The record of the fetch, in the batch of its snapshot; none if nothing was promised. */
NODISCARD int receive_lazy_put(struct receive_lazy *l, struct batch *b, const struct snapshot *s,
			       struct err *err);
