#include "engine/act/strays-i.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "cowfs/store/root.h"
#include "cowfs/store/tree-walk.h"
#include "engine/find/gitdir-i.h"
#include "engine/host/host-i.h"

#define GIT ".git"

struct search {
	struct task *task;
	struct store *store;
	const struct object_id *root;
	const char *project;
	struct engine_clones *told;
};

static bool is_git(const struct tree_entry *e)
{
	return e->name_len == strlen(GIT) && memcmp(e->name, GIT, e->name_len) == 0;
}

/* Whatever that file holds, the clone is made. */
static int look_at(struct search *w, const char *path, struct err *err)
{
	struct engine_clones *told = w->told;
	AUTO_FREE char *to = NULL, *own = NULL;
	struct err why = { 0 };

	if (gitdir_leads_out(w->store, w->root, w->project, path, &to, &why) < 0)
		engine_warn(&w->task->engine, "'%s': %s, continuing", path, why.msg);
	if (!to)
		return 0;
	own = strdup(path);
	if (!own || !VEC_ONE_MORE(told->strays, told->n_strays))
		return err_nomem(err);
	told->strays[told->n_strays++] =
	    (struct engine_stray){ .path = TAKE_PTR(own), .to = TAKE_PTR(to) };
	return 0;
}

/* Most trees have none, and many clones are made of one. */
static void note_none(struct host *h, const struct object_id *root)
{
	pthread_mutex_lock(&h->lock);
	h->no_strays = *root;
	pthread_mutex_unlock(&h->lock);
}

static int take_entry(const struct tree_entry *e, const char *path, unsigned depth, void *ctx,
		      struct err *err)
{
	if (!is_git(e))
		return 0;
	/* No worktree lies in a repository, and the top's own is looked at by itself (clone-git.c). */
	if (e->form == TREE_DIR)
		return TREE_WALK_PAST;
	return depth == 0 ? 0 : look_at(ctx, path, err);
}

int strays_find(struct task *task, const struct object_id *root, const char *project,
		struct engine_clones *told, struct err *err)
{
	struct search w = {
		.task = task,
		.store = task->engine.store,
		.root = root,
		.project = project,
		.told = told,
	};
	struct host *h = task->host;
	struct root top;
	bool known;
	int r;

	pthread_mutex_lock(&h->lock);
	known = object_id_equal(&h->no_strays, root);
	pthread_mutex_unlock(&h->lock);
	if (known)
		return 0;
	r = root_get(w.store, root, &top, err);
	if (r >= 0)
		r = tree_walk(w.store, &top.top.id, "", take_entry, &w, err);
	if (r < 0 || told->n_strays > 0)
		return r;
	note_none(h, root);
	return 0;
}

int strays_tell(struct task *task, struct captured *captured, const char *project,
		struct engine_taken *ret, struct err *err)
{
	const struct capture_report *gits = &captured->gits;
	struct err why = { 0 };

	/* A clone is not captured, and has no root there. */
	if (gits->n == 0 && gits->more == 0 && !object_id_is_zero(&captured->root))
		note_none(task->host, &captured->root);
	if (gits->n == 0)
		return 0;
	ret->strays = calloc(gits->n, sizeof(*ret->strays));
	if (!ret->strays)
		return err_nomem(err);
	for (size_t i = 0; i < gits->n; i++) {
		struct engine_stray *one = &ret->strays[ret->n_strays];

		/* Whatever that file holds, the snapshot is taken. */
		if (gitdir_leads_out(task->engine.store, &captured->root, project,
				     gits->list[i].path, &one->to, &why) < 0)
			engine_warn(&task->engine, "'%s': %s, continuing", gits->list[i].path,
				    why.msg);
		if (!one->to)
			continue;
		one->path = TAKE_PTR(gits->list[i].path);
		ret->n_strays++;
	}
	return 0;
}

int strays_refuse(const struct engine_clones *told, struct err *err)
{
	const struct engine_stray *one = told->strays;

	if (told->n_strays == 0)
		return 0;
	return err_set(
	    err, -ECANCELED,
	    "no clone is made: '%.80s' leads to '%.120s', and commits in the clone would "
	    "go there; make a clone without '--path', which gets a copy",
	    one->path, one->to);
}
