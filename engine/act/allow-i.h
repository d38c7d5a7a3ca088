/*
 * allow-i.h - set which hosts the runs of a clone may reach.
 */
#pragma once

#include "cowfs/store/batch.h"
#include "engine/api/allow.h"
#include "engine/host/task-i.h"

/* engine_allow(), done here, with rules that the caller has checked. */
NODISCARD int allow_edit(struct task *task, const char *clone, const struct strlist *rules,
			 bool remove, struct engine_allowed *ret, struct err *err);

/* The clone goes: so does what was allowed to it. */
NODISCARD int allow_forget(struct store *s, struct batch *b, const char *clone, struct err *err);
