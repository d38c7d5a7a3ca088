/*
 * retain-i.h - which snapshots a gc with a rule leaves out.
 *
 * Those of projects, each project by itself, and those of clones that are no more; never one that
 * a tag or a clone names, nor the newest of a project.  Those that somebody asked for and automatic
 * ones are counted apart.
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
