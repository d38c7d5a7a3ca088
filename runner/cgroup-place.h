/*
 * cgroup-place.h - where the caller's cgroups are, from two files of /proc.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/attr.h"
#include "base/buf.h"

struct cgroup_place {
	const char *path;        /* of the directory of the caller's group */
	const char *top;         /* where its hierarchy is mounted */
	const char *group;       /* its path in that hierarchy, as the caller's namespace has it */
	const char *controllers; /* between commas; "" for version 2, which has a file for them */
};

/* The two files as they were when they were read. */
struct cgroup_map {
	struct buf mounts, groups;
};

NODISCARD int cgroup_map_read(struct cgroup_map *map);
void cgroup_map_done(struct cgroup_map *map);

/* The groups of another process, as lines of its /proc/PID/cgroup.  -ENOENT if it is gone. */
NODISCARD int cgroup_groups_of(pid_t pid, struct buf *out);

typedef int (*cgroup_place_fn)(const struct cgroup_place *place, void *ctx);

/* Each hierarchy of that version that is mounted where its group can be seen.  What `fn` returns ends it. */
NODISCARD int cgroup_each_place(struct cgroup_map *map, bool v2, cgroup_place_fn fn, void *ctx);

/*
 * The same from the text of mountinfo: where `group` of a line "ID:CONTROLLERS:PATH" is, appended
 * to `path`, and where its hierarchy is mounted, to `top` unless that is NULL.  -ENOENT if it is
 * mounted nowhere.
 */
NODISCARD int cgroup_locate(const char *mountinfo, const char *controllers, const char *group,
			    struct buf *path, struct buf *top);
