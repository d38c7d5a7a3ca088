/*
 * Two roots of one clone are compared by their ids, so the cost depends on the difference, the
 * answer is exact, and no list of changes has to be kept. Any trace that a name was touched counts,
 * ctimes and inode numbers too: git's knowledge of a file may be newer than the token.
 */
#include "engine/api/since.h"

#include <errno.h>
#include <string.h>

#include "cowfs/store/pin.h"
#include "engine/act/acts-i.h"
#include "engine/act/hold-i.h"
#include "engine/host/host-i.h"
#include "snapshot/diff/diff.h"

#define TOO_MUCH 1 /* ends the walk */

/* Changes of a directory that decide who can reach what is below it. */
#define DIFF_OF_ALL_BELOW (DIFF_MODE | DIFF_OWNER | DIFF_XATTRS)

struct collecting {
	const char *below;
	struct strlist *paths;
};

/* What of the path lies below a directory ("": the top); NULL: it lies elsewhere. */
static const char *inside(const char *path, const char *dir)
{
	const size_t len = strlen(dir);

	if (len == 0)
		return path;
	return strncmp(path, dir, len) == 0 && path[len] == '/' ? path + len + 1 : NULL;
}

/* It is the directory that was asked for, or on the way to it. */
static bool is_above(const char *path, const char *below)
{
	return *path == '\0' || strcmp(path, below) == 0 || inside(below, path);
}

static bool is_of_git(const char *path)
{
	return strcmp(path, ".git") == 0 || inside(path, ".git");
}

static int add(const struct diff_entry *e, void *ctx, struct err *err)
{
	const struct collecting *c = ctx;
	const bool is_dir =
	    e->before && e->after && e->before->form == TREE_DIR && e->after->form == TREE_DIR;
	const char *path = inside(e->path, c->below);

	if (is_dir)
		return (e->what & DIFF_OF_ALL_BELOW) && (path || is_above(e->path, c->below))
			   ? TOO_MUCH
			   : 0;
	if (is_above(e->path, c->below))
		return TOO_MUCH;
	/* Older versions of git take a submodule for unchanged whose own commit alone is new. */
	if (path && inside(path, ".git/modules"))
		return TOO_MUCH;
	if (!path || is_of_git(path))
		return 0;
	if (c->paths->n == ENGINE_SINCE_MAX)
		return TOO_MUCH;
	return strlist_add(c->paths, path) < 0 ? err_nomem(err) : 0;
}

static int compare(struct store *s, const struct object_id *from, const struct object_id *to,
		   const char *below, struct engine_since *ret, struct err *err)
{
	static const struct diff_options options = {
		.mtimes = true,
		.links = true,
		.traces = true,
		.deep = true,
	};
	struct collecting c = { .below = below, .paths = &ret->paths };
	int r = diff_walk(s, from, to, &options, add, &c, err);

	ret->all = r == TOO_MUCH;
	if (ret->all)
		strlist_done(&ret->paths);
	return r < 0 ? r : 0;
}

/* The caller has the turn, so the clone is neither rolled back nor rebased meanwhile. */
static int tell(struct task *task, const struct live *live, const char *below, const char *token,
		struct engine_since *ret, struct err *err)
{
	struct moments *m = &task->host->moments;
	struct store *s = task->host->store;
	char name[MOMENTS_TOKEN_SIZE];
	struct layer_usage usage;
	struct object_id from;
	struct held now;
	int r;

	layer_usage(live->layer, &usage);
	r = hold_in_turn(task, live->name, &now, err);
	if (r < 0)
		return r;
	r = moments_find(m, &live->mounting, usage.switches, token, &from, err);
	if (r < 0)
		return r;
	ret->all = r == 0;
	if (r > 0) {
		r = compare(s, &from, &now.root, below, ret, err);
		store_unpin(s, OBJECT_TREE, &from);
		if (r < 0)
			return r;
	}
	r = moments_add(m, &live->mounting, usage.switches, &now.root, name, err);
	if (r < 0)
		return r;
	ret->token = strdup(name);
	return ret->token ? 0 : err_nomem(err);
}

int clone_since(struct task *task, const char *name, const char *below, const char *token,
		struct engine_since *ret, struct err *err)
{
	CLEANUP(engine_since_done) struct engine_since since = { 0 };
	CLEANUP(turn_give_p) struct turn *turn = NULL;
	struct live *live;
	int r = turns_take(&task->host->turns, name, &turn, err);

	if (r < 0)
		return r;
	live = live_find(task->host, name);
	if (!live)
		return err_set(err, -ENOENT, "clone '%s' is not mounted", name);
	r = tell(task, live, below, token, &since, err);
	if (r < 0)
		return r;
	*ret = TAKE_STRUCT(since);
	return 0;
}
