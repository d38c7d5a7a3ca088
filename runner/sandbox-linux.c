/*
 * sandbox-linux.c - the sequence, top to bottom, nothing else.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "runner/sandbox-i.h"

static void run_init(struct run *run, const struct sandbox_spec *spec)
{
	*run = (struct run){
		.own = *spec,
		.privileged = ids_are_all_mapped(),
		.init_fd = -1,
		.listener = -1,
		.line = -1,
		.far_line = -1,
		.userns = -1,
		.clerk = { .line = -1 },
		.root = -1,
		.scratch = -1,
		.clone = -1,
		.proc = -1,
		.empty_dir = -1,
		.empty_file = -1,
		.our = { -1, -1, -1 },
		.their = { -1, -1, -1 },
	};
	run->spec = &run->own;
	if (spec->root)
		run->ids = sandbox_root_ids(NULL);
	for (size_t i = 0; i < SANDBOX_MOUNTS_MAX; i++)
		run->trees[i] = -1;
}

static void close_trees(struct run *run)
{
	for (size_t i = 0; i < SANDBOX_MOUNTS_MAX; i++)
		cleanup_close(&run->trees[i]);
}

static void run_done(struct run *run)
{
	if (run->init > 0) {
		if (run->cgroup)
			cgroup_await(run->cgroup);
		kill(run->init, SIGKILL);
		while (waitpid(run->init, NULL, __WALL) < 0 && errno == EINTR)
			;
	}
	clerk_end(&run->clerk);
	cgroup_close(run->cgroup);
	close_trees(run);
	cleanup_close(&run->clone);
	for (int i = 0; i < 3; i++) {
		cleanup_close(&run->our[i]);
		cleanup_close(&run->their[i]);
	}
	room_free(run->room);
	cleanup_close(&run->userns);
	cleanup_close(&run->init_fd);
	cleanup_close(&run->line);
	cleanup_close(&run->far_line);
}

/* Pipes whose ends for the run are all above 2, so that none is in the way of another. */
static int open_pipe(int *ret_read, int *ret_write, struct err *err)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_sys(err, "making the pipes of the run");
	if (ends[0] > 2 && ends[1] > 2) {
		*ret_read = ends[0];
		*ret_write = ends[1];
		return 0;
	}
	*ret_read = fcntl(ends[0], F_DUPFD_CLOEXEC, 3);
	*ret_write = fcntl(ends[1], F_DUPFD_CLOEXEC, 3);
	close(ends[0]);
	close(ends[1]);
	if (*ret_read < 0 || *ret_write < 0)
		return err_sys(err, "making the pipes of the run");
	return 0;
}

/* A pipe that the run owns, so that it can open /dev/stdout, which is its pipe by name. */
static int give_pipe(const struct run *run, int fd, struct err *err)
{
	if (run->privileged &&
	    fchown(fd, ns_outside(run->spec->uid), ns_outside(run->spec->gid)) < 0)
		return err_sys(err, "giving the run its pipes");
	return 0;
}

static int open_channels(struct run *run, struct err *err)
{
	int ends[2], r = 0;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return err_sys(err, "making the line to the run");
	run->line = ends[0];
	run->far_line = ends[1];
	if (run->spec->tty)
		return 0;
	if (run->spec->in_fd >= 0)
		r = open_pipe(&run->their[0], &run->our[0], err);
	if (r == 0)
		r = open_pipe(&run->our[1], &run->their[1], err);
	if (r == 0)
		r = open_pipe(&run->our[2], &run->their[2], err);
	for (int i = 0; r == 0 && i < 3; i++)
		r = run->their[i] < 0 ? 0 : give_pipe(run, run->their[i], err);
	return r;
}

static const char *why_or_default(const struct err *why)
{
	return why->msg[0] ? why->msg : "no cgroup can be made";
}

/* A limit asked for by name that nothing holds is an error, unless the spec allows that. */
static int demand(const struct run *run, enum sandbox_wall wall, bool held, const char *asked,
		  const struct err *why, struct err *err)
{
	if (held || (run->spec->may_miss & WALL_BIT(wall)))
		return 0;
	return err_set(err, -ENOTSUP,
		       "the %s of the run cannot be limited here: %s; --allow-missing %s runs "
		       "without it",
		       asked, why_or_default(why), sandbox_wall_name(wall));
}

static bool counts_users_apart(const struct run *run)
{
	return run->spec->root && run->ids != SANDBOX_IDS_ONE;
}

/* What the groups hold, once that is known, against what was asked for. */
static int judge_groups(struct run *run, unsigned int held, const struct err *why, struct err *err)
{
	const struct sandbox_limits *l = &run->spec->limits;
	int r = 0;

	if (l->mem > 0 && !l->mem_is_default)
		r = demand(run, WALL_MEMORY, held & CGROUP_MEMORY, "memory", why, err);
	if (r == 0 && l->cpus_milli > 0)
		r = demand(run, WALL_CPU, held & CGROUP_CPU, "share of the processors", why, err);
	/* RLIMIT_NPROC counts each user apart, and this run has many. */
	if (r == 0 && l->pids > 0 && counts_users_apart(run))
		r = demand(run, WALL_PIDS, held & CGROUP_PIDS, "number of processes", why, err);
	if (r < 0)
		return r;

	run->held = held;
	if (held & CGROUP_MEMORY)
		run->walls |= WALL_BIT(WALL_MEMORY);
	if (held & CGROUP_CPU)
		run->walls |= WALL_BIT(WALL_CPU);
	/* Without a group RLIMIT_NPROC counts for the user namespace, which is the run. */
	if (l->pids > 0 && ((held & CGROUP_PIDS) || !counts_users_apart(run)))
		run->walls |= WALL_BIT(WALL_PIDS);
	else if (l->pids > 0)
		run->missing |= WALL_BIT(WALL_PIDS);
	if (l->mem > 0 && !(held & CGROUP_MEMORY))
		run->missing |= WALL_BIT(WALL_MEMORY);
	if (l->cpus_milli > 0 && !(held & CGROUP_CPU))
		run->missing |= WALL_BIT(WALL_CPU);
	if (run->missing)
		err_set(&run->unbounded, -ENOTSUP, "%s", why_or_default(why));
	return 0;
}

/* Groups that can be had at once are; of those that systemd makes, nothing is known yet. */
static int bound_by_groups(struct run *run, struct err *err)
{
	const struct sandbox_limits *l = &run->spec->limits;
	const struct cgroup_limits limits = {
		.mem = l->mem,
		.pids = l->pids,
		.cpus_milli = l->cpus_milli,
		.count_cpu = l->cpu_ms > 0,
	};
	struct err why = { 0 };
	int r;

	if (limits.mem == 0 && limits.pids == 0 && limits.cpus_milli == 0 && !limits.count_cpu)
		return 0;
	r = cgroup_open(&limits, &run->cgroup, &why);
	if (r < 0)
		return err_wrap(err, r, "%s", why.msg);
	if (cgroup_kind(run->cgroup) == CGROUP_SCOPE)
		return 0;
	return judge_groups(run, run->cgroup ? cgroup_settle(run->cgroup, &why) : 0, &why, err);
}

/* The init is in its scope, or systemd has said why not. */
static int settle_scope(struct run *run, struct err *err)
{
	struct err why = { 0 };

	if (cgroup_kind(run->cgroup) != CGROUP_SCOPE)
		return 0;
	return judge_groups(run, cgroup_settle(run->cgroup, &why), &why, err);
}

/* An unprivileged init opens every mount itself, so the view must exist before the clone. */
static bool looks_early(const struct run *run)
{
	return run->spec->view && !run->privileged;
}

/* What the caller knows by now. */
static int load_view(struct run *run, struct err *err)
{
	struct sandbox_view view = { 0 };
	int r = run->spec->view(run->spec->view_ctx, &view, err);

	for (size_t i = 0; r >= 0 && run->init > 0 && i < view.n_mounts; i++) {
		const struct sandbox_mount *m = &view.mounts[i];

		if (m->kind == SANDBOX_BIND && m->host_fd >= 0 && !m->owned)
			r = err_set(err, -EINVAL, "'%s' cannot be compared by the run's init",
				    m->host);
	}
	if (r < 0)
		return r;
	r = room_fill(run->room, &run->own, &view, err);
	if (r < 0)
		return r;
	room_show(run->room, &run->own);
	return sandbox_spec_check(&run->own, err);
}

/* Outside, with an init that waits. */
static int attend(struct run *run, struct sandbox_result *ret, struct err *err)
{
	int r;

	/* First of all: systemd is at work on it meanwhile. */
	if (run->cgroup)
		cgroup_ask(run->cgroup, run->init);
	r = ns_map_ids(run, err);
	if (r == 0)
		r = idmap_open(run, err);
	if (r == 0)
		r = line_say_ids(run, err);
	if (r == 0 && run->cgroup)
		cgroup_nudge(run->cgroup);
	if (r == 0 && run->spec->view && !looks_early(run))
		r = load_view(run, err);
	if (r == 0)
		r = root_open(run, err);
	if (r == 0)
		r = idmap_trees(run, err);
	if (r == 0)
		r = settle_scope(run, err);
	return r < 0 ? r : watch_run(run, ret, err);
}

int sandbox_run(const struct sandbox_spec *spec, struct sandbox_result *ret, struct err *err)
{
	CLEANUP(run_done) struct run run;
	int r;

	run_init(&run, spec);
	*ret = (struct sandbox_result){ .cgroup = cgroup_kind_name(CGROUP_NONE), .ids = run.ids };
	r = sandbox_spec_check(spec, err);
	if (r == 0)
		r = open_channels(&run, err);
	if (r == 0)
		r = bound_by_groups(&run, err);
	if (r == 0 && spec->view)
		r = room_new(&run.room, err);
	if (r == 0 && looks_early(&run))
		r = load_view(&run, err);
	if (r < 0)
		return r;

	r = ns_clone(&run, err);
	if (r < 0)
		return r;
	if (r == 0) {
		/* From here on this is the init: it keeps its end of the line, and never returns. */
		close(run.line);
		run.line = TAKE_FD(run.far_line);
		init_main(&run);
	}
	close(TAKE_FD(run.far_line));
	for (int i = 0; i < 3; i++) {
		int fd = TAKE_FD(run.their[i]);

		cleanup_close(&fd);
	}
	return attend(&run, ret, err);
}
