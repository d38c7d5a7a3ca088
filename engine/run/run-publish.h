/*
 * run-publish.h - ports of a run that are reachable on the loopback of this machine.
 *
 * The publisher is in this process, its door in the run (docs/design/network.md). They listen
 * before the clone is requested, so that a port already in use costs nothing.
 */
#pragma once

#include "engine/api/run.h"
#include "runner/net/publish.h"
#include "runner/sandbox.h"

struct run_publish {
	struct publish *publish; /* owned, as is the next; NULL: there is none */
	int inside;              /* the door's end of what they speak through */
	struct publish_port ports[PUBLISH_MAX];
	size_t n;
};

#define RUN_PUBLISH_INIT ((struct run_publish){ .inside = -1 })

void run_publish_done(struct run_publish *p);

/* Listen, and give the spec what belongs to that.  `p` stays where it is until the run has ended. */
NODISCARD int run_publish_open(struct run_publish *p, const struct engine_list *asked,
			       struct sandbox_spec *spec, struct err *err);

/* For the record. */
void run_publish_describe(const struct run_publish *p, struct engine_run *run);

/* All walls stand: the door has its end of the socket, and we learn when it goes. */
void run_publish_began(struct run_publish *p);

/* The run has ended: what its servers had said is delivered, and then all of it ends. */
void run_publish_end(struct run_publish *p);
