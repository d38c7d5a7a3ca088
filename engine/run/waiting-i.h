/*
 * waiting-i.h - make the clone that waits for a decision (run.h).
 */
#pragma once

#include "engine/find/run-record.h"
#include "engine/wire/control-i.h"

/*
 * On success takes the connection that keeps the clone, and the run's record, which is locked until
 * the decision.  `kept`: the decision was made already.
 */
NODISCARD int waiting_new(struct engine *e, const char *clone, bool kept, struct control *control,
			  struct run_record *record, struct engine_waiting **ret, struct err *err);
