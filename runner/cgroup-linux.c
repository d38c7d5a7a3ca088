/*
 * cgroup-linux.c - groups: their names, their files, their end.
 *
 * cgroup-find-linux.c decides where they are made.
 */
#include "runner/cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fdio.h"
#include "base/path.h"
#include "base/size.h"
#include "runner/cgroup-i.h"
#include "runner/scope.h"

#define REMOVE_TRIES 200 /* of 1 ms, then more: what was killed takes a moment to be gone */

/* --- files of a group --------------------------------------------------------------------- */

int cgroup_write(int dir, const char *file, const char *text, struct err *err)
{
	AUTO_CLOSE int fd = openat(dir, file, O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return err_sys(err, "opening '%s' of a cgroup", file);
	if (write(fd, text, strlen(text)) < 0)
		return err_sys(err, "writing '%s' to '%s' of a cgroup", text, file);
	return 0;
}

int cgroup_write_u64(int dir, const char *file, uint64_t v, struct err *err)
{
	char text[24];

	snprintf(text, sizeof(text), "%llu", (unsigned long long)v);
	return cgroup_write(dir, file, text, err);
}

uint64_t cgroup_read(int dir, const char *file)
{
	AUTO_CLOSE int fd = openat(dir, file, O_RDONLY | O_CLOEXEC);
	char text[32] = "";
	ssize_t n = fd < 0 ? -1 : fdio_read(fd, text, sizeof(text) - 1);

	return n > 0 ? strtoull(text, NULL, 10) : 0;
}

uint64_t cgroup_read_key(int dir, const char *file, const char *key)
{
	AUTO_CLOSE int fd = openat(dir, file, O_RDONLY | O_CLOEXEC);
	char text[4096] = "";
	ssize_t n = fd < 0 ? -1 : fdio_read(fd, text, sizeof(text) - 1);
	size_t len = strlen(key);

	for (const char *line = n > 0 ? text : NULL; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, key, len) == 0 && line[len] == ' ')
			return strtoull(line + len, NULL, 10);
	}
	return 0;
}

unsigned int cgroup_controllers(const char *list)
{
	static const struct {
		const char *name;
		unsigned int bit;
	} all[] = { { "memory", CGROUP_MEMORY },
		    { "pids", CGROUP_PIDS },
		    { "cpu", CGROUP_CPU },
		    { "cpuacct", CGROUP_CPUACCT } };
	unsigned int bits = 0;

	while (*list) {
		size_t len = strcspn(list, ", \n");

		for (size_t i = 0; i < ARRAY_LEN(all); i++) {
			if (strlen(all[i].name) == len && strncmp(list, all[i].name, len) == 0)
				bits |= all[i].bit;
		}
		list += len;
		list += *list != '\0';
	}
	return bits;
}

/* --- names that tell who made a group ----------------------------------------------------- */

/* When a process of this pid began, in ticks since boot; 0 if there is none, or it is dead and unburied. */
static uint64_t start_of(pid_t pid)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	char path[32];
	const char *s, *end;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	if (fdio_read_file(AT_FDCWD, path, 4096, &text, NULL) < 0)
		return 0;
	s = buf_str(&text);
	/* The name in brackets may hold anything; field 3 is after the last of them. */
	end = s ? strrchr(s, ')') : NULL;
	if (end && strncmp(end, ") Z", 3) == 0)
		return 0;
	for (int field = 2; end && field < 22; field++)
		end = strchr(end + 1, ' ');
	return end ? strtoull(end + 1, NULL, 10) : 0;
}

static unsigned long long pid_namespace(void)
{
	struct stat st;

	return stat("/proc/self/ns/pid", &st) < 0 ? 0 : (unsigned long long)st.st_ino;
}

void cgroup_make_name(char name[CGROUP_NAME_MAX])
{
	static unsigned int count;

	snprintf(name, CGROUP_NAME_MAX, "snap-run-%llu-%d-%llu-%u", pid_namespace(), (int)getpid(),
		 (unsigned long long)start_of(getpid()), count++);
}

/* Ours, of this pid namespace, and its maker is gone. */
static bool is_orphan(const char *name)
{
	unsigned long long ns, start;
	unsigned int count;
	int pid;

	if (sscanf(name, "snap-run-%llu-%d-%llu-%u", &ns, &pid, &start, &count) != 4)
		return false;
	return ns == pid_namespace() && start_of(pid) != start;
}

void cgroup_each_orphan(int parent, void (*visit)(int parent, const char *name, void *ctx),
			void *ctx)
{
	int copy = openat(parent, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = copy < 0 ? NULL : fdopendir(copy);
	struct dirent *e;

	if (!dir) {
		cleanup_close(&copy);
		return;
	}
	while ((e = readdir(dir))) {
		if (e->d_type == DT_DIR && is_orphan(e->d_name))
			visit(parent, e->d_name, ctx);
	}
	closedir(dir);
}

static void remove_orphan(int parent, const char *name, void *ctx)
{
	unlinkat(parent, name, AT_REMOVEDIR);
}

void cgroup_sweep(int parent)
{
	cgroup_each_orphan(parent, remove_orphan, NULL);
}

/* --- groups ------------------------------------------------------------------------------- */

static void remove_group(int parent, const char *name)
{
	struct timespec wait = { .tv_nsec = 200000 };

	for (int i = 0; i < REMOVE_TRIES; i++) {
		if (unlinkat(parent, name, AT_REMOVEDIR) == 0 || errno != EBUSY)
			return;
		nanosleep(&wait, NULL);
		if (wait.tv_nsec < 5000000)
			wait.tv_nsec *= 2;
	}
}

void cgroup_close(struct cgroup *g)
{
	if (!g)
		return;
	for (size_t i = 0; i < g->n_dirs; i++) {
		g->manager->kill(&g->dirs[i]);
		close(g->dirs[i].fd);
		cleanup_close(&g->dirs[i].entry);
		/*
		 * systemd removes its own.  Gone before the kernel has told it that the group is
		 * empty, the scope would stay active for good, and its group would come back.
		 */
		if (g->kind != CGROUP_SCOPE)
			remove_group(g->dirs[i].parent, g->name);
		close(g->dirs[i].parent);
	}
	scope_close(g->scope);
	free(g);
}

int cgroup_add(struct cgroup *g, int parent, unsigned int serves, struct err *why)
{
	AUTO_CLOSE int own = parent, fd = -1, entry = -1;
	const char *door = g->manager->entry;
	int r;

	if (mkdirat(parent, g->name, 0755) < 0)
		return err_sys(why, "making a cgroup for the run");
	fd = openat(parent, g->name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0 && door)
		entry = openat(fd, door, O_WRONLY | O_CLOEXEC);
	r = fd < 0 || (door && entry < 0) ? err_sys(why, "opening a cgroup that was made")
					  : g->manager->check(fd, why);
	if (r < 0) {
		unlinkat(parent, g->name, AT_REMOVEDIR);
		return r;
	}
	g->dirs[g->n_dirs++] = (struct cgroup_dir){
		.parent = TAKE_FD(own),
		.fd = TAKE_FD(fd),
		.entry = TAKE_FD(entry),
		.serves = serves,
	};
	r = g->manager->apply(&g->dirs[g->n_dirs - 1], &g->limits, why);
	if (r == 0)
		g->held |= serves;
	return r;
}

unsigned int cgroup_wanted(const struct cgroup_limits *l)
{
	return (l->mem > 0 ? CGROUP_MEMORY : 0) | (l->pids > 0 ? CGROUP_PIDS : 0) |
	       (l->cpus_milli > 0 ? CGROUP_CPU : 0) | (l->count_cpu ? CGROUP_CPUACCT : 0);
}

const char *cgroup_kind_name(enum cgroup_kind kind)
{
	static const char *const names[] = {
		[CGROUP_NONE] = "none",
		[CGROUP_V1] = "v1",
		[CGROUP_V2] = "v2",
		[CGROUP_SCOPE] = "scope",
	};

	return names[kind];
}

enum cgroup_kind cgroup_kind(const struct cgroup *g)
{
	return g ? g->kind : CGROUP_NONE;
}

int cgroup_clone_fd(const struct cgroup *g)
{
	return g && g->n_dirs > 0 && g->dirs[0].entry < 0 ? g->dirs[0].fd : -1;
}

int cgroup_join(const struct cgroup *g, struct err *err)
{
	for (size_t i = 0; i < g->n_dirs; i++) {
		if (g->dirs[i].entry >= 0 && write(g->dirs[i].entry, "0", 1) < 0)
			return err_sys(err, "entering the cgroups of the run");
	}
	return 0;
}

void cgroup_use(const struct cgroup *g, struct cgroup_use *ret)
{
	*ret = (struct cgroup_use){ 0 };
	for (size_t i = 0; i < g->n_dirs; i++)
		g->manager->use(&g->dirs[i], ret);
}
