/*
 * repair-i.h - repair the damage that a check found.
 */
#pragma once

#include "engine/find/upkeep-i.h"
#include "engine/host/task-i.h"

/* Repair what `report` found.  Afterwards `report` has what is still damaged, and `c` what came back. */
NODISCARD int upkeep_repair(struct task *task, const struct engine_watch *watch,
			    struct check_report *report, struct engine_check *c, struct err *err);
