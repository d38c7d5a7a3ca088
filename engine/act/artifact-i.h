/*
 * artifact-i.h - keep some files of a clone, and remove them.
 */
#pragma once

#include "engine/api/artifact.h"
#include "engine/host/task-i.h"

/* engine_artifact_save() and engine_artifact_remove(), done here. */
NODISCARD int artifact_save(struct task *task, const struct engine_artifact_options *options,
			    struct engine_artifact *ret, struct err *err);
NODISCARD int artifact_remove(struct task *task, const char *id, struct engine_artifact *ret,
			      struct err *err);
