/*
 * cgroup-linux.c - find where the caller is, make groups below, remove them.
 *
 * /proc/self/cgroup names the caller's group in each hierarchy, /proc/self/mountinfo where
 * the hierarchies are.  Version 2 is taken if it has the controllers, else version 1; on many
 * systems both are mounted and each controller is bound to one of them.
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
#include "runner/cgroup-place.h"

#define NAME_MAX_LEN 96
#define REMOVE_TRIES 200 /* of 1 ms, then more: what was killed takes a moment to be gone */

struct cgroup {
	const struct cgroup_manager *manager;
	char name[NAME_MAX_LEN];
	struct cgroup_dir dirs[CGROUP_DIRS_MAX];
	size_t n_dirs;
};

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

/* When a process of this pid began, in ticks since boot; 0 if there is none. */
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
	for (int field = 2; end && field < 22; field++)
		end = strchr(end + 1, ' ');
	return end ? strtoull(end + 1, NULL, 10) : 0;
}

static unsigned long long pid_namespace(void)
{
	struct stat st;

	return stat("/proc/self/ns/pid", &st) < 0 ? 0 : (unsigned long long)st.st_ino;
}

static void make_name(char name[NAME_MAX_LEN])
{
	static unsigned int count;

	snprintf(name, NAME_MAX_LEN, "snap-run-%llu-%d-%llu-%u", pid_namespace(), (int)getpid(),
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

/* What others of us that were killed could not remove.  A group with processes in it stays. */
static void sweep(int parent)
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
			unlinkat(parent, e->d_name, AT_REMOVEDIR);
	}
	closedir(dir);
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
		remove_group(g->dirs[i].parent, g->name);
		close(g->dirs[i].parent);
	}
	free(g);
}
DEFINE_CLEANUP(struct cgroup *, cgroup_close)

/* A group of ours in the hierarchy of this place; takes `parent`. */
static int add_dir(struct cgroup *g, int parent, unsigned int serves, struct err *why)
{
	AUTO_CLOSE int own = parent, fd = -1, entry = -1;
	const char *door = g->manager->entry;

	if (mkdirat(parent, g->name, 0755) < 0)
		return err_sys(why, "making a cgroup below that of the caller");
	fd = openat(parent, g->name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0 && door)
		entry = openat(fd, door, O_WRONLY | O_CLOEXEC);
	if (fd < 0 || (door && entry < 0)) {
		int r = err_sys(why, "opening a cgroup that was made");

		unlinkat(parent, g->name, AT_REMOVEDIR);
		return r;
	}
	g->dirs[g->n_dirs++] = (struct cgroup_dir){
		.parent = TAKE_FD(own),
		.fd = TAKE_FD(fd),
		.entry = TAKE_FD(entry),
		.serves = serves,
	};
	return 0;
}

struct search {
	struct cgroup *g;
	const struct cgroup_limits *limits;
	unsigned int wanted, held;
	struct err *why;
};

/* One hierarchy that the caller is in: use it, if it has what is still wanted. */
static int visit(const struct cgroup_place *place, void *ctx)
{
	struct search *s = ctx;
	int parent, offers;
	unsigned int serves;

	if (s->g->n_dirs == CGROUP_DIRS_MAX)
		return 0;
	parent = open(place->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (parent < 0) {
		IGNORE_RESULT(err_sys(s->why, "opening the cgroup '%s'", place->path),
			      "it says why the limit does not hold");
		return 0;
	}
	offers = s->g->manager->offers(parent, place->controllers, s->why);
	/* Also where nothing is wanted this time: what is left there was wanted once. */
	if (offers > 0)
		sweep(parent);
	serves = offers > 0 ? (unsigned int)offers & s->wanted & ~s->held : 0;
	if (serves == 0) {
		close(parent);
		return 0;
	}
	if (add_dir(s->g, parent, serves, s->why) < 0)
		return 0;
	if (s->g->manager->apply(&s->g->dirs[s->g->n_dirs - 1], s->limits, s->why) == 0)
		s->held |= serves;
	return 0;
}

static unsigned int wanted_bits(const struct cgroup_limits *l)
{
	return (l->mem > 0 ? CGROUP_MEMORY : 0) | (l->pids > 0 ? CGROUP_PIDS : 0) |
	       (l->cpus_milli > 0 ? CGROUP_CPU : 0) | (l->count_cpu ? CGROUP_CPUACCT : 0);
}

int cgroup_open(const struct cgroup_limits *limits, struct cgroup **ret, struct err *why)
{
	static const struct cgroup_manager *const managers[] = { &cgroup_v2, &cgroup_v1 };
	CLEANUP(cgroup_map_done) struct cgroup_map map = { BUF_INIT, BUF_INIT };
	char name[NAME_MAX_LEN];
	int r = cgroup_map_read(&map);

	*ret = NULL;
	if (r < 0)
		return err_wrap(why, r, "looking for the cgroups of the caller");
	make_name(name);
	for (size_t i = 0; i < ARRAY_LEN(managers); i++) {
		CLEANUP(cgroup_close_p) struct cgroup *g = calloc(1, sizeof(*g));
		struct search s = {
			.g = g,
			.limits = limits,
			.wanted = wanted_bits(limits),
			.why = why,
		};

		if (!g)
			return err_nomem(why);
		g->manager = managers[i];
		memcpy(g->name, name, sizeof(name));
		r = cgroup_each_place(&map, managers[i] == &cgroup_v2, visit, &s);
		if (r < 0)
			return err_wrap(why, r, "looking for the cgroups of the caller");
		if (s.held != 0) {
			*ret = TAKE_PTR(g);
			return (int)s.held;
		}
	}
	return 0;
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
