/*
 * spec.c - what a spec may say.  Portable, and touches nothing.
 */
#include "runner/sandbox.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/path.h"

#define FILTER_MAX (4096 * 8) /* BPF_MAXINSNS of the kernel */
#define LIMIT_MAX  (UINT64_MAX >> 18)
#define ID_MAX     65536 /* ids inside are below this: so many are mapped for root */

static const char *const names[] = {
	[WALL_USER] = "user",         [WALL_MOUNT] = "mount",     [WALL_PID] = "pid",
	[WALL_NET] = "net",           [WALL_IPC] = "ipc",         [WALL_UTS] = "uts",
	[WALL_CGROUPNS] = "cgroupns", [WALL_GROUPS] = "groups",   [WALL_IDMAP] = "idmap",
	[WALL_CAPS] = "caps",         [WALL_SECCOMP] = "seccomp", [WALL_LANDLOCK] = "landlock",
	[WALL_RLIMITS] = "rlimits",   [WALL_MEMORY] = "memory",   [WALL_PIDS] = "pids",
	[WALL_CPU] = "cpu",
};
_Static_assert(ARRAY_LEN(names) == SANDBOX_N_WALLS, "name every wall");

const char *sandbox_wall_name(enum sandbox_wall w)
{
	return names[w];
}

int sandbox_wall_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		if (strcmp(names[i], name) == 0)
			return (int)i;
	}
	return -1;
}

void sandbox_spec_init(struct sandbox_spec *spec)
{
	*spec = (struct sandbox_spec){
		.cwd = "/",
		.hostname = "snap",
		.uid = geteuid(),
		.gid = getegid(),
		.in_fd = -1,
	};
}

/* Absolute and as path_clean() leaves it, by looking at it only. */
static bool is_clean(const char *path)
{
	const char *name = path;

	if (*name != '/')
		return false;
	if (name[1] == '\0')
		return true;
	while (*name == '/') {
		size_t len = strcspn(name + 1, "/");

		if (!path_name_valid(name + 1, len))
			return false;
		name += 1 + len;
	}
	return true;
}

static int check_words(const char *what, const char *const *words, struct err *err)
{
	size_t n = 0;

	if (!words)
		return err_set(err, -EINVAL, "the run has no %s", what);
	while (words[n]) {
		if (++n > SANDBOX_WORDS_MAX)
			return err_set(err, -EINVAL, "the %s has more than %d words", what,
				       SANDBOX_WORDS_MAX);
	}
	return 0;
}

static int check_mount(const struct sandbox_mount *m, struct err *err)
{
	if (!m->guest || !is_clean(m->guest))
		return err_set(err, -EINVAL, "'%s' is not an absolute, clean path to mount at",
			       m->guest ? m->guest : "");
	if (strcmp(m->guest, "/") == 0)
		return err_set(err, -EINVAL, "nothing can be mounted at '/' of a run");
	if (path_is_below(m->guest, "/proc") || path_is_below(m->guest, "/dev") ||
	    path_is_below(m->guest, "/sys"))
		return err_set(err, -EINVAL, "'%s' of a run is not for mounts of others", m->guest);
	if (m->kind == SANDBOX_BIND && (!m->host || !is_clean(m->host)))
		return err_set(err, -EINVAL, "'%s' is not an absolute, clean path to mount",
			       m->host ? m->host : "");
	if (m->kind == SANDBOX_LINK && (!m->host || !*m->host))
		return err_set(err, -EINVAL, "the symlink '%s' of a run says nothing", m->guest);
	if (m->kind == SANDBOX_TEXT && !m->host)
		return err_set(err, -EINVAL, "the file '%s' of a run has no text", m->guest);
	return 0;
}

static int check_walls(const struct sandbox_spec *spec, struct err *err)
{
	uint32_t wrong = spec->may_miss & ~(uint32_t)SANDBOX_MAY_MISS;

	if (wrong >> SANDBOX_N_WALLS)
		return err_set(err, -EINVAL, "there is no such wall as number %d",
			       __builtin_ctz(wrong >> SANDBOX_N_WALLS) + SANDBOX_N_WALLS);
	if (wrong)
		return err_set(err, -EINVAL, "there is no sandbox without the wall '%s'",
			       names[__builtin_ctz(wrong)]);
	return 0;
}

/* What is multiplied or added to later must leave room for it. */
static int check_limits(const struct sandbox_limits *l, struct err *err)
{
	const uint64_t all[] = { l->mem,    l->cpus_milli, l->pids,   l->wall_ms, l->grace_ms,
				 l->cpu_ms, l->fsize,      l->nofile, l->output,  l->tmp };

	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		if (all[i] > LIMIT_MAX)
			return err_set(err, -EINVAL, "%llu is more than any limit of a run can be",
				       (unsigned long long)all[i]);
	}
	return 0;
}

int sandbox_spec_check(const struct sandbox_spec *spec, struct err *err)
{
	int r = check_words("command", spec->argv, err);

	if (r == 0)
		r = check_words("environment", spec->env, err);
	if (r == 0)
		r = check_walls(spec, err);
	if (r == 0)
		r = check_limits(&spec->limits, err);
	if (r < 0)
		return r;

	if (!spec->argv[0] || !*spec->argv[0])
		return err_set(err, -EINVAL, "the run has no command");
	if (!spec->cwd || !is_clean(spec->cwd))
		return err_set(err, -EINVAL, "'%s' is not an absolute, clean path to work in",
			       spec->cwd ? spec->cwd : "");
	if (!spec->hostname || strlen(spec->hostname) > 64 || !*spec->hostname)
		return err_set(err, -EINVAL, "the host name of a run has 1 to 64 bytes");
	if (spec->uid >= ID_MAX && spec->uid != geteuid())
		return err_set(err, -EINVAL, "a run cannot be user %u", spec->uid);
	if (spec->gid >= ID_MAX && spec->gid != getegid())
		return err_set(err, -EINVAL, "a run cannot have group %u", spec->gid);
	if (spec->filter &&
	    (spec->filter_len % 8 != 0 || spec->filter_len == 0 || spec->filter_len > FILTER_MAX))
		return err_set(err, -EINVAL, "no filter has %zu bytes", spec->filter_len);
	if (spec->n_helpers > SANDBOX_HELPERS_MAX || spec->n_beside > SANDBOX_BESIDE_MAX)
		return err_set(err, -EINVAL, "a run has no more than %d helpers",
			       SANDBOX_HELPERS_MAX);
	if (spec->n_mounts > SANDBOX_MOUNTS_MAX)
		return err_set(err, -EINVAL, "%zu mounts are more than a run can have",
			       spec->n_mounts);
	for (size_t i = 0; i < spec->n_mounts; i++) {
		r = check_mount(&spec->mounts[i], err);
		if (r < 0)
			return r;
	}
	return 0;
}
