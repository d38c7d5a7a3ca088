#include "engine/run/run-view.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/path.h"
#include "base/sys.h"
#include "base/text.h"
#include "base/vec.h"
#include "engine/run/run-cover.h"
#include "engine/run/run-git.h"
#include "engine/run/run-hide.h"
#include "engine/run/run-root.h"
#include "engine/wire/control-i.h"

void run_view_began(struct run_view *v)
{
	control_done(&v->names);
}

static void close_clone(struct run_open *o)
{
	cleanup_close(&o->fd);
	cleanup_close(&o->shown_fd);
}

void run_view_release(struct run_view *v)
{
	control_done(&v->names);
	close_clone(&v->clone);
	close_clone(&v->project);
}

void run_view_done(struct run_view *v)
{
	layout_free(v->system);
	layout_free(v->layout);
	free(v->cwd);
	free(v->hidden);
	run_view_release(v);
	*v = RUN_VIEW_INIT;
}

struct place {
	struct run_view *view;
	struct engine *engine;
	const struct stage *stage;
	const struct run_open *open; /* the stage's */
	const struct run_sight *sight;
};

static int add(const struct place *at, const struct sandbox_mount *m, struct err *err)
{
	return layout_add(at->view->layout, m, err);
}

/* The clone's path as the run sees it. */
static const char *shown_at(const struct place *at)
{
	return at->stage->view ? at->stage->view : at->stage->path;
}

static int add_clone(const struct place *at, struct err *err)
{
	const struct sandbox_mount clone = {
		.kind = SANDBOX_BIND,
		.host = shown_at(at),
		.host_fd = at->stage->view ? at->open->shown_fd : at->open->fd,
		.guest = at->stage->project,
		.writable = true,
		.owned = true,
		.as_is = at->stage->view,
	};

	return add(at, &clone, err);
}

static int add_home(const struct place *at, struct err *err)
{
	const char *home = at->sight->home;
	const struct sandbox_mount fresh = { .kind = SANDBOX_FRESH, .guest = home };

	if (strcmp(home, "/tmp") == 0 || path_is_below(home, at->stage->project))
		return 0;
	return add(at, &fresh, err);
}

/* A path in the project means the clone's, also through symlinks: the project itself is never shown. */
static char *find_host(const struct place *at, const char *path)
{
	const char *project = at->stage->project, *in;
	AUTO_FREE char *real = path_is_below(path, project) ? strdup(path) : realpath(path, NULL);

	if (!real || !path_is_below(real, project))
		return TAKE_PTR(real);
	in = real + strlen(project);
	return path_clean(shown_at(at), in + (*in == '/'));
}

/* A path of the host that the run may see. */
struct grant {
	const char *by;    /* for error messages: "option '--ro'" */
	const char *host;  /* absolute and clean */
	const char *guest; /* the same */
	bool writable;
	bool optional;
};

/* Nobody can grant the store, nor write access to what holds it or to the project. */
static int check_granted(const struct place *at, const struct grant *g, const char *host,
			 struct err *err)
{
	AUTO_FREE char *store = realpath(at->engine->store_path, NULL);
	const char *project = at->stage->project;
	const bool holds_store = store && path_is_below(store, host);
	const bool in_clone = path_is_below(host, shown_at(at));

	if (in_clone && (!g->writable || path_is_below(g->host, project)))
		return 0;
	if (store && !in_clone && path_is_below(host, store))
		return err_set(err, -ECANCELED, "%s: '%s' is in the store", g->by, g->host);
	if (g->writable && (holds_store || path_is_below(project, host)))
		return err_set(err, -ECANCELED, "%s: '%s' holds %s, which no run writes", g->by,
			       g->host, holds_store ? "the store" : "the project");
	if (g->writable && (in_clone || path_is_below(host, project)))
		return err_set(err, -ECANCELED, "%s: '%s' is in the project, which no run writes",
			       g->by, g->host);
	return 0;
}

/* `around`: add only grants that hold the clone's path, which it then covers; else the others. */
static int add_granted(const struct place *at, const struct grant *g, bool around, struct err *err)
{
	AUTO_FREE char *host = find_host(at, g->host);
	const struct sandbox_mount m = {
		.kind = SANDBOX_BIND,
		.host = host,
		.host_fd = -1,
		.guest = g->guest,
		.writable = g->writable,
		.owned = true, /* a grant includes what is in the directory */
		.as_is = at->stage->view && host && path_is_below(host, at->stage->view),
	};
	int r = host && access(host, F_OK) == 0 ? 0 : -errno;

	if ((r == -ENOENT || r == -ENOTDIR) && g->optional)
		return 0;
	if (r < 0)
		return err_sys(err, "%s: '%s'", g->by, g->host);
	r = check_granted(at, g, host, err);
	if (r < 0 || around != path_is_below(at->stage->project, g->guest))
		return r;
	return add(at, &m, err);
}

/* The clone is seen at the project's path: one in its mount means that; NULL: of any other, or no memory. */
static char *place_in_clone(const struct stage *s, const char *path)
{
	AUTO_FREE char *clone = realpath(s->path, NULL);
	const char *in;

	if (!clone || !path_is_below(path, clone))
		return NULL;
	in = path + strlen(clone);
	return path_clean(s->project, in + (*in == '/'));
}

static char *place_in_run(const struct stage *s, const char *path)
{
	char *there = place_in_clone(s, path);

	return there ? there : strdup(path);
}

/* A symlink may lead to the mount, but one that is named itself means itself. */
static char *resolve_parent(const char *path)
{
	AUTO_FREE char *parent = strndup(path, (size_t)(path_base(path) - path));
	AUTO_FREE char *real = parent ? realpath(parent, NULL) : NULL;

	return real ? path_clean(real, path_base(path)) : NULL;
}

/* A path that the caller gave. */
static char *find_given(const struct place *at, const char *given)
{
	AUTO_FREE char *path = path_clean(at->engine->dir, given);
	AUTO_FREE char *real = path ? resolve_parent(path) : NULL;
	char *there = real ? place_in_clone(at->stage, real) : NULL;

	return there || !path ? there : strdup(path);
}

static int add_given(const struct place *at, const char *given, bool writable, bool around,
		     struct err *err)
{
	AUTO_FREE char *path = find_given(at, given);
	const struct grant g = {
		.by = writable ? "option '--rw'" : "option '--ro'",
		.host = path,
		.guest = path,
		.writable = writable,
	};

	return path ? add_granted(at, &g, around, err) : err_nomem(err);
}

static int add_profile(const struct place *at, const struct engine_profile *p, bool around,
		       struct err *err)
{
	int r = 0;
	AUTO_FREE char *by = text_format("profile '%s'", p->name);

	if (!by)
		return err_nomem(err);
	for (size_t i = 0; r >= 0 && i < p->n_mounts; i++) {
		const struct grant g = {
			.by = by,
			.host = p->mounts[i].host,
			.guest = p->mounts[i].guest,
			.writable = p->mounts[i].writable,
			.optional = p->mounts[i].optional,
		};

		r = add_granted(at, &g, around, err);
	}
	return r;
}

/* --- programs in the home ----------------------------------------------------------------- */

/*
 * Where people keep programs in their home, and what these need.  From a folder that also holds
 * credentials, such as ~/.cargo, only the programs.
 */
static const struct {
	const char *on_path, *shown;
} toolchains[] = {
	{ ".local/bin", ".local/bin" },
	{ ".local/bin", ".local/lib" },
	{ ".local/bin", ".local/pipx" },
	{ ".local/bin", ".local/share/pipx" },
	{ ".local/bin", ".local/share/uv" },
	{ ".local/share/mise", ".local/share/mise" },
	{ ".local/share/fnm", ".local/share/fnm" },
	{ ".pyenv", ".pyenv" },
	{ ".rbenv", ".rbenv" },
	{ ".nvm", ".nvm" },
	{ ".volta", ".volta" },
	{ ".asdf", ".asdf" },
	{ ".bun/bin", ".bun/bin" },
	{ ".deno/bin", ".deno/bin" },
	{ ".cargo/bin", ".cargo/bin" },
	{ ".cargo/bin", ".rustup" },
	{ ".sdkman/candidates", ".sdkman/candidates" },
	{ "miniconda3", "miniconda3" },
	{ "anaconda3", "anaconda3" },
	{ "miniforge3", "miniforge3" },
};

/* Does the caller's PATH lead there? */
static bool is_on_path(const char *dir)
{
	const char *at = getenv("PATH");

	while (at && *at != '\0') {
		const size_t len = strcspn(at, ":");
		AUTO_FREE char *one = strndup(at, len);
		AUTO_FREE char *clean = one && *one == '/' ? path_clean("/", one) : NULL;

		if (clean && path_is_below(clean, dir))
			return true;
		at += len + (at[len] == ':');
	}
	return false;
}

static int add_toolchain(const struct place *at, const char *on_path, const char *shown,
			 bool around, struct err *err)
{
	const struct grant g = {
		.by = "a program on PATH", .host = shown, .guest = shown, .optional = true
	};

	return is_on_path(on_path) ? add_granted(at, &g, around, err) : 0;
}

/* Show the run the programs that the caller's shell finds. */
static int add_toolchains(const struct place *at, bool around, struct err *err)
{
	static const char brew[] = "/home/linuxbrew/.linuxbrew";
	int r = add_toolchain(at, brew, brew, around, err);

	for (size_t i = 0; r >= 0 && i < ARRAY_LEN(toolchains); i++) {
		AUTO_FREE char *dir = path_join(at->sight->home, toolchains[i].on_path);
		AUTO_FREE char *shown = path_join(at->sight->home, toolchains[i].shown);

		r = dir && shown ? add_toolchain(at, dir, shown, around, err) : err_nomem(err);
	}
	return r;
}

static int add_all_granted(const struct place *at, bool around, struct err *err)
{
	const struct engine_run_options *o = at->sight->options;
	int r = add_toolchains(at, around, err);

	if (r < 0)
		return r;
	r = add_profile(at, at->sight->profile, around, err);
	for (size_t i = 0; r >= 0 && i < o->ro.n; i++)
		r = add_given(at, o->ro.items[i], false, around, err);
	for (size_t i = 0; r >= 0 && i < o->rw.n; i++)
		r = add_given(at, o->rw.items[i], true, around, err);
	return r;
}

static int add_hidden(const struct place *at, const char *given, struct err *err)
{
	AUTO_FREE char *path = find_given(at, given);
	const struct sandbox_mount m = { .kind = SANDBOX_HIDE, .guest = path };

	return path ? add(at, &m, err) : err_nomem(err);
}

/* Hide the store, its socket and all other clones, whatever was granted around them. */
static int hide_store(const struct place *at, struct err *err)
{
	AUTO_FREE char *store = realpath(at->engine->store_path, NULL);

	if (!store || path_is_below(at->stage->project, store))
		return 0;
	return add_hidden(at, store, err);
}

/* What a clone may hide, and where it is. */
static struct run_hiding hiding_of(const struct place *at)
{
	return (struct run_hiding){
		.engine = at->engine,
		.stage = at->stage,
		.shown = shown_at(at),
		.clone_fd = at->open->fd,
		.like = at->sight->options->like,
	};
}

/* The usual places of credentials.  An untrusted run needs none of them. */
static int hide_secrets(const struct place *at, struct err *err)
{
	const struct run_hiding h = hiding_of(at);

	return run_hide_paths(&h, at->view->layout, &at->view->names, &at->view->mounted_by_ms,
			      err);
}

static int add_all_hidden(const struct place *at, struct err *err)
{
	const struct strlist *profile = &at->sight->profile->hide;
	const struct engine_list *given = &at->sight->options->hide;
	/* Before there are other masks, which would be taken for what is to be hidden. */
	int r = strlist_has(profile, ENGINE_HIDE_SECRETS) ? hide_secrets(at, err) : 0;

	for (size_t i = 0; r >= 0 && i < profile->n; i++)
		if (strcmp(profile->list[i], ENGINE_HIDE_SECRETS) != 0)
			r = add_hidden(at, profile->list[i], err);
	for (size_t i = 0; r >= 0 && i < given->n; i++)
		r = add_hidden(at, given->items[i], err);
	if (r < 0)
		return r;
	r = hide_store(at, err);
	return r < 0 ? r : run_cover(at->view->layout, shown_at(at), at->stage->project, err);
}

/* The project's clone, over what was granted and below what is hidden, as in a run without a root. */
static int add_project(const struct place *at, bool secrets, struct err *err)
{
	struct run_hiding h;
	int r;

	if (!at->stage->clone)
		return 0;
	h = hiding_of(at);
	h.like = NULL; /* that is about the root */
	r = add_clone(at, err);
	return r < 0 || !secrets ? r
				 : run_hide_paths(&h, at->view->layout, &at->view->names,
						  &at->view->mounted_by_ms, err);
}

static int build_root_layout(const struct place *at, const struct place *project, struct err *err)
{
	const struct engine_run_options *o = at->sight->options;
	const struct strlist *hide = &at->sight->profile->hide;
	const bool secrets = strlist_has(hide, ENGINE_HIDE_SECRETS);
	const struct run_hiding h = hiding_of(at);
	const struct stage *s = project->stage;
	struct layout *l = at->view->layout;
	int r = 0;

	if (secrets)
		r = run_hide_numbers(&h, &at->view->hidden, &at->view->n_hidden, err);
	if (r < 0)
		return r;
	r = run_root_grant(l, at->engine, o, err);
	if (r < 0)
		return r;
	r = add_project(project, secrets, err);
	if (r < 0)
		return r;
	r = run_root_hide(l, at->engine, o, hide, err);
	if (r < 0)
		return r;
	r = run_cover(l, shown_at(s->clone ? project : at), s->project, err);
	return r < 0 ? r : run_net_show_over(at->sight->net, l, err);
}

static int build_layout(const struct place *at, struct err *err)
{
	int r = add_home(at, err);

	if (r < 0)
		return r;
	r = add_all_granted(at, true, err);
	if (r < 0)
		return r;
	r = add_clone(at, err);
	if (r < 0)
		return r;
	r = add_all_granted(at, false, err);
	if (r < 0)
		return r;
	r = run_net_show(at->sight->net, at->view->layout, err);
	if (r < 0)
		return r;
	r = run_git_show(at->view->layout, at->sight->git, err);
	return r < 0 ? r : add_all_hidden(at, err);
}

/* A clone of a part lacks most directories that the caller may be in. */
static int check_cwd(const struct place *at, struct err *err)
{
	const char *part = at->sight->options->part, *cwd = at->view->cwd;
	const struct stage *s = at->stage;
	AUTO_FREE char *there = NULL;
	struct stat st;

	if (!cwd)
		return err_nomem(err);
	if (!part || !path_is_below(cwd, s->project))
		return 0;
	there = text_format("%s/%s", s->path, cwd + strlen(s->project));
	if (!there)
		return err_nomem(err);
	if (lstat(there, &st) == 0 || errno != ENOENT)
		return 0;
	return err_set(err, -EINVAL,
		       "the command cannot begin in '%s': its clone has only '%s' of the project; "
		       "name a directory of that with '--workdir'",
		       cwd, part);
}

/* The caller's directory as it is in the root's own files; "/" if that has none, or a symlink leads there. */
static char *find_in_root(const struct place *at)
{
	const char *cwd = at->sight->project->cwd;
	AUTO_FREE char *outside = path_join(at->stage->path, cwd + 1);
	AUTO_FREE char *real = outside ? realpath(outside, NULL) : NULL;
	struct stat st;

	if (!real || strcmp(real, outside) != 0 || stat(real, &st) < 0 || !S_ISDIR(st.st_mode))
		return strdup("/");
	return strdup(cwd);
}

/*
 * The caller's directory in the project, if the run sees that; else the top of the root.  Another user than root
 * may not be allowed to enter it.
 */
static int choose_root_cwd(const struct place *at, const struct place *project, struct err *err)
{
	const struct engine_run_options *o = at->sight->options;
	const struct run_project *p = at->sight->project;
	AUTO_FREE char *here = o->as                   ? strdup("/")
			       : p->in_root            ? find_in_root(at)
			       : project->stage->clone ? strdup(p->cwd)
						       : strdup("/");

	if (here)
		at->view->cwd = path_clean(here, o->workdir ? o->workdir : ".");
	return at->view->cwd ? 0 : err_nomem(err);
}

/* The caller's directory as the run sees it, even if it is in the clone. */
static int choose_cwd(const struct place *at, const char *workdir, struct err *err)
{
	const struct stage *s = at->stage;
	AUTO_FREE char *here = place_in_run(s, at->engine->dir);

	if (here && !path_is_below(here, s->project)) {
		free(here);
		here = strdup(s->project);
	}
	if (here && workdir)
		at->view->cwd = path_clean(here, workdir);
	else
		at->view->cwd = TAKE_PTR(here);
	return check_cwd(at, err);
}

int run_view_begin(struct run_view *v, bool root, struct err *err)
{
	v->system = layout_new();
	if (!v->system)
		return err_nomem(err);
	return root ? run_root_system(v->system, err) : layout_add_system(v->system, err);
}

/* A mount namespace that gets no new mounts would show an empty directory instead. */
static int check_clone_is_seen(int fd, const struct stage *stage, struct err *err)
{
	struct stat clone, above;

	if (fstat(fd, &clone) < 0 || fstatat(fd, "..", &above, 0) < 0)
		return err_sys(err, "looking at clone '%s'", stage->clone);
	if (clone.st_dev != above.st_dev)
		return 0;
	return err_set(err, -EPERM,
		       "clone '%s' is not mounted in the mount namespace of this command: it must "
		       "get the host's new mounts ('unshare -m --propagation slave')",
		       stage->clone);
}

static int open_clone(struct run_open *o, const struct stage *stage, struct err *err)
{
	int r;

	o->fd = open(stage->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (o->fd < 0)
		return err_sys(err, "opening clone '%s'", stage->clone);
	r = check_clone_is_seen(o->fd, stage, err);
	if (r < 0 || !stage->view)
		return r;
	o->shown_fd = sys_open_node(AT_FDCWD, stage->view);
	if (o->shown_fd < 0)
		return err_wrap(err, o->shown_fd, "opening clone '%s' for the run", stage->clone);
	return 0;
}

/* The clone is the whole of what the run sees, but for the project that it may have beside it. */
static int build_in_root(const struct place *at, struct err *err)
{
	struct place project = *at;
	int r = 0;

	project.stage = &at->sight->project->stage;
	project.open = &at->view->project;
	if (project.stage->clone)
		r = open_clone(&at->view->project, project.stage, err);
	r = r < 0 ? r : choose_root_cwd(at, &project, err);
	return r < 0 ? r : build_root_layout(at, &project, err);
}

int run_view_build(struct run_view *v, struct engine *e, const struct run_sight *sight,
		   const struct stage *stage, struct err *err)
{
	const struct place at = {
		.view = v, .engine = e, .stage = stage, .open = &v->clone, .sight = sight
	};
	int r = open_clone(&v->clone, stage, err);

	if (r < 0)
		return r;
	v->layout = layout_new();
	if (!v->layout)
		return err_nomem(err);
	if (sight->options->root)
		return build_in_root(&at, err);
	r = choose_cwd(&at, sight->options->workdir, err);
	return r < 0 ? r : build_layout(&at, err);
}
