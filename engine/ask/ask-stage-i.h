/*
 * ask-stage-i.h - the command's side of a run: two questions over one connection.
 *
 * What is staged hangs on the connection: whichever way that ends, by kill -9 too, the run's limit of
 * growth ends with it, and a clone that was made for the run is removed (engine/act/stage-i.h).
 */
#pragma once

#include "engine/ask/ask-i.h"

/* The first one, on its way. */
struct stage_asking {
	struct ask ask;
	bool sent;
};

void stage_asking_done(struct stage_asking *a);

/* Begin to ask: what can fail of it does so in stage_ask(). */
void stage_ask_ahead(struct engine *e, const struct stage_options *options, struct control *c,
		     struct stage_asking *a);

/* The answer; the options are those of stage_ask_ahead(). */
NODISCARD int stage_ask(struct engine *e, const struct stage_options *options,
			struct stage_asking *a, struct control *c, struct stage *ret,
			struct err *err);
NODISCARD int stage_ask_end(struct engine *e, struct control *c, struct stage_end *ret,
			    struct err *err);

/* What waits is kept, or removed; over the same connection. */
NODISCARD int stage_ask_settle(struct engine *e, struct control *c, bool keep, struct err *err);

/* The same of one whose cowfsd died: another one is asked that it stays. */
NODISCARD int stage_ask_stay(struct engine *e, const char *clone, struct err *err);
