/*
 * perform.h - carry out a ticket, by the worker's own rules.
 */
#pragma once

#include "engine/api/worker.h"
#include "engine/worker/ticket.h"

/* What a worker allows; a ticket can only narrow it. */
struct perform_rules {
	const char *url;    /* of the remote, as tickets name it */
	const char *remote; /* as we name it: config.yaml counts */
	const char *worker, *host;
	struct engine_list profiles, pass_env;
	struct engine_worker_keys keys;
	bool any; /* whoever asks may log in here: tickets name any profile and any variable */
};

/* Can the keys be used?  Signs a text that says nothing, so that no ticket runs for nothing. */
NODISCARD int perform_check_keys(const struct engine_worker_keys *keys, struct err *err);

struct perform_config {
	const char *store, *dir; /* dir: of the project that all tickets' states belong to */
	const struct perform_rules *rules;
};

/* The same for the text of a ticket, in an engine of its own. */
NODISCARD int perform_text(const struct perform_config *config, const struct buf *text, int out_fd,
			   int err_fd, struct result *ret, struct err *err);
