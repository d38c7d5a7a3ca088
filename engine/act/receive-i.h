/*
 * receive-i.h - make a snapshot of packs that the command line fetched.
 */
#pragma once

#include "engine/api/remote.h"
#include "engine/host/task-i.h"

/* engine_receive(), done here. */
NODISCARD int receive_snapshot(struct task *task, const struct engine_receive_options *options,
			       struct engine_received *ret, struct err *err);

/* The same if only names and attributes have come: files are promised.  -EBUSY if none may be now. */
NODISCARD int receive_lazily(struct task *task, const struct engine_receive_options *options,
			     struct engine_received *ret, struct err *err);
