#include "tests/sandbox/cgroupfs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fdio.h"
#include "base/path.h"
#include "runner/cgroup-place.h"
#include "tests/lib/test.h"

int __real_mkdirat(int dir, const char *name, mode_t mode);
int __real_unlinkat(int dir, const char *name, int flags);
ssize_t __real_write(int fd, const void *data, size_t len);
int __wrap_mkdirat(int dir, const char *name, mode_t mode);
int __wrap_unlinkat(int dir, const char *name, int flags);
ssize_t __wrap_write(int fd, const void *data, size_t len);
int __real_access(const char *path, int mode);
int __wrap_access(const char *path, int mode);
int __real_cgroup_map_read(struct cgroup_map *map);
int __wrap_cgroup_map_read(struct cgroup_map *map);
int __wrap_cgroup_groups_of(pid_t pid, struct buf *out);

static char top[256]; /* "": not in use */
static char mounted[128], caller[256];
static int trees;

/* --- files ------------------------------------------------------------------------------- */

static const char *full(const char *group, const char *file)
{
	static char path[4][1024];
	static unsigned int next;
	char *p = path[next++ % 4];

	snprintf(p, sizeof(path[0]), "%s%s%s%s", top, strcmp(group, "/") == 0 ? "" : group,
		 *file ? "/" : "", file);
	return p;
}

static void put_text(const char *path, const char *text)
{
	FILE *f = fopen(path, "we");

	CHECK(f && fputs(text, f) >= 0 && fclose(f) == 0);
}

const char *cgroupfs_read(const char *group, const char *file)
{
	static char text[4][512];
	static unsigned int next;
	char *t = text[next++ % 4];
	FILE *f = fopen(full(group, file), "re");
	size_t n = f ? fread(t, 1, sizeof(text[0]) - 1, f) : 0;

	if (f)
		fclose(f);
	t[n] = '\0';
	if (n > 0 && t[n - 1] == '\n')
		t[n - 1] = '\0';
	return f ? t : "-";
}

void cgroupfs_write(const char *group, const char *file, const char *text)
{
	put_text(full(group, file), text);
}

static bool has_word(const char *list, const char *word)
{
	const size_t len = strlen(word);

	for (const char *at = list; (at = strstr(at, word)); at += len) {
		if ((at == list || strchr(" \n", at[-1])) && strchr(" \n", at[len]))
			return true;
	}
	return false;
}

static void add_files(const char *group, const char *controllers)
{
	static const struct {
		const char *controller, *file, *text;
	} all[] = {
		{ "memory", "memory.max", "max\n" },
		{ "memory", "memory.swap.max", "max\n" },
		{ "memory", "memory.events", "oom_kill 0\n" },
		{ "pids", "pids.max", "max\n" },
		{ "cpu", "cpu.max", "max 100000\n" },
	};

	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		if (has_word(controllers, all[i].controller) &&
		    access(full(group, all[i].file), F_OK) < 0)
			put_text(full(group, all[i].file), all[i].text);
	}
}

static bool is_threaded(const char *group)
{
	const char *type = cgroupfs_read(group, "cgroup.type");

	return strcmp(type, "domain") != 0 && strcmp(type, "-") != 0;
}

static void fill(const char *group, const char *parent)
{
	const char *controllers =
	    parent ? cgroupfs_read(parent, "cgroup.subtree_control") : "cpu memory pids";

	put_text(full(group, "cgroup.controllers"), controllers);
	put_text(full(group, "cgroup.subtree_control"), "");
	put_text(full(group, "cgroup.procs"), "");
	put_text(full(group, "cpu.stat"), "usage_usec 0\n");
	if (!parent)
		return;
	put_text(full(group, "cgroup.kill"), "");
	put_text(full(group, "cgroup.type"), is_threaded(parent) ? "domain invalid\n" : "domain\n");
	add_files(group, controllers);
}

/* Of the group `name` right below `parent`. */
static void join(char group[256], const char *parent, const char *name)
{
	const int n = snprintf(group, 256, "%s/%s", strcmp(parent, "/") == 0 ? "" : parent, name);

	CHECK(n > 0 && n < 256);
}

static void copy(char *to, size_t size, const char *from)
{
	CHECK(strlen(from) < size);
	memcpy(to, from, strlen(from) + 1);
}

static const char *parent_of(const char *group)
{
	static char parent[256];
	char *slash;

	copy(parent, sizeof(parent), group);
	slash = strrchr(parent, '/');
	slash[slash == parent ? 1 : 0] = '\0';
	return parent;
}

static void make(const char *group)
{
	char parent[256];

	copy(parent, sizeof(parent), parent_of(group));
	CHECK(mkdir(full(group, ""), 0755) == 0);
	fill(group, parent);
}

/* --- what the kernel does ---------------------------------------------------------------- */

/* The group and the file of a descriptor, if it is one of the tree. */
static bool find(int fd, char group[256], char file[64])
{
	char link[64], path[512];
	ssize_t n;

	if (!*top)
		return false;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, path, sizeof(path) - 1);
	path[n > 0 ? n : 0] = '\0';
	if (!path_is_below(path, top))
		return false;
	copy(group, 256, path[strlen(top)] ? path + strlen(top) : "/");
	if (file) {
		copy(file, 64, strrchr(group, '/') + 1);
		copy(group, 256, parent_of(group));
	}
	return true;
}

typedef void (*each_fn)(const char *group, const void *ctx);

static void each_below(const char *group, bool deep, each_fn fn, const void *ctx)
{
	DIR *dir = opendir(full(group, ""));
	struct dirent *e;

	CHECK(dir);
	while ((e = readdir(dir))) {
		char below[256];

		if (e->d_type != DT_DIR || e->d_name[0] == '.')
			continue;
		join(below, group, e->d_name);
		fn(below, ctx);
		if (deep)
			each_below(below, true, fn, ctx);
	}
	closedir(dir);
}

static void drop(const char *group, const void *pid)
{
	char kept[512] = "", list[512], *rest = NULL;

	copy(list, sizeof(list), cgroupfs_read(group, "cgroup.procs"));
	for (char *p = strtok_r(list, "\n", &rest); p; p = strtok_r(NULL, "\n", &rest)) {
		if (strcmp(p, pid) == 0)
			continue;
		snprintf(kept + strlen(kept), sizeof(kept) - strlen(kept), "%s\n", p);
	}
	put_text(full(group, "cgroup.procs"), kept);
}

static int enter(const char *group, const char *pid)
{
	char self[16], list[600];

	snprintf(self, sizeof(self), "%d", (int)getpid());
	if (strcmp(pid, "0") == 0)
		pid = self;
	if (is_threaded(group))
		return -EOPNOTSUPP;
	if (strcmp(group, "/") != 0 && *cgroupfs_read(group, "cgroup.subtree_control"))
		return -EBUSY;
	drop("/", pid);
	each_below("/", true, drop, pid);
	copy(list, sizeof(list), cgroupfs_read(group, "cgroup.procs"));
	snprintf(list + strlen(list), sizeof(list) - strlen(list), "%s%s\n", *list ? "\n" : "",
		 pid);
	put_text(full(group, "cgroup.procs"), list);
	if (strcmp(pid, self) == 0)
		copy(caller, sizeof(caller), group);
	return 0;
}

static void invalidate(const char *group, const void *ctx)
{
	(void)ctx;
	put_text(full(group, "cgroup.type"), "domain invalid\n");
}

static void receive(const char *group, const void *controllers)
{
	put_text(full(group, "cgroup.controllers"), controllers);
	add_files(group, controllers);
}

static int enable(const char *group, const char *text)
{
	const bool busy = strcmp(group, "/") != 0 && *cgroupfs_read(group, "cgroup.procs");
	const char *name = text + 1;
	char now[512];

	copy(now, sizeof(now), cgroupfs_read(group, "cgroup.subtree_control"));
	if (*text != '+' || !has_word(cgroupfs_read(group, "cgroup.controllers"), name))
		return -ENOENT;
	if (has_word(now, name))
		return 0;
	if (busy && strcmp(name, "memory") == 0)
		return -EBUSY;
	if (busy) {
		put_text(full(group, "cgroup.type"), "domain threaded\n");
		each_below(group, true, invalidate, NULL);
	}
	snprintf(now + strlen(now), sizeof(now) - strlen(now), "%s%s", *now ? " " : "", name);
	put_text(full(group, "cgroup.subtree_control"), now);
	each_below(group, false, receive, now);
	return 0;
}

ssize_t __wrap_write(int fd, const void *data, size_t len)
{
	char group[256], file[64], text[64];
	int r = 0;

	if (!find(fd, group, file))
		return __real_write(fd, data, len);
	snprintf(text, sizeof(text), "%.*s", (int)len, (const char *)data);
	if (strcmp(file, "cgroup.subtree_control") == 0)
		r = enable(group, text);
	else if (strcmp(file, "cgroup.procs") == 0)
		r = enter(group, text);
	else
		put_text(full(group, file), text);
	if (r < 0) {
		errno = -r;
		return -1;
	}
	return (ssize_t)len;
}

int __wrap_mkdirat(int dir, const char *name, mode_t mode)
{
	char group[256], parent[256];
	int rc = __real_mkdirat(dir, name, mode);

	if (rc == 0 && find(dir, parent, NULL)) {
		join(group, parent, name);
		fill(group, parent);
	}
	return rc;
}

static int remove_dir(const char *group)
{
	DIR *dir = opendir(full(group, ""));
	struct dirent *e;

	if (!dir)
		return -1;
	while ((e = readdir(dir))) {
		if (e->d_type == DT_REG)
			unlink(full(group, e->d_name));
	}
	closedir(dir);
	return rmdir(full(group, ""));
}

int __wrap_unlinkat(int dir, const char *name, int flags)
{
	char group[256], parent[256];

	if (!(flags & AT_REMOVEDIR) || !find(dir, parent, NULL))
		return __real_unlinkat(dir, name, flags);
	join(group, parent, name);
	if (cgroupfs_has(group) && *cgroupfs_read(group, "cgroup.procs")) {
		errno = EBUSY;
		return -1;
	}
	return remove_dir(group);
}

/* --- what /proc says ---------------------------------------------------------------------- */

int __wrap_cgroup_map_read(struct cgroup_map *map)
{
	char text[1024];
	const char *below = caller;

	if (!*top)
		return __real_cgroup_map_read(map);
	if (strcmp(mounted, "/") != 0)
		below = caller[strlen(mounted)] ? caller + strlen(mounted) : "/";
	snprintf(text, sizeof(text), "29 25 0:26 / %s rw - cgroup2 cgroup2 rw,nsdelegate\n",
		 full(mounted, ""));
	if (buf_append_str(&map->mounts, text) < 0 || buf_append_str(&map->groups, "0::") < 0 ||
	    buf_append_str(&map->groups, below) < 0 || buf_append_str(&map->groups, "\n") < 0)
		return -ENOMEM;
	return 0;
}

struct wanted {
	char pid[16], group[256];
};

static void look(const char *group, const void *ctx)
{
	struct wanted *w = (struct wanted *)(uintptr_t)ctx;

	if (has_word(cgroupfs_read(group, "cgroup.procs"), w->pid))
		copy(w->group, sizeof(w->group), group);
}

/* As the caller sees it: from the root that is mounted on. */
int __wrap_cgroup_groups_of(pid_t pid, struct buf *out)
{
	struct wanted w = { .group = "" };
	const char *below;

	snprintf(w.pid, sizeof(w.pid), "%d", (int)pid);
	look("/", &w);
	each_below("/", true, look, &w);
	if (!*w.group)
		return -ESRCH;
	below = strcmp(mounted, "/") == 0 ? w.group : w.group + strlen(mounted);
	if (buf_append_str(out, "0::") < 0 || buf_append_str(out, *below ? below : "/") < 0 ||
	    buf_append_str(out, "\n") < 0)
		return -ENOMEM;
	return 0;
}

/* --- by the test -------------------------------------------------------------------------- */

void cgroupfs_begin(void)
{
	char name[16];

	snprintf(name, sizeof(name), "tree-%d", trees++);
	copy(top, sizeof(top), test_path(name));
	CHECK(mkdir(top, 0755) == 0);
	fill("/", NULL);
	cgroupfs_call_from("/", "/");
}

void cgroupfs_make(const char *group)
{
	char above[256];

	for (size_t i = 1; i <= strlen(group); i++) {
		if (group[i] != '/' && group[i] != '\0')
			continue;
		snprintf(above, sizeof(above), "%.*s", (int)i, group);
		if (cgroupfs_has(above))
			continue;
		make(above);
		if (group[i] == '/')
			cgroupfs_pass_on(above, "cpu memory pids");
	}
}

void cgroupfs_remove(const char *group)
{
	CHECK(remove_dir(group) == 0);
}

void cgroupfs_pass_on(const char *group, const char *controllers)
{
	put_text(full(group, "cgroup.subtree_control"), controllers);
	each_below(group, false, receive, controllers);
}

void cgroupfs_put(const char *group, pid_t pid)
{
	char text[16];

	snprintf(text, sizeof(text), "%d", (int)pid);
	CHECK_EQ(enter(group, text), 0);
}

void cgroupfs_call_from(const char *root, const char *group)
{
	copy(mounted, sizeof(mounted), root);
	cgroupfs_put(group, getpid());
}

int cgroupfs_has(const char *group)
{
	return access(full(group, ""), F_OK) == 0;
}

static void count(const char *group, const void *n)
{
	(void)group;
	++*(int *)(uintptr_t)n;
}

int cgroupfs_count_below(const char *group)
{
	int n = 0;

	each_below(group, false, count, &n);
	return n;
}

/* The systemd of the machine that the test runs on is no part of it. */
int __wrap_access(const char *path, int mode)
{
	if (strncmp(path, "/run/systemd/", 13) != 0)
		return __real_access(path, mode);
	errno = ENOENT;
	return -1;
}
