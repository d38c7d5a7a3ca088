#include "engine/act/clone-git-i.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/path.h"
#include "base/text.h"
#include "base/vec.h"
#include "cowfs/store/pin.h"
#include "engine/act/acts-i.h"
#include "engine/act/gitdir-graft-i.h"
#include "engine/host/host-i.h"

#define WORKTREES ".git/worktrees/"

void clone_git_done(struct clone_git *g)
{
	gitdir_done(&g->real);
	if (g->store && !object_id_is_zero(&g->linked))
		store_unpin(g->store, OBJECT_TREE, &g->linked);
	texts_free(g->worktrees, g->n_worktrees);
	*g = (struct clone_git){ 0 };
}

bool clone_git_changes(const struct clone_git *g)
{
	return !object_id_is_zero(&g->common) || !object_id_is_zero(&g->linked);
}

/* --- the repository --------------------------------------------------------------------- */

static int capture(struct task *task, const char *project,
		   const struct engine_clone_options *options, struct engine_clones *told,
		   struct clone_git *g, struct err *err)
{
	CLEANUP(engine_taken_done) struct engine_taken taken = { 0 };
	CLEANUP(snapshot_done) struct snapshot common = { 0 };
	struct engine_take_options take = {
		.dir = g->real.common,
		.git = true,
		.skip_unreadable = options->skip_unreadable,
		.watch = options->watch,
	};
	struct engine *e = &task->engine;
	int r = take_snapshot(task, &take, true, &taken, err);

	r = r < 0 ? r
		  : engine_as_damage(err, snapshot_find(e->store, taken.snapshot.id, &common, err));
	if (r < 0)
		return err_wrap(err, r, "git's directory of '%s'", project);
	g->common = common.root;
	told->git_dir = strdup(g->real.own);
	return told->git_dir ? 0 : err_nomem(err);
}

/* Capture the repository of a project whose `.git` is a file. */
static int bring(struct task *task, const struct snapshot *start, const char *project,
		 const struct engine_clone_options *options, struct engine_clones *told,
		 struct clone_git *g, struct err *err)
{
	struct engine *e = &task->engine;
	struct err why = { 0 };
	int r = gitdir_find(e, project, &g->real, &why);

	if (r < 0 && r != -ENOMEM)
		engine_warn(e, "%s: git may not work in the clone", why.msg);
	if (r <= 0)
		return r == -ENOMEM ? err_nomem(err) : 0;
	r = gitdir_is_file(e->store, &start->root, err);
	if (r == 0)
		gitdir_done(&g->real);
	return r <= 0 ? r : capture(task, project, options, told, g, err);
}

/* --- links ------------------------------------------------------------------------------ */

static int need_worktree(struct clone_git *g, const char *to, struct err *err)
{
	const char *name = to + strlen(WORKTREES);

	if (!g->real.own || strncmp(to, WORKTREES, strlen(WORKTREES)) != 0)
		return 0;
	if (!VEC_ONE_MORE(g->worktrees, g->n_worktrees))
		return err_nomem(err);
	g->worktrees[g->n_worktrees] = strndup(name, strcspn(name, "/"));
	return g->worktrees[g->n_worktrees++] ? 0 : err_nomem(err);
}

/* Strays with a copy in the clone become links. */
static int find_links(const char *project, struct engine_clones *told, struct clone_git *g,
		      struct gitdir_links *links, struct err *err)
{
	size_t left = 0;
	int r = 0;

	told->links = calloc(told->n_strays, sizeof(*told->links));
	if (!told->links)
		return err_nomem(err);
	for (size_t i = 0; i < told->n_strays && r >= 0; i++) {
		struct engine_stray *one = &told->strays[i], stays = *one;
		char *to;

		r = gitdir_find_copy(project, &g->real, one->to, &to, err);
		if (r < 0 || !to) {
			*one = (struct engine_stray){ 0 };
			told->strays[left++] = stays;
			continue;
		}
		free(one->to);
		told->links[told->n_links++] = (struct engine_stray){ one->path, to };
		*one = (struct engine_stray){ 0 };
		r = gitdir_links_add(links, stays.path, to, err);
		r = r < 0 ? r : need_worktree(g, to, err);
	}
	told->n_strays = r < 0 ? told->n_strays : left;
	return r;
}

static int lead_inside(const struct snapshot *start, const char *project,
		       struct engine_clones *told, struct clone_git *g, struct err *err)
{
	CLEANUP(gitdir_links_done) struct gitdir_links links = { 0 };
	CLEANUP(batch_end_p) struct batch *b = NULL;
	struct object_id linked;
	int r;

	if (told->n_strays == 0)
		return 0;
	r = find_links(project, told, g, &links, err);
	if (r < 0 || links.n == 0)
		return r;
	r = batch_begin(g->store, &b, err);
	if (r < 0)
		return r;
	r = gitdir_link(b, &start->root, &links, &linked, err);
	if (r < 0)
		return r;
	r = batch_commit(b, BATCH_SAFE, err);
	if (r < 0)
		return r;
	r = store_pin(g->store, OBJECT_TREE, &linked, err);
	if (r >= 0)
		g->linked = linked;
	return r;
}

/* --- both ------------------------------------------------------------------------------- */

int clone_git_prepare(struct task *task, const struct snapshot *start, const char *project,
		      const struct engine_clone_options *options, struct engine_clones *told,
		      struct clone_git *ret, struct err *err)
{
	int r;

	*ret = (struct clone_git){ .store = task->engine.store };
	/* Something in a clone may have written such files, so they may lead anywhere. */
	if (start->clone)
		return 0;
	r = bring(task, start, project, options, told, ret, err);
	return r < 0 ? r : lead_inside(start, project, told, ret, err);
}

int clone_git_put(struct batch *b, const struct clone_git *g, const struct object_id *start,
		  struct object_id *ret, struct root *ret_root, struct err *err)
{
	const struct object_id *tree = object_id_is_zero(&g->linked) ? start : &g->linked;
	const char *rest = g->real.own ? g->real.own + strlen(g->real.common) : "";
	const struct gitdir_graft graft = {
		.tree = *tree,
		.common = g->common,
		.own = rest + (*rest == '/'),
		.worktrees = (const char *const *)g->worktrees,
		.n_worktrees = g->n_worktrees,
	};
	int r;

	if (!object_id_is_zero(&g->common)) {
		r = gitdir_graft(b, &graft, ret, ret_root, err);
		return r < 0 ? err_wrap(err, r, "bringing '%s'", g->real.own) : r;
	}
	r = batch_pin(b, tree, err);
	if (r < 0)
		return r;
	*ret = *tree;
	return root_get(g->store, tree, ret_root, err);
}
