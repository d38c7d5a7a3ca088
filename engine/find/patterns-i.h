/*
 * patterns-i.h - which paths somebody names, by patterns as .gitignore has them.
 */
#pragma once

#include "engine/api/engine.h"
#include "engine/api/run.h"
#include "snapshot/text/ignore.h"

/* *ret stays NULL if there are none; the caller decides what that means. */
NODISCARD int patterns_parse(const struct engine_list *list, struct ignore **ret, struct err *err);
