/*
 * ask-stage-i.h - the command's side of a run: two requests over one connection.
 *
 * A staged clone lives as long as the connection (engine/act/stage-i.h).
 */
#pragma once

#include "cowfs/store/record.h"
#include "engine/ask/ask-i.h"

/* The first one, on its way. */
struct stage_asking {
	struct ask ask;
	bool sent;
};

void stage_asking_done(struct stage_asking *a);

/* Send the first question; stage_ask() reports any failure. */
void stage_ask_ahead(struct engine *e, const struct stage_options *options, struct control *c,
		     struct stage_asking *a);

/* The answer; the options are those of stage_ask_ahead(). */
NODISCARD int stage_ask(struct engine *e, const struct stage_options *options,
			struct stage_asking *a, struct control *c, struct stage *ret,
			struct err *err);
/*
 * Keep the numbers of files that a run of the clone must not see (engine/act/hide-i.h): in either list rising, and
 * STAGE_HIDDEN_MAX at most.
 */
NODISCARD int stage_ask_hide(struct engine *e, const char *clone, const struct hidden *more,
			     struct err *err);

/*
 * The run's root is mounted inside, and `fd`, which is borrowed, is the connection: serve it.
 */
NODISCARD int stage_ask_root(struct engine *e, struct control *c, int fd,
			     const struct stage_root *how, struct err *err);
NODISCARD int stage_ask_end(struct engine *e, struct control *c, struct stage_end *ret,
			    struct err *err);

/* What waits is kept, or removed; over the same connection. */
NODISCARD int stage_ask_settle(struct engine *e, struct control *c, bool keep, struct err *err);

/* The same of one whose cowfsd died: another one is asked that it stays. */
NODISCARD int stage_ask_stay(struct engine *e, const char *clone, struct err *err);
