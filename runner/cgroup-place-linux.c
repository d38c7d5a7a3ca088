/*
 * cgroup-place-linux.c - reads those files.
 *
 * A line of mountinfo: "36 25 0:31 ROOT POINT OPTIONS [TAGS...] - TYPE SOURCE SUPER". ROOT is the
 * group that is mounted at POINT, which is not "/" in a container; a group that is not below it
 * cannot be seen there.
 */
#include "runner/cgroup-place.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/fdio.h"
#include "base/path.h"

#define TEXT_MAX (4u << 20)
#define FIELDS   64

static size_t split(char *line, char *fields[FIELDS])
{
	size_t n = 0;
	char *rest = NULL;

	for (char *f = strtok_r(line, " ", &rest); f && n < FIELDS; f = strtok_r(NULL, " ", &rest))
		fields[n++] = f;
	return n;
}

static bool has_option(const char *options, const char *one, size_t len)
{
	while (*options) {
		size_t n = strcspn(options, ",");

		if (n == len && strncmp(options, one, n) == 0)
			return true;
		options += n;
		options += *options == ',';
	}
	return false;
}

/* Is it the mount of that hierarchy?  `controllers` "" stands for version 2. */
static bool is_mount_of(char **fields, size_t n, const char *controllers)
{
	size_t dash = 6;

	while (dash < n && strcmp(fields[dash], "-") != 0)
		dash++;
	if (dash + 3 >= n)
		return false;
	if (*controllers == '\0')
		return strcmp(fields[dash + 1], "cgroup2") == 0;
	return strcmp(fields[dash + 1], "cgroup") == 0 &&
	       has_option(fields[dash + 3], controllers, strcspn(controllers, ","));
}

int cgroup_locate(const char *mountinfo, const char *controllers, const char *group,
		  struct buf *path, struct buf *top)
{
	AUTO_FREE char *text = strdup(mountinfo);
	char *rest = NULL;

	if (!text)
		return -ENOMEM;
	for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		char *fields[FIELDS];
		size_t n = split(line, fields);
		const char *root, *below;

		if (!is_mount_of(fields, n, controllers))
			continue;
		root = fields[3];
		if (!path_is_below(group, root))
			continue;
		below = strcmp(root, "/") == 0 ? group : group + strlen(root);
		if (buf_append_str(path, fields[4]) < 0 || buf_append_str(path, below) < 0)
			return -ENOMEM;
		return top ? buf_append_str(top, fields[4]) : 0;
	}
	return -ENOENT;
}

/* "ID:CONTROLLERS:PATH"; version 2 is the line with neither. */
static int visit_line(char *line, const char *mountinfo, bool v2, cgroup_place_fn fn, void *ctx)
{
	CLEANUP(buf_done) struct buf path = BUF_INIT, top = BUF_INIT;
	char *controllers = strchr(line, ':');
	char *group = controllers ? strchr(controllers + 1, ':') : NULL;
	struct cgroup_place place;
	int r;

	if (!group)
		return 0;
	*controllers++ = '\0';
	*group++ = '\0';
	if (v2 != (*controllers == '\0') || *group != '/')
		return 0;
	r = cgroup_locate(mountinfo, controllers, group, &path, &top);
	if (r == -ENOENT)
		return 0;
	if (r < 0)
		return r;
	place = (struct cgroup_place){ .path = buf_str(&path),
				       .top = buf_str(&top),
				       .group = group,
				       .controllers = controllers };
	return place.path && place.top ? fn(&place, ctx) : -ENOMEM;
}

int cgroup_map_read(struct cgroup_map *map)
{
	int r = fdio_read_file(AT_FDCWD, "/proc/self/mountinfo", TEXT_MAX, &map->mounts, NULL);

	return r < 0 ? r
		     : fdio_read_file(AT_FDCWD, "/proc/self/cgroup", TEXT_MAX, &map->groups, NULL);
}

int cgroup_groups_of(pid_t pid, struct buf *out)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/cgroup", (int)pid);
	return fdio_read_file(AT_FDCWD, path, TEXT_MAX, out, NULL);
}

void cgroup_map_done(struct cgroup_map *map)
{
	buf_done(&map->mounts);
	buf_done(&map->groups);
}

int cgroup_each_place(struct cgroup_map *map, bool v2, cgroup_place_fn fn, void *ctx)
{
	const char *mountinfo = buf_str(&map->mounts), *groups = buf_str(&map->groups);
	AUTO_FREE char *text = mountinfo && groups ? strdup(groups) : NULL;
	char *rest = NULL;
	int r = 0;

	if (!text)
		return -ENOMEM;
	for (char *line = strtok_r(text, "\n", &rest); r == 0 && line;
	     line = strtok_r(NULL, "\n", &rest))
		r = visit_line(line, mountinfo, v2, fn, ctx);
	return r;
}
