/*
 * upkeep-i.h - look for damage in a store.
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

/* Mend what `report` found (engine/act/repair-i.h). */
typedef int upkeep_repair_fn(void *ctx, const struct engine_watch *watch,
			     struct check_report *report, struct engine_check *c, struct err *err);

/* engine_check(), done here; `repair` may be NULL where no repair is asked for. */
NODISCARD int upkeep_check(struct engine *e, const struct engine_check_options *options,
			   upkeep_repair_fn *repair, void *repair_ctx, struct engine_check *ret,
			   struct err *err);
