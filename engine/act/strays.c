#include "engine/act/strays-i.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "cowfs/store/root.h"
#include "engine/find/gitdir-i.h"
#include "engine/host/host-i.h"

#define GIT       ".git"
#define DEPTH_MAX 2048 /* PATH_MAX has no room for more */

struct walk {
	struct task *task;
	struct store *store;
	const struct object_id *root;
	const char *project;
	struct engine_clones *told;
	char *path; /* owned; of the directory that is looked at; "" is the top */
};

static void walk_done(struct walk *w)
{
	free(w->path);
}

static bool is_git(const struct tree_entry *e)
{
	return e->name_len == strlen(GIT) && memcmp(e->name, GIT, e->name_len) == 0;
}

/* Whatever that file holds, the clone is made. */
static int look_at(struct walk *w, const char *path, struct err *err)
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

static int walk_dir(struct walk *w, const struct object_id *dir, unsigned depth, struct err *err);

static int take_entry(struct walk *w, const struct tree_entry *e, unsigned depth, struct err *err)
{
	AUTO_FREE char *path = NULL, *above = NULL;
	int r = 0;

	if ((is_git(e) && depth == 0) || (!is_git(e) && e->form != TREE_DIR))
		return 0; /* the top's own is looked at by itself (clone-git.c) */
	if (asprintf(&path, "%s%s%.*s", w->path, *w->path ? "/" : "", (int)e->name_len, e->name) <
	    0) {
		path = NULL;
		return err_nomem(err);
	}
	if (is_git(e) && e->form != TREE_DIR)
		return look_at(w, path, err);
	if (is_git(e))
		return 0; /* no worktree lies in there */
	above = w->path;
	w->path = TAKE_PTR(path);
	r = walk_dir(w, &e->id, depth + 1, err);
	free(w->path);
	w->path = TAKE_PTR(above);
	return r;
}

static int walk_dir(struct walk *w, const struct object_id *dir, unsigned depth, struct err *err)
{
	CLEANUP(tree_iter_free_p) struct tree_iter *it = NULL;
	struct tree_entry e;
	int r = depth > DEPTH_MAX ? err_set(err, -ELOOP, "its directories are nested too deep")
				  : tree_iter_new(w->store, dir, &it, err);

	while (r >= 0 && (r = tree_iter_next(it, &e, err)) > 0)
		r = take_entry(w, &e, depth, err);
	return r;
}

int strays_find(struct task *task, const struct object_id *root, const char *project,
		struct engine_clones *told, struct err *err)
{
	CLEANUP(walk_done) struct walk w = { .task = task,
					     .store = task->engine.store,
					     .root = root,
					     .project = project,
					     .told = told,
					     .path = strdup("") };
	struct host *h = task->host;
	struct root top;
	bool known;
	int r;

	/* Most trees have none, and many clones are made of one. */
	pthread_mutex_lock(&h->lock);
	known = object_id_equal(&h->no_strays, root);
	pthread_mutex_unlock(&h->lock);
	if (known)
		return 0;
	r = w.path ? root_get(w.store, root, &top, err) : err_nomem(err);
	if (r >= 0)
		r = walk_dir(&w, &top.top.id, 0, err);
	if (r < 0 || told->n_strays > 0)
		return r;
	pthread_mutex_lock(&h->lock);
	h->no_strays = *root;
	pthread_mutex_unlock(&h->lock);
	return 0;
}

int strays_tell(struct task *task, struct captured *captured, const char *project,
		struct engine_taken *ret, struct err *err)
{
	const struct capture_report *gits = &captured->gits;
	struct err why = { 0 };

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
