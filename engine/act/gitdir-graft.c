#include "engine/act/gitdir-graft-i.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/path.h"
#include "base/text.h"
#include "base/vec.h"
#include "cowfs/store/cache.h"
#include "cowfs/store/tree-edit.h"
#include "engine/find/gitdir-i.h"
#include "snapshot/capture/capture.h"

#define GIT          ".git"
#define DEPTH_MAX    64
#define MODULES      "modules"
#define WORKTREES    "worktrees"
#define SETTINGS_MAX ((uint64_t)4 << 20)

static const struct cache_limits limits = { .chunk_bytes = 1 << 16, .meta_bytes = 1 << 20 };

/* --- which names a worktree has --------------------------------------------------------- */

/* Of the common directory: what git shares among worktrees (gitrepository-layout(5)). */
static const char *const shared[] = {
	"annex",    "branches", "common",   "config",  "description", "hooks",
	"info",     "lfs",      "logs",     "objects", "packed-refs", "refs",
	"reftable", "remotes",  "rr-cache", "shallow", "svn",
};

/* What the main worktree has for itself in those. */
static const char *const not_shared[] = {
	"info/sparse-checkout", "logs/HEAD",   "logs/refs/bisect", "logs/refs/rewritten",
	"logs/refs/worktree",   "refs/bisect", "refs/rewritten",   "refs/worktree",
};

/* In the worktree's own directory: what ties it to the real repository and its processes. */
static const char *const ties[] = { "commondir", "gc.pid", "gitdir", "locked", "worktrees" };

static bool is_among(const char *const *list, size_t n, const char *path)
{
	return VEC_HAS(one, list, n, strcmp(*one, path) == 0);
}

static bool is_lock(const char *path)
{
	const size_t len = strlen(path);

	return len > 5 && strcmp(path + len - 5, ".lock") == 0;
}

/* Is it the directory of another worktree that is needed, or the one that holds those? */
static bool takes_worktree(const struct gitdir_graft *g, const char *path)
{
	const char *name = path + strlen(WORKTREES);

	if (*name == '\0')
		return g->n_worktrees > 0;
	return strchr(name + 1, '/') || is_among(g->worktrees, g->n_worktrees, name + 1);
}

static bool takes_common(const struct gitdir_graft *g, const char *path)
{
	if (path_is_within(path, WORKTREES))
		return takes_worktree(g, path);
	if (!strchr(path, '/'))
		return is_among(shared, ARRAY_LEN(shared), path);
	return !is_among(not_shared, ARRAY_LEN(not_shared), path);
}

static bool takes_own(const char *path)
{
	return strchr(path, '/') || (!is_among(ties, ARRAY_LEN(ties), path) && !is_lock(path));
}

/* Does this directory of the common one hold something that is left out? */
static bool holds_not_shared(const char *path)
{
	const size_t len = strlen(path);

	if (strcmp(path, WORKTREES) == 0)
		return true;
	return VEC_HAS(it, not_shared, ARRAY_LEN(not_shared),
		       strncmp(*it, path, len) == 0 && (*it)[len] == '/');
}

/* A directory that may hold repositories of submodules, whose settings are to be changed? */
static bool holds_modules(const char *path)
{
	static const char *const never[] = { "hooks", "info", "lfs", "logs", "objects", "refs" };
	const size_t len = strlen(MODULES);
	const char *slash = strrchr(path, '/');

	if (strncmp(path, MODULES, len) != 0 || (path[len] != '\0' && path[len] != '/'))
		return false;
	return !slash || !is_among(never, ARRAY_LEN(never), slash + 1);
}

static bool is_settings(const char *path)
{
	const char *slash = strrchr(path, '/');

	if (!slash)
		return strcmp(path, "config") == 0 || strcmp(path, "config.worktree") == 0;
	return strncmp(path, MODULES "/", strlen(MODULES) + 1) == 0 &&
	       strcmp(slash, "/config") == 0;
}

/* --- settings --------------------------------------------------------------------------- */

static int load(struct store *s, const struct tree_entry *e, struct buf *out, struct err *err)
{
	const struct content c = tree_entry_content(e);
	CLEANUP(content_reader_free_p) struct content_reader *rd = NULL;
	void *to = c.size > 0 ? buf_extend(out, c.size) : NULL;
	ssize_t n;
	int r;

	if (c.size == 0)
		return 0;
	if (!to)
		return err_nomem(err);
	r = content_reader_new(s, &c, &rd, err);
	if (r < 0)
		return r;
	n = content_reader_read(rd, 0, to, c.size, err);
	if (n < 0)
		return (int)n;
	return (uint64_t)n == c.size ? 0 : err_set(err, -EBADMSG, "the content ends early");
}

/* Drop the settings that say where the work tree is: they are wrong in a clone. */
static int clean_settings(struct batch *b, struct tree_entry *e, struct err *err)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT, clean = BUF_INIT;
	struct gitdir_settings said = { 0 };
	struct content c;
	int r;

	if (!S_ISREG(e->mode) || e->form == TREE_LINK || e->size > SETTINGS_MAX)
		return 0;
	r = load(batch_store(b), e, &text, err);
	if (r < 0)
		return r;
	r = gitdir_read_settings((const char *)text.data, text.len, &clean, &said, err);
	free(said.worktree);
	if (r < 0)
		return r;
	r = content_put(b, clean.data, clean.len, &c, err);
	if (r < 0)
		return r;
	tree_entry_set_content(e, &c);
	return r;
}

/* --- two directories become one --------------------------------------------------------- */

/* One of the two directories; `at` is the next name. */
struct side {
	struct tree_iter *it; /* owned; NULL: there is no such directory */
	struct tree_entry at;
	bool there;
};

static void side_done(struct side *s)
{
	tree_iter_free(s->it);
}

static int side_step(struct side *s, struct err *err)
{
	int r = s->it ? tree_iter_next(s->it, &s->at, err) : 0;

	s->there = r > 0;
	return r;
}

static int side_open(struct side *s, struct store *store, const struct object_id *tree,
		     struct err *err)
{
	int r;

	if (!tree)
		return 0;
	r = tree_iter_new(store, tree, &s->it, err);
	return r < 0 ? r : side_step(s, err);
}

/* A joined directory. */
struct made {
	struct object_id id;
	struct tree_summary below;
	uint32_t nlink;
};

static int join(struct batch *b, const struct gitdir_graft *g, const struct object_id *common,
		const struct object_id *own, const char *path, unsigned depth, struct made *ret,
		struct err *err);

static int add(struct batch *b, struct tree_builder *to, const struct tree_entry *e,
	       const char *path, struct made *made, struct err *err)
{
	struct tree_entry put = *e;
	int r = 0;

	if (is_settings(path))
		r = clean_settings(b, &put, err);
	made->nlink += put.form == TREE_DIR;
	return r < 0 ? r : tree_builder_add(to, &put, err);
}

/* Add a directory that is joined from two, or filtered. */
static int add_joined(struct batch *b, const struct gitdir_graft *g, struct tree_builder *to,
		      const struct tree_entry *common, const struct tree_entry *own,
		      const char *path, unsigned depth, struct made *made, struct err *err)
{
	struct tree_entry put = common ? *common : *own;
	struct made in = { 0 };
	int r = join(b, g, common ? &common->id : NULL, own ? &own->id : NULL, path, depth + 1, &in,
		     err);

	if (r < 0)
		return r;
	put.id = in.id;
	put.below = in.below;
	put.nlink = in.nlink;
	return add(b, to, &put, path, made, err);
}

/* Add a name that one or both sides have. */
static int add_name(struct batch *b, const struct gitdir_graft *g, struct tree_builder *to,
		    const struct tree_entry *common, const struct tree_entry *own, const char *path,
		    unsigned depth, struct made *made, struct err *err)
{
	common = common && takes_common(g, path) ? common : NULL;
	own = own && takes_own(path) ? own : NULL;
	if (common && common->form == TREE_DIR &&
	    (own ? own->form == TREE_DIR : holds_not_shared(path)))
		return add_joined(b, g, to, common, own, path, depth, made, err);
	if (!common && own && own->form == TREE_DIR && holds_modules(path))
		return add_joined(b, g, to, NULL, own, path, depth, made, err);
	if (!common && !own)
		return 0;
	return add(b, to, own ? own : common, path, made, err);
}

static int join_sides(struct batch *b, const struct gitdir_graft *g, struct side *common,
		      struct side *own, const char *path, unsigned depth, struct tree_builder *to,
		      struct made *made, struct err *err)
{
	int r = 0;

	while (r >= 0 && (common->there || own->there)) {
		const int order = !own->there ? -1
				  : !common->there
				      ? 1
				      : tree_name_compare(common->at.name, common->at.name_len,
							  own->at.name, own->at.name_len);
		const struct tree_entry *e = order <= 0 ? &common->at : &own->at;
		AUTO_FREE char *name =
		    text_format("%s%s%.*s", path, *path ? "/" : "", (int)e->name_len, e->name);

		if (!name)
			return err_nomem(err);
		r = add_name(b, g, to, order <= 0 ? &common->at : NULL,
			     order >= 0 ? &own->at : NULL, name, depth, made, err);
		if (r < 0)
			return r;
		if (order <= 0)
			r = side_step(common, err);
		if (r < 0)
			return r;
		if (order >= 0)
			r = side_step(own, err);
	}
	return r;
}

/* `common` NULL: there is only `own`. */
static int join(struct batch *b, const struct gitdir_graft *g, const struct object_id *common,
		const struct object_id *own, const char *path, unsigned depth, struct made *ret,
		struct err *err)
{
	CLEANUP(tree_builder_free_p) struct tree_builder *to = NULL;
	CLEANUP(side_done) struct side of_common = { 0 }, of_own = { 0 };
	struct store *s = batch_store(b);
	int r;

	if (depth > DEPTH_MAX)
		return err_set(err, -ELOOP, "a repository's folders are nested too deep");
	*ret = (struct made){ .nlink = 2 };
	r = tree_builder_new(b, &to, err);
	if (r < 0)
		return r;
	r = side_open(&of_common, s, common, err);
	if (r < 0)
		return r;
	r = side_open(&of_own, s, own, err);
	if (r < 0)
		return r;
	r = join_sides(b, g, &of_common, &of_own, path, depth, to, ret, err);
	return r < 0 ? r : tree_builder_finish(to, &ret->id, &ret->below, err);
}

/* --- putting it there ------------------------------------------------------------------- */

/* Add the repository's hard-linked files to those of the tree. */
static int join_links(struct batch *b, struct root *to, const struct root *from, struct err *err)
{
	CLEANUP(tree_builder_free_p) struct tree_builder *builder = NULL;
	CLEANUP(side_done) struct side here = { 0 }, there = { 0 };
	struct store *s = batch_store(b);
	int r = tree_builder_new(b, &builder, err);

	if (r < 0)
		return r;
	r = side_open(&here, s, object_id_is_zero(&to->links) ? NULL : &to->links, err);
	if (r < 0)
		return r;
	r = side_open(&there, s, &from->links, err);
	while (r >= 0 && (here.there || there.there)) {
		const int order = !there.there ? -1
				  : !here.there
				      ? 1
				      : tree_name_compare(here.at.name, here.at.name_len,
							  there.at.name, there.at.name_len);
		struct side *next = order <= 0 ? &here : &there;

		if (next == &here ||
		    (there.at.ino >= CAPTURE_APART && there.at.ino < 2 * CAPTURE_APART))
			r = tree_builder_add(builder, &next->at, err);
		if (r < 0)
			return r;
		if (order == 0)
			r = side_step(&there, err);
		r = r < 0 ? r : side_step(next, err);
	}
	return r < 0 ? r : tree_builder_finish(builder, &to->links, &to->in_links, err);
}

static int put(struct batch *b, struct root *to, const struct root *from,
	       const struct tree_entry *git, struct object_id *ret, struct err *err)
{
	CLEANUP(cache_free_p) struct cache *cache = NULL;
	const struct tree_change change = { .name = GIT, .name_len = strlen(GIT), .entry = git };
	const struct object_id was = to->top.id;
	int r = cache_new(batch_store(b), &limits, &cache, err);

	if (r < 0)
		return r;
	r = tree_edit(b, cache, &was, &change, 1, &to->top.id, &to->top.below, err);
	if (r < 0)
		return r;
	if (git->below.links)
		r = join_links(b, to, from, err);
	/* The file gave way to a directory. */
	if (to->top.nlink > 0)
		to->top.nlink++;
	return r < 0 ? r : root_put(b, to, ret, err);
}

/* A directory below the top of a tree; *ret borrows from nothing. */
static int find_dir(struct store *s, const struct object_id *top, const char *path,
		    struct object_id *ret, struct err *err)
{
	CLEANUP(buf_done) struct buf hold = BUF_INIT;
	struct tree_entry e;
	int r = 0;

	*ret = *top;
	for (const char *at = path; *at != '\0';) {
		const size_t len = strcspn(at, "/");

		r = tree_lookup(s, ret, at, len, &e, &hold, err);
		if (r == -ENOENT || (r >= 0 && e.form != TREE_DIR))
			return err_set(err, -ENOENT, "the repository has no directory '%s'", path);
		if (r < 0)
			return r;
		*ret = e.id;
		at += len + (at[len] == '/');
	}
	return r;
}

int gitdir_graft(struct batch *b, const struct gitdir_graft *g, struct object_id *ret,
		 struct root *ret_root, struct err *err)
{
	struct store *s = batch_store(b);
	struct tree_entry git;
	struct object_id own;
	struct root to, from;
	struct made made;
	int r = batch_pin(b, &g->tree, err);

	if (r < 0)
		return r;
	r = batch_pin(b, &g->common, err);
	if (r < 0)
		return r;
	r = root_get(s, &g->tree, &to, err);
	if (r < 0)
		return r;
	r = root_get(s, &g->common, &from, err);
	if (r < 0)
		return r;
	r = find_dir(s, &from.top.id, g->own, &own, err);
	if (r < 0)
		return r;
	r = join(b, g, *g->own != '\0' ? &from.top.id : NULL, &own, "", 0, &made, err);
	if (r < 0)
		return r;
	git = from.top;
	git.name = GIT;
	git.name_len = strlen(GIT);
	git.id = made.id;
	git.below = made.below;
	git.nlink = made.nlink;
	r = put(b, &to, &from, &git, ret, err);
	*ret_root = to;
	return r;
}

/* --- later ------------------------------------------------------------------------------ */

/* *ret_git borrows from `hold`. */
static int find_carried(struct batch *b, const struct object_id *from, const struct object_id *to,
			struct root *ret_from, struct root *ret_to, struct tree_entry *ret_git,
			struct buf *hold, struct err *err)
{
	struct store *s = batch_store(b);
	int r = batch_pin(b, from, err);

	if (r < 0)
		return r;
	r = batch_pin(b, to, err);
	if (r < 0)
		return r;
	r = root_get(s, from, ret_from, err);
	if (r < 0)
		return r;
	r = root_get(s, to, ret_to, err);
	if (r < 0)
		return r;
	return tree_lookup(s, &ret_from->top.id, GIT, strlen(GIT), ret_git, hold, err);
}

int gitdir_carry(struct batch *b, const struct object_id *from, const struct object_id *to,
		 struct object_id *ret, struct err *err)
{
	CLEANUP(buf_done) struct buf hold = BUF_INIT;
	struct tree_entry git;
	struct root of, into;
	int r = find_carried(b, from, to, &of, &into, &git, &hold, err);

	if (r == -ENOENT)
		return err_set(err, r, "there is no repository to bring");
	return r < 0 ? r : put(b, &into, &of, &git, ret, err);
}
