#include "engine/run/run-project.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/path.h"
#include "base/vec.h"
#include "engine/api/events.h"
#include "runner/sandbox.h"

void run_project_done(struct run_project *p)
{
	free(p->dir);
	free(p->cwd);
	free(p->origin);
	stage_done(&p->stage);
	control_done(&p->control);
	*p = RUN_PROJECT_INIT;
}

/* What `run` would make a project of, if git says that it is one; NULL: nothing. */
static char *work_tree_here(struct engine *e)
{
	CLEANUP(project_done) struct project p = { 0 };

	if (project_choose(e, NULL, NULL, &p, NULL) < 0 || !project_is_work_tree(p.path))
		return NULL;
	return TAKE_PTR(p.path);
}

/* What is in a clone is at its place in the project. */
static char *find_cwd(struct engine *e, const char *dir)
{
	AUTO_FREE char *inside = clone_inside(e);

	return inside ? path_clean(dir, inside) : strdup(e->dir);
}

int run_project_find(struct run_project *p, struct engine *e, const struct engine_run_options *o,
		     const char *root_dir, struct err *err)
{
	AUTO_FREE char *dir = o->root ? engine_project_here(e, NULL) : NULL;

	if (!o->root)
		return 0;
	/* A machine that was captured is a project around all others. */
	if (!dir || strcmp(dir, "/") == 0) {
		free(dir);
		dir = work_tree_here(e);
	}
	if (!dir || strcmp(dir, "/") == 0 || (root_dir && strcmp(dir, root_dir) == 0))
		return 0;
	p->origin = engine_clone_here(e);
	p->cwd = find_cwd(e, dir);
	p->dir = TAKE_PTR(dir);
	return p->cwd ? 0 : err_nomem(err);
}

/* --- its place in the root ---------------------------------------------------------------- */

static bool is_below_any(const char *path, const char *const *dirs, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (path_is_below(path, dirs[i]))
			return true;
	return false;
}

/* Takes the descriptor. */
static bool has_entries(int fd)
{
	DIR *dir = fdopendir(fd);
	const struct dirent *d;
	bool any = false;

	if (!dir) {
		close(fd);
		return false;
	}
	while (!any && (d = readdir(dir)))
		any = strcmp(d->d_name, ".") != 0 && strcmp(d->d_name, "..") != 0;
	closedir(dir);
	return any;
}

/*
 * Has the root something at that path, or a symlink on the way, over which nothing is mounted?  If not, as
 * many bytes of the path as it has go to *ret_there.
 */
static bool is_taken(const char *root, const char *path, size_t *ret_there)
{
	AUTO_CLOSE int at = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	AUTO_FREE char *names = strdup(path);
	char *rest = NULL;

	if (at < 0 || !names)
		return false;
	for (char *name = strtok_r(names, "/", &rest); name; name = strtok_r(NULL, "/", &rest)) {
		const int next = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

		if (next < 0)
			return errno == ENOTDIR || errno == ELOOP;
		close(at);
		at = next;
		*ret_there = (size_t)(name - names) + strlen(name);
	}
	return has_entries(TAKE_FD(at));
}

/* Never over what every run has, nor over files of the root's own. */
static bool has_room(struct run_project *p, const struct stage *root)
{
	static const char *const own[] = { "/dev", "/proc", "/sys" };
	static const char *const fresh[] = { "/run", "/tmp" };

	if (is_below_any(p->dir, own, ARRAY_LEN(own)))
		return false;
	if (!is_below_any(p->dir, fresh, ARRAY_LEN(fresh)))
		return !is_taken(root->path, p->dir, &p->there);
	p->there = strlen(p->dir); /* it goes with the rest of them */
	return true;
}

/* --- its clone ---------------------------------------------------------------------------- */

static struct stage_options staging_of(const struct run_project *p,
				       const struct stage_options *root, bool masks)
{
	uint32_t ids;
	const uint32_t first_id = sandbox_ids_outside(&ids);

	return (struct stage_options){
		.run = root->run,
		.beside = true,
		.from = p->origin,
		.root = p->origin ? NULL : p->dir,
		.lazy = true,
		.skip_unreadable = true,
		.passing = true,
		.masks = masks,
		.disk = root->disk,
		.inodes = root->inodes,
		.ttl_ms = root->ttl_ms,
		.first_id = first_id,
		.ids = ids,
		.watch = root->watch,
	};
}

int run_project_stage(struct run_project *p, struct engine *e, const struct stage_options *root,
		      const struct stage *of, bool masks, struct err *err)
{
	CLEANUP(stage_asking_done) struct stage_asking asking = { 0 };
	struct stage_options staging;

	if (!p->dir || strcmp(p->dir, of->project) == 0) {
		run_project_done(p);
		return 0;
	}
	if (!has_room(p, of)) {
		p->in_root = true;
		/* The machine's clone has the project's own files there. */
		if (strcmp(of->project, "/") != 0)
			log_warn("the root has files of its own in '%s': the command sees those, "
				 "and not the project",
				 p->dir);
		return 0;
	}
	staging = staging_of(p, root, masks);
	stage_ask_ahead(e, &staging, &p->control, &asking);
	return stage_ask(e, &staging, &asking, &p->control, &p->stage, err);
}

void run_project_end(struct run_project *p, struct engine *e, struct stage_end *ret)
{
	struct err err = { 0 };

	if (p->stage.clone && stage_ask_end(e, &p->control, ret, &err) < 0)
		log_warn("removing the clone of the project: %s, continuing", err.msg);
	control_done(&p->control);
}

static bool was_made(const struct run_project *p, const struct engine_path *one)
{
	const size_t len = strlen(one->path);

	/* `dir` begins with a slash, which a path of the clone does not. */
	return one->status == 'A' && len >= p->there && len < strlen(p->dir) &&
	       strncmp(one->path, p->dir + 1, len) == 0 &&
	       (p->dir[1 + len] == '/' || p->dir[1 + len] == '\0');
}

void run_project_leave_out(const struct run_project *p, struct stage_end *end)
{
	struct engine_paths *all = &end->changed;
	size_t kept = 0;

	if (!p->stage.clone)
		return;
	for (size_t i = 0; i < all->n; i++) {
		if (was_made(p, &all->list[i])) {
			free(all->list[i].path);
			end->added--;
		} else {
			all->list[kept++] = all->list[i];
		}
	}
	all->n = kept;
}
