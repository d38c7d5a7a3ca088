#include "engine/run-plan.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/fdio.h"
#include "base/path.h"

#define DEFAULT_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
#define SECRET_MAX   65536
#define FRESH_MAX \
	((uint64_t)1 << 30) /* bytes of all that ends with the run, where memory has no limit */

extern char **environ;

void run_plan_done(struct run_plan *p)
{
	layout_free(p->layout);
	for (size_t i = 0; i < p->env.n; i++)
		free(p->env.list[i]);
	free(p->env.list);
	free(p->cwd);
	free(p->home);
	scrub_done(&p->secrets);
	cleanup_close(&p->clone_fd);
	*p = RUN_PLAN_INIT;
}

void engine_run_limits_init(struct engine_run_limits *l)
{
	*l = (struct engine_run_limits){
		.mem = (uint64_t)1 << 30,
		.pids = 512,
		.time_ms = 600000,
		.disk = (uint64_t)4 << 30,
		.nofile = 4096,
		.output = (uint64_t)1 << 30,
	};
}

/* --- environment ------------------------------------------------------------------------ */

/* What of the caller's environment says how to talk to it, and not what it knows. */
static const char *const passed[] = { "COLORTERM", "HOME",     "LANG", "LANGUAGE",
				      "LOGNAME",   "NO_COLOR", "PATH", "SHELL",
				      "TERM",      "TZ",       "USER" };

static bool is_passed(const char *entry)
{
	const size_t len = strcspn(entry, "=");

	if (strncmp(entry, "LC_", 3) == 0)
		return true;
	for (size_t i = 0; i < ARRAY_LEN(passed); i++)
		if (strlen(passed[i]) == len && strncmp(passed[i], entry, len) == 0)
			return true;
	return false;
}

/* The last of a name counts. */
static int env_set(struct run_plan *p, const char *name, size_t len, const char *value,
		   struct err *err)
{
	char **list, *entry;
	size_t i = 0;

	if (asprintf(&entry, "%.*s=%s", (int)len, name, value) < 0)
		return err_nomem(err);
	while (i < p->env.n && strncmp(p->env.list[i], entry, len + 1) != 0)
		i++;
	list = i < p->env.n ? p->env.list : reallocarray(p->env.list, p->env.n + 2, sizeof(*list));
	if (!list) {
		free(entry);
		return err_nomem(err);
	}
	p->env.list = list;
	if (i < p->env.n) {
		free(list[i]);
	} else {
		p->env.n++;
		list[p->env.n] = NULL;
	}
	list[i] = entry;
	return 0;
}

static int check_name(const char *option, const char *given, size_t len, struct err *err)
{
	if (len == 0 || len > 4096)
		return err_set(err, -EINVAL, "option '--%s': '%s' has no name of a variable",
			       option, given);
	return 0;
}

static int add_given(struct run_plan *p, const char *given, struct err *err)
{
	const size_t len = strcspn(given, "=");
	int r = check_name("env", given, len, err);

	if (r >= 0 && given[len] != '=')
		r = err_set(err, -EINVAL, "option '--env': '%s' is not NAME=VALUE", given);
	return r < 0 ? r : env_set(p, given, len, given + len + 1, err);
}

static int add_passed(struct run_plan *p, const char *name, struct err *err)
{
	const char *value = getenv(name);
	int r = check_name("pass-env", name, strcspn(name, "="), err);

	if (r >= 0 && strchr(name, '='))
		r = err_set(err, -EINVAL, "option '--pass-env': '%s' is not a name", name);
	return r < 0 || !value ? r : env_set(p, name, strlen(name), value, err);
}

/* A line feed at the end of a file is none of the secret's. */
static int read_secret(const char *path, struct buf *value, struct err *err)
{
	int r = fdio_read_file(AT_FDCWD, path, SECRET_MAX, value, err);

	if (r < 0)
		return err_wrap(err, r, "option '--secret'");
	if (value->len > 0 && value->data[value->len - 1] == '\n')
		value->len--;
	if (value->len > 0 && memchr(value->data, '\0', value->len))
		return err_set(err, -EINVAL, "option '--secret': '%s' has a NUL in it", path);
	return 0;
}

static int add_secret(struct run_plan *p, const char *given, struct err *err)
{
	CLEANUP(buf_done) struct buf value = BUF_INIT;
	const size_t len = strcspn(given, "=");
	AUTO_FREE char *name = strndup(given, len);
	const char *text;
	int r;

	if (!name)
		return err_nomem(err);
	r = check_name("secret", given, len, err);
	if (r >= 0 && given[len] == '=') {
		r = read_secret(given + len + 1, &value, err);
	} else if (r >= 0) {
		text = getenv(name);
		r = text ? buf_append_str(&value, text)
			 : err_set(err, -EINVAL, "secret '%s' is not in the environment", name);
	}
	if (r >= 0)
		r = scrub_add(&p->secrets, name, value.data, value.len, err);
	if (r < 0)
		return r;
	text = buf_str(&value);
	return text ? env_set(p, name, len, text, err) : err_nomem(err);
}

static int build_env(struct run_plan *p, const struct engine_run_options *o, struct err *err)
{
	int r = env_set(p, "PATH", 4, DEFAULT_PATH, err);

	for (char **at = environ; r >= 0 && *at; at++)
		if (is_passed(*at))
			r = env_set(p, *at, strcspn(*at, "="), strchr(*at, '=') + 1, err);
	if (r >= 0)
		r = env_set(p, "HOME", 4, p->home, err);
	for (size_t i = 0; r >= 0 && i < o->pass_env.n; i++)
		r = add_passed(p, o->pass_env.items[i], err);
	for (size_t i = 0; r >= 0 && i < o->env.n; i++)
		r = add_given(p, o->env.items[i], err);
	for (size_t i = 0; r >= 0 && i < o->secrets.n; i++)
		r = add_secret(p, o->secrets.items[i], err);
	return r;
}

/* --- what can be told at once ----------------------------------------------------------- */

/* An empty directory of its own, at the caller's place; where that can be none, /tmp is as good. */
static int choose_home(struct run_plan *p, struct err *err)
{
	const char *home = getenv("HOME");
	AUTO_FREE char *clean = home && *home == '/' ? path_clean("/", home) : NULL;

	if (!clean || strcmp(clean, "/") == 0 || path_is_below(clean, "/dev") ||
	    path_is_below(clean, "/proc") || path_is_below(clean, "/sys"))
		p->home = strdup("/tmp");
	else
		p->home = TAKE_PTR(clean);
	return p->home ? 0 : err_nomem(err);
}

static int choose_net(struct run_plan *p, const char *net, struct err *err)
{
	p->spec.net = SANDBOX_NET_NONE;
	if (!net || strcmp(net, "none") == 0 || strcmp(net, "loopback") == 0)
		return 0;
	if (strcmp(net, "host") == 0) {
		p->spec.net = SANDBOX_NET_HOST;
		return 0;
	}
	if (strchr(net, ':'))
		return err_set(err, -ENOTSUP,
			       "option '--net': connections to listed hosts ('%s') cannot be had "
			       "in this version",
			       net);
	return err_set(err, -EINVAL, "option '--net': '%s' is not one of none, loopback, host",
		       net);
}

static int choose_walls(struct run_plan *p, const struct engine_list *missing, struct err *err)
{
	for (size_t i = 0; i < missing->n; i++) {
		const int wall = sandbox_wall_find(missing->items[i]);

		if (wall < 0 || !(SANDBOX_MAY_MISS & WALL_BIT(wall)))
			return err_set(err, -EINVAL,
				       "option '--allow-missing': '%s' is no wall that may be "
				       "missing (landlock, memory, pids, cpu)",
				       missing->items[i]);
		p->spec.may_miss |= WALL_BIT(wall);
	}
	return 0;
}

int run_plan_check(struct run_plan *p, const struct engine_run_options *o, struct err *err)
{
	const struct engine_run_limits *l = &o->limits;
	int r;

	sandbox_spec_init(&p->spec);
	p->spec.argv = o->argv;
	p->spec.in_fd = o->in_fd;
	p->spec.tty = o->tty;
	p->spec.limits = (struct sandbox_limits){
		.mem = l->mem,
		.mem_is_default = !o->mem_by_name,
		.cpus_milli = l->cpus_milli,
		.pids = l->pids,
		.wall_ms = l->time_ms,
		.fsize = l->fsize,
		.nofile = l->nofile,
		.output = l->output,
		.tmp = l->mem > 0 ? l->mem : FRESH_MAX,
	};
	r = choose_net(p, o->net, err);
	if (r >= 0)
		r = choose_walls(p, &o->allow_missing, err);
	if (r >= 0)
		r = choose_home(p, err);
	if (r >= 0)
		r = build_env(p, o, err);
	if (r < 0)
		return r;
	p->spec.env = (const char *const *)p->env.list;
	return sandbox_spec_check(&p->spec, err);
}

/* --- what it sees ----------------------------------------------------------------------- */

struct place {
	struct run_plan *plan;
	struct engine *engine;
	const struct stage *stage;
};

static int add(const struct place *at, const struct sandbox_mount *m, struct err *err)
{
	return layout_add(at->plan->layout, m, err);
}

static int add_clone(const struct place *at, struct err *err)
{
	const struct sandbox_mount clone = {
		.kind = SANDBOX_BIND,
		.host = at->stage->path,
		.host_fd = at->plan->clone_fd,
		.guest = at->stage->project,
		.writable = true,
		.owned = true,
	};

	return add(at, &clone, err);
}

static int add_system(const struct place *at, struct err *err)
{
	const char *home = at->plan->home;
	const struct sandbox_mount fresh = { .kind = SANDBOX_FRESH, .guest = home };
	int r = layout_add_system(at->plan->layout, err);

	if (r < 0 || strcmp(home, "/tmp") == 0 || path_is_below(home, at->stage->project))
		return r;
	return add(at, &fresh, err);
}

/* What lies in the project is the clone's: the project itself is never shown. */
static char *find_host(const struct place *at, const char *path)
{
	const char *project = at->stage->project;

	if (!path_is_below(path, project))
		return realpath(path, NULL);
	return path_clean(at->stage->path, path + strlen(project) + (path[strlen(project)] == '/'));
}

/* What no option can grant: the store, and to write what holds it or the project. */
static int check_granted(const struct place *at, const char *given, const char *host, bool writable,
			 struct err *err)
{
	AUTO_FREE char *store = realpath(at->engine->store_path, NULL);
	const bool holds_store = store && path_is_below(store, host);

	if (path_is_below(host, at->stage->path))
		return 0;
	if (store && path_is_below(host, store))
		return err_set(err, -ECANCELED, "option '--%s': '%s' is in the store",
			       writable ? "rw" : "ro", given);
	if (writable && (holds_store || path_is_below(at->stage->project, host)))
		return err_set(err, -ECANCELED, "option '--rw': '%s' holds %s, which no run writes",
			       given, holds_store ? "the store" : "the project");
	return 0;
}

/* First those that the clone is to cover in part, then (`around` is false) those that cover it. */
static int add_granted(const struct place *at, const char *given, bool writable, bool around,
		       struct err *err)
{
	AUTO_FREE char *path = path_clean(at->engine->dir, given);
	AUTO_FREE char *host = path ? find_host(at, path) : NULL;
	const struct sandbox_mount m = {
		.kind = SANDBOX_BIND,
		.host = host,
		.host_fd = -1,
		.guest = path,
		.writable = writable,
		.owned = true, /* who grants it means what is in it too */
	};
	int r;

	if (!path)
		return err_nomem(err);
	if (!host)
		return err_sys(err, "option '--%s': '%s'", writable ? "rw" : "ro", given);
	r = check_granted(at, given, host, writable, err);
	if (r < 0 || around != path_is_below(at->stage->project, path))
		return r;
	return add(at, &m, err);
}

static int add_all_granted(const struct place *at, const struct engine_run_options *o, bool around,
			   struct err *err)
{
	int r = 0;

	for (size_t i = 0; r >= 0 && i < o->ro.n; i++)
		r = add_granted(at, o->ro.items[i], false, around, err);
	for (size_t i = 0; r >= 0 && i < o->rw.n; i++)
		r = add_granted(at, o->rw.items[i], true, around, err);
	return r;
}

static int add_hidden(const struct place *at, const char *given, struct err *err)
{
	AUTO_FREE char *path = path_clean(at->engine->dir, given);
	const struct sandbox_mount m = { .kind = SANDBOX_HIDE, .guest = path };

	return path ? add(at, &m, err) : err_nomem(err);
}

/* Whatever was granted around it: the store with its socket, and all other clones. */
static int hide_store(const struct place *at, struct err *err)
{
	AUTO_FREE char *store = realpath(at->engine->store_path, NULL);

	if (!store || path_is_below(at->stage->project, store))
		return 0;
	return add_hidden(at, store, err);
}

static int build_layout(const struct place *at, const struct engine_run_options *o, struct err *err)
{
	int r;

	at->plan->layout = layout_new();
	if (!at->plan->layout)
		return err_nomem(err);
	r = add_system(at, err);
	if (r >= 0)
		r = add_all_granted(at, o, true, err);
	if (r >= 0)
		r = add_clone(at, err);
	if (r >= 0)
		r = add_all_granted(at, o, false, err);
	for (size_t i = 0; r >= 0 && i < o->hide.n; i++)
		r = add_hidden(at, o->hide.items[i], err);
	return r < 0 ? r : hide_store(at, err);
}

/* Where the command was given, as the run sees it: also if that is in the clone itself. */
static int choose_cwd(const struct place *at, const char *workdir, struct err *err)
{
	const struct stage *s = at->stage;
	const char *dir = at->engine->dir;
	AUTO_FREE char *clone = realpath(s->path, NULL), *here = NULL;

	if (clone && path_is_below(dir, clone))
		here = path_clean(s->project, dir + strlen(clone) + (dir[strlen(clone)] == '/'));
	else
		here = strdup(path_is_below(dir, s->project) ? dir : s->project);
	if (here && workdir)
		at->plan->cwd = path_clean(here, workdir);
	else
		at->plan->cwd = TAKE_PTR(here);
	return at->plan->cwd ? 0 : err_nomem(err);
}

int run_plan_fill(struct run_plan *p, struct engine *e, const struct engine_run_options *o,
		  const struct stage *stage, struct err *err)
{
	const struct place at = { .plan = p, .engine = e, .stage = stage };
	int r;

	p->clone_fd = open(stage->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (p->clone_fd < 0)
		return err_sys(err, "opening clone '%s'", stage->clone);
	r = choose_cwd(&at, o->workdir, err);
	if (r >= 0)
		r = build_layout(&at, o, err);
	if (r < 0)
		return r;
	p->spec.cwd = p->cwd;
	p->spec.mounts = p->layout->mounts;
	p->spec.n_mounts = p->layout->n;
	return 0;
}
