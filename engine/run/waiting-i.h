/*
 * waiting-i.h - a clone that waits for a decision (run.h), for who made it.
 */
#pragma once

#include "engine/find/run-record.h"
#include "engine/wire/control-i.h"

/*
 * Takes the connection that it hangs on, and the record of its run, which is locked until then, if it
 * succeeds.  `kept`: the decision was made already.
 */
NODISCARD int waiting_new(struct engine *e, const char *clone, bool kept, struct control *control,
			  struct run_record *record, struct engine_waiting **ret, struct err *err);
