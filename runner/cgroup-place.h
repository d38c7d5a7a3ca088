/*
 * cgroup-place.h - where the caller's cgroups are, from two files of /proc.
 */
#pragma once

#include <stdbool.h>

#include "base/attr.h"
#include "base/buf.h"

struct cgroup_place {
	const char *path;        /* of the directory of the caller's group */
	const char *controllers; /* between commas; "" for version 2, which has a file for them */
};

/* The two files as they were when they were read. */
struct cgroup_map {
	struct buf mounts, groups;
};

NODISCARD int cgroup_map_read(struct cgroup_map *map);
void cgroup_map_done(struct cgroup_map *map);

typedef int (*cgroup_place_fn)(const struct cgroup_place *place, void *ctx);

/* Each hierarchy of that version that is mounted where its group can be seen.  What `fn` returns ends it. */
NODISCARD int cgroup_each_place(struct cgroup_map *map, bool v2, cgroup_place_fn fn, void *ctx);

/*
 * The same from the texts of the two files: where the group `line` of "ID:CONTROLLERS:PATH" is,
 * appended to `path`.  -ENOENT if it is mounted nowhere.
 */
NODISCARD int cgroup_locate(const char *mountinfo, const char *controllers, const char *group,
			    struct buf *path);
