/*
 * diff-distro.h - compare two roots of a distribution: packages, users, groups, services,
 * configuration.
 */
#pragma once

#include "engine/api/diff.h"

/* Nothing, if they are none.  Without changes below their databases little is read. */
NODISCARD int diff_report_distro(struct store *s, const struct object_id *before,
				 const struct object_id *after, const struct delta *d,
				 const struct engine_diff_sink *sink, struct err *err);
