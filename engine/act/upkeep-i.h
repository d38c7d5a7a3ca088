/*
 * upkeep-i.h - what checking and repairing share.
 */
#pragma once

#include "cowfs/store/upkeep/check.h"
#include "engine/api/upkeep.h"
#include "engine/find/engine-i.h"

/* (damage.c) */
NODISCARD int upkeep_look(struct store *s, const struct engine_watch *watch,
			  struct check_report *ret, struct err *err);

/* The paths change owner; the finding is left without them. */
NODISCARD int upkeep_take_finding(struct check_finding *f, struct engine_damage *d,
				  struct err *err);

/*
 * Repair what `report` found; what it finds then is in `report`, what became of the rest is added
 * to `c`.  (repair.c)
 */
NODISCARD int upkeep_repair(struct engine *e, const struct engine_watch *watch,
			    struct check_report *report, struct engine_check *c, struct err *err);
