/*
 * distro.h - how a root of a distribution changed, for people and for programs.
 */
#pragma once

#include "base/buf.h"
#include "base/json.h"
#include "engine/api/diff.h"

/* "# user added: postgres (uid 101, ...)", or nothing for what has no line of its own. */
NODISCARD int distro_line(const struct engine_distro_change *c, struct buf *to);

/* "# files: 12 of packages, ..." */
NODISCARD int distro_counts_line(const struct engine_parts *parts, struct buf *to);

/* The member "system" of a difference, begun with the first change. */
struct distro_json {
	struct json all, lists[ENGINE_FILE + 1];
	bool begun;
};

void distro_set_change(struct distro_json *d, struct json j, const struct engine_distro_change *c);
void distro_set_counts(struct distro_json *d, struct json j, const struct engine_parts *parts);
