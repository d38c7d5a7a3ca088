/*
 * patterns-i.h - select paths by patterns as in .gitignore.
 */
#pragma once

#include "engine/api/engine.h"
#include "engine/api/run.h"
#include "snapshot/text/ignore.h"

/* *ret stays NULL if there are none; the caller decides what that means. */
NODISCARD int patterns_parse(const struct engine_list *list, struct ignore **ret, struct err *err);
