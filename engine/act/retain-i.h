/*
 * retain-i.h - which snapshots a gc with a rule removes.
 *
 * It removes snapshots of projects, each project by itself, and of clones that no longer exist; never
 * one that a tag or a clone names, nor a project's newest.  A user's snapshots and automatic ones are
 * counted separately.
 */
#pragma once

#include "engine/act/forget-i.h"
#include "engine/api/upkeep.h"

/*
 * Fill `f`, settled, and *ret with what goes, newest first.  Nothing goes if no rule is given.
 * The caller holds host->snapshots.
 */
NODISCARD int retain_choose(struct store *s, const struct engine_gc_options *options,
			    struct forget *f, struct engine_history *ret, struct err *err);
