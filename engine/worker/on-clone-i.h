/*
 * on-clone-i.h - a command on a local clone that some worker runs; its result becomes the clone's
 * content.
 *
 * The ticket's id follows from its content: a caller that asks again, after a kill -9, finds the
 * same ticket, or its result. Only an unusable result (cancelled, failed, refused, or without a
 * required signature) is skipped, and the next turn is posted.
 */
#pragma once

#include "engine/api/worker.h"

/* Where tickets go, and how states travel. */
struct on_place {
	const char *queue, *creds; /* queue: or a machine */
	bool insecure;
	const char *remote;
	struct engine_trust trust; /* as of struct engine_on_options */
	const char *sign;          /* the same */
	struct engine_list labels;
};

/* Is it ssh:HOST? */
bool on_place_is_machine(const char *queue);

/* Can it be used?  *ret_remote is the remote by name or url, also if none was named; owned. */
NODISCARD int on_place_check(struct engine *e, const struct on_place *place, char **ret_remote,
			     struct err *err);

/* Send a snapshot for workers. */
NODISCARD int on_place_send(struct engine *e, const struct on_place *place, const char *snapshot,
			    const struct engine_watch *watch, struct engine_pushed *ret,
			    struct err *err);

/* Is what was sent still there?  1 or 0. */
NODISCARD int on_place_has(struct engine *e, const struct on_place *place, const char *manifest,
			   struct err *err);

struct on_clone {
	const struct on_place *place;
	const char *snapshot;        /* that the clone holds */
	const char *manifest, *name; /* the same, as on_place_send() has told */
	uint64_t owner;              /* no other experiment has it */
	const char *experiment, *arm;
	int64_t deadline; /* as of struct ticket */
};

/* As engine_run_start() of a named clone. */
NODISCARD int on_clone_start(struct engine *e, const struct engine_run_options *options,
			     const struct on_clone *on, struct engine_run *ret, struct err *err);
