/*
 * cgroup-find-linux.c - where the groups of a run can come from, here and for this caller.
 *
 * /proc/self/cgroup names the caller's group in each hierarchy, /proc/self/mountinfo the places of
 * the hierarchies. Version 2 counts if the controllers are there, else version 1; on many systems
 * both are mounted and each controller is bound to one of them. With version 2, in this order:
 * beside a leaf, in a container whose root group is ours; a scope from systemd; below the root of
 * the hierarchy, if the caller is in it and it passes controllers on.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "runner/cgroup-i.h"
#include "runner/cgroup-place.h"
#include "runner/scope.h"

DEFINE_CLEANUP(struct cgroup *, cgroup_close)

struct search {
	struct cgroup *g;
	bool look; /* and neither write nor ask */
	bool v2;   /* the controllers are there */
	struct err *why;
};

static int open_group(const char *path, struct err *why)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 ? err_sys(why, "opening the cgroup '%s'", path) : fd;
}

/* Takes `parent`. */
static void use_group(struct search *s, int parent, unsigned int offers)
{
	AUTO_CLOSE int own = parent;
	const unsigned int serves = offers & s->g->wanted & ~s->g->held;
	struct err why = { 0 };

	if (s->look) {
		if (faccessat(parent, ".", W_OK, AT_EACCESS) == 0)
			s->g->held |= serves;
		else
			IGNORE_RESULT(err_sys(s->why, "writing the cgroup of the caller"),
				      "it says why the limit does not hold");
		return;
	}
	/* Also where nothing is wanted this time: what is left there was wanted once. */
	cgroup_sweep(parent);
	if (serves != 0 && s->g->n_dirs < CGROUP_DIRS_MAX &&
	    cgroup_add(s->g, TAKE_FD(own), serves, &why) < 0)
		*s->why = why;
}

static int visit_v1(const struct cgroup_place *place, void *ctx)
{
	struct search *s = ctx;
	int parent = open_group(place->path, s->why);
	unsigned int offers;

	if (parent < 0)
		return 0;
	offers = cgroup_v1.offers(parent, place->controllers);
	if (offers == 0)
		close(parent);
	else
		use_group(s, parent, offers);
	return 0;
}

/* --- version 2 ----------------------------------------------------------------------------- */

/*
 * The group to make one in, in a container that is ours: its root, once all processes of it are in
 * a leaf.  -ENOENT: this is no such container.
 */
static int open_container(struct search *s, const struct cgroup_place *place, struct err *why)
{
	AUTO_CLOSE int top = open_group(place->top, why);
	int r;

	if (top < 0)
		return top;
	if (cgroup_v2_is_root(top))
		return -ENOENT;
	if (strcmp(place->group, "/") == 0) {
		r = cgroup_v2_is_ours(top, why);
		if (r == 0 && !s->look)
			r = cgroup_v2_clear(top, why);
		return r < 0 ? r : TAKE_FD(top);
	}
	/* We are in a leaf, by an earlier run or an init that does the same. */
	if (strchr(place->group + 1, '/') || cgroup_v2_has_processes(top) ||
	    access("/run/systemd/system", F_OK) == 0)
		return -ENOENT;
	return TAKE_FD(top);
}

/* What a container's root passes on, or will when it is cleared. */
static unsigned int container_offers(const struct search *s, int top)
{
	return s->look ? cgroup_v2_has(top) | CGROUP_CPUACCT : cgroup_v2.offers(top, "");
}

/* Which controllers a manager can give: its own group's. */
static unsigned int manager_has(struct cgroup_map *map, pid_t manager)
{
	CLEANUP(buf_done) struct buf groups = BUF_INIT, path = BUF_INIT;
	AUTO_CLOSE int fd = -1;
	char *group, *leaf;

	if (cgroup_groups_of(manager, &groups) < 0 || !buf_str(&groups))
		return 0;
	group = strstr((char *)groups.data, "0::/");
	if (!group)
		return 0;
	group += 3;
	group[strcspn(group, "\n")] = '\0';
	/* It gives from the group that was delegated to it, and lies in a leaf of that itself. */
	leaf = strrchr(group, '/');
	if (strcmp(leaf, "/init.scope") == 0)
		*leaf = '\0';
	if (cgroup_locate(buf_str(&map->mounts), "", *group ? group : "/", &path, NULL) < 0 ||
	    !buf_str(&path))
		return 0;
	fd = open(buf_str(&path), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? 0 : cgroup_v2_has(fd);
}

static void look_at_manager(struct search *s, struct cgroup_map *map)
{
	const unsigned int has = manager_has(map, scope_manager_pid(s->g->scope)) | CGROUP_CPUACCT;

	s->g->held = s->g->wanted & has;
	if ((s->g->wanted & ~has) == 0)
		return;
	cgroup_v2_lacks((s->g->wanted & ~has & CGROUP_MEMORY) ? "memory"
			: (s->g->wanted & ~has & CGROUP_PIDS) ? "pids"
							      : "cpu",
			s->why);
}

struct at_v2 {
	struct search *s;
	struct cgroup_map *map;
};

static int visit_v2(const struct cgroup_place *place, void *ctx)
{
	struct at_v2 *at = ctx;
	struct search *s = at->s;
	struct cgroup *g = s->g;
	struct err why = { 0 };
	AUTO_CLOSE int top = open_group(place->top, s->why);
	uint64_t begun;
	int parent;

	if (top < 0 || (cgroup_v2_has(top) & (CGROUP_MEMORY | CGROUP_PIDS | CGROUP_CPU)) == 0)
		return 0;
	s->v2 = true;
	g->manager = &cgroup_v2;
	parent = open_container(s, place, &why);
	if (parent >= 0) {
		g->kind = CGROUP_V2;
		use_group(s, parent, container_offers(s, parent));
		return 0;
	}
	if (parent != -ENOENT)
		*s->why = why;
	begun = clock_us();
	if (scope_open(NULL, &g->scope, &why) == 0) {
		g->spent = clock_us() - begun;
		g->kind = CGROUP_SCOPE;
		snprintf(g->name + strlen(g->name), sizeof(g->name) - strlen(g->name), "%s",
			 CGROUP_SUFFIX);
		if (s->look)
			look_at_manager(s, at->map);
		return 0;
	}
	if (parent == -ENOENT)
		*s->why = why;
	if (strcmp(place->group, "/") == 0 && cgroup_v2_is_root(top)) {
		const unsigned int offers = cgroup_v2.offers(top, "");

		g->kind = CGROUP_V2;
		use_group(s, TAKE_FD(top), offers);
	}
	return 0;
}

/* --- both ---------------------------------------------------------------------------------- */

static int find_cgroup(const struct cgroup_limits *limits, bool look, struct cgroup **ret,
		       struct err *why)
{
	CLEANUP(cgroup_map_done) struct cgroup_map map = { BUF_INIT, BUF_INIT };
	CLEANUP(cgroup_close_p) struct cgroup *g = calloc(1, sizeof(*g));
	struct err unused = { 0 };
	struct search s = { .g = g, .look = look, .why = why ? why : &unused };
	struct at_v2 at = { .s = &s, .map = &map };
	int r;

	*ret = NULL;
	if (!g)
		return err_nomem(why);
	g->limits = *limits;
	g->wanted = cgroup_wanted(limits);
	if (g->wanted == 0)
		return 0;
	r = cgroup_map_read(&map);
	if (r == 0) {
		cgroup_make_name(g->name);
		r = cgroup_each_place(&map, true, visit_v2, &at);
	}
	if (r == 0 && !s.v2) {
		g->manager = &cgroup_v1;
		g->kind = CGROUP_V1;
		r = cgroup_each_place(&map, false, visit_v1, &s);
	}
	if (r < 0)
		return err_wrap(why, r, "looking for the cgroups of the caller");
	if (g->held == 0 && !g->scope)
		return 0;
	*ret = TAKE_PTR(g);
	return 0;
}

int cgroup_open(const struct cgroup_limits *limits, struct cgroup **ret, struct err *why)
{
	return find_cgroup(limits, false, ret, why);
}

unsigned int cgroup_look(const struct cgroup_limits *limits, enum cgroup_kind *ret, struct err *why)
{
	CLEANUP(cgroup_close_p) struct cgroup *g = NULL;
	int r = find_cgroup(limits, true, &g, why);

	*ret = r < 0 || !g || g->held == 0 ? CGROUP_NONE : g->kind;
	return r < 0 || !g ? 0 : g->held;
}

/* --- the scope ----------------------------------------------------------------------------- */

void cgroup_ask(struct cgroup *g, pid_t pid)
{
	const struct scope_request request = {
		.name = g->name,
		.description = "a run of snapcow",
		.pid = pid,
		.mem = g->limits.mem,
		.pids = g->limits.pids,
		.cpus_milli = g->limits.cpus_milli,
		/* Every run gets as much, however many processes it has. */
		.weight = SCOPE_WEIGHT,
	};

	g->pid = pid;
	g->asked = clock_us();
	if (g->scope && scope_ask(g->scope, &request, &g->why) < 0) {
		scope_close(g->scope);
		g->scope = NULL;
	}
	g->spent += clock_us() - g->asked;
}

void cgroup_nudge(struct cgroup *g)
{
	const uint64_t begun = clock_us();

	if (g->scope)
		scope_nudge(g->scope);
	g->spent += clock_us() - begun;
}

void cgroup_await(struct cgroup *g)
{
	struct err ignored = { 0 };

	if (g->scope && g->pid > 0)
		IGNORE_RESULT(scope_wait(g->scope, &ignored), "the run has failed already");
}

static void stop_orphan(int parent, const char *name, void *ctx)
{
	AUTO_CLOSE int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	/* In a group below it, too: "populated" counts those. */
	if (fd >= 0 && !cgroup_v2_has_processes(fd) &&
	    cgroup_read_key(fd, "cgroup.events", "populated") == 0)
		scope_stop(ctx, name);
}

void cgroup_sweep_scopes(int parent, struct scope *manager)
{
	cgroup_each_orphan(parent, stop_orphan, manager);
}

/* The group that the process is in by now, which must be the one that was asked for. */
static int enter_scope(struct cgroup *g, struct err *why)
{
	CLEANUP(cgroup_map_done) struct cgroup_map map = { BUF_INIT, BUF_INIT };
	CLEANUP(buf_done) struct buf groups = BUF_INIT, path = BUF_INIT;
	AUTO_CLOSE int fd = -1, parent = -1;
	char *group, *last;
	int r = cgroup_map_read(&map);

	if (r == 0)
		r = cgroup_groups_of(g->pid, &groups);
	if (r < 0 || !buf_str(&groups) || !buf_str(&map.mounts))
		return err_wrap(why, r < 0 ? r : -ENOMEM, "reading the cgroup of the run");
	group = strstr((char *)groups.data, "0::/");
	if (!group)
		return err_set(why, -EXDEV, "the run is in no cgroup of version 2");
	group += 3;
	group[strcspn(group, "\n")] = '\0';
	last = strrchr(group, '/');
	if (strcmp(last + 1, g->name) != 0)
		return err_set(why, -EXDEV,
			       "systemd says that the run is in its scope, and it is in '%s'",
			       group);
	*last = '\0';
	r = cgroup_locate(buf_str(&map.mounts), "", *group ? group : "/", &path, NULL);
	if (r < 0 || !buf_str(&path))
		return err_set(why, -ENOENT, "the cgroup '%s' cannot be seen here", group);
	parent = open_group(buf_str(&path), why);
	if (parent < 0)
		return parent;
	cgroup_sweep_scopes(parent, g->scope);
	fd = openat(parent, g->name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return err_sys(why, "opening the cgroup '%s'", g->name);
	r = g->manager->check(fd, why);
	if (r < 0)
		return r;
	g->held = cgroup_v2_holds(fd, &g->limits, g->wanted, why);
	g->dirs[g->n_dirs++] = (struct cgroup_dir){ TAKE_FD(parent), TAKE_FD(fd), -1, g->held };
	return 0;
}

unsigned int cgroup_settle(struct cgroup *g, struct err *why)
{
	const uint64_t begun = clock_us();

	if (g->kind != CGROUP_SCOPE)
		return g->held;
	if (g->scope && scope_wait(g->scope, &g->why) == 0)
		IGNORE_RESULT(enter_scope(g, &g->why), "it says what is not held");
	scope_close(g->scope);
	g->scope = NULL;
	if (g->why.code == 0)
		log_debug("the scope of the run was ready within %.1f ms; the run spent %.1f ms on "
			  "asking systemd and waiting for it",
			  (double)(clock_us() - g->asked) / 1000,
			  (double)(g->spent + clock_us() - begun) / 1000);
	if (g->why.code < 0 && why)
		*why = g->why;
	return g->held;
}
