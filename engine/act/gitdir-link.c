#include "engine/act/gitdir-link-i.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/path.h"
#include "base/text.h"
#include "base/vec.h"
#include "cowfs/store/cache.h"
#include "cowfs/store/tree-edit.h"
#include "engine/find/conflicts-i.h"

#define GIT       ".git"
#define DEPTH_MAX 4096 /* directories: as deep as a path can be */

static const struct cache_limits limits = { .chunk_bytes = 1 << 16, .meta_bytes = 1 << 20 };

void gitdir_links_done(struct gitdir_links *l)
{
	for (size_t i = 0; i < l->n; i++) {
		free(l->list[i].path);
		free(l->list[i].value);
	}
	free(l->list);
	*l = (struct gitdir_links){ 0 };
}

/* --- which ------------------------------------------------------------------------------ */

static int find_below(const char *path, const char *dir, const char *as, char **ret)
{
	const char *rest = path + strlen(dir);

	rest += strspn(rest, "/");
	*ret = text_format("%s%s%s", as, *as && *rest ? "/" : "", rest);
	if (!*ret)
		return -ENOMEM;
	return 0;
}

int gitdir_find_copy(const char *project, const struct gitdir *git, const char *leads_to,
		     char **ret, struct err *err)
{
	AUTO_FREE char *real = realpath(leads_to, NULL);
	AUTO_FREE char *worktrees = git->common ? path_join(git->common, "worktrees") : NULL;
	const char *to = real ? real : leads_to;
	int r = 0;

	*ret = NULL;
	if (git->own && path_is_below(to, git->own))
		r = find_below(to, git->own, GIT, ret);
	else if (worktrees && path_is_below(to, worktrees))
		r = find_below(to, git->common, GIT, ret);
	else if (path_is_below(to, project) && strcmp(to, project) != 0)
		r = find_below(to, project, "", ret);
	return r < 0 ? err_nomem(err) : 0;
}

static int add_value(struct gitdir_links *l, const char *path, const char *value, struct err *err)
{
	struct gitdir_link *one;

	if (!VEC_ONE_MORE(l->list, l->n))
		return err_nomem(err);
	one = &l->list[l->n++];
	*one = (struct gitdir_link){ .path = strdup(path), .value = strdup(value) };
	return one->path && one->value ? 0 : err_nomem(err);
}

int gitdir_links_add(struct gitdir_links *l, const char *path, const char *to, struct err *err)
{
	CLEANUP(buf_done) struct buf value = BUF_INIT;

	for (const char *at = strchr(path, '/'); at; at = strchr(at + 1, '/'))
		if (buf_append_str(&value, "../") < 0)
			return err_nomem(err);
	if (buf_append_str(&value, to) < 0 || !buf_str(&value))
		return err_nomem(err);
	return add_value(l, path, buf_str(&value), err);
}

/* What changed from the base of a clone to its project. */
struct carrying {
	struct engine *engine;
	const char *path; /* of the project */
	const struct object_id *base, *project;
	struct gitdir_links *to;
};

/* A file that the clone does not have.  Where it leads there is no copy, but nothing real either. */
static int carry_new(struct carrying *c, const char *path, struct err *err)
{
	CLEANUP(gitdir_done) struct gitdir git = { 0 };
	AUTO_FREE char *leads_to = NULL, *copy = NULL;
	struct err why = { 0 };
	int r = gitdir_leads_out(c->engine->store, c->project, c->path, path, &leads_to, err);

	if (r < 0 || !leads_to)
		return r;
	if (gitdir_find(c->engine, c->path, &git, &why) < 0)
		gitdir_done(&git);
	r = gitdir_find_copy(c->path, &git, leads_to, &copy, err);
	return r < 0 || !copy ? r : gitdir_links_add(c->to, path, copy, err);
}

static int carry_one(const char *path, char status, void *ctx, struct err *err)
{
	struct carrying *c = ctx;
	struct store *s = c->engine->store;
	AUTO_FREE char *value = NULL;
	size_t len;
	int r;

	if (!conflicts_is_git(path, &len) || path[len] != '\0' || len == strlen(GIT))
		return 0;
	if (status == 'A')
		return carry_new(c, path, err);
	if (gitdir_is_link(s, c->base, c->project, path) <= 0)
		return 0;
	r = gitdir_read_mark(s, c->base, path, &value, err);
	return r < 0 || !value ? r : add_value(c->to, path, value, err);
}

int gitdir_links_carry(struct engine *e, const char *path, const struct object_id *base,
		       const struct object_id *project, struct gitdir_links *ret, struct err *err)
{
	struct carrying c = {
		.engine = e,
		.path = path,
		.base = base,
		.project = project,
		.to = ret,
	};

	return changes_each(e->store, base, project, carry_one, &c, err);
}

/* --- the tree --------------------------------------------------------------------------- */

struct linking {
	struct batch *batch;
	struct cache *cache;
};

/* A changed name of a directory. */
struct edit {
	struct tree_entry entry; /* borrows from `hold` */
	struct buf hold;
};

struct edits {
	struct edit *list; /* owned */
	size_t n;
};

static void edits_done(struct edits *e)
{
	VEC_FREE(it, e->list, e->n, buf_done(&it->hold));
}

static int by_path(const void *a, const void *b)
{
	const struct gitdir_link *x = a, *y = b;

	return strcmp(x->path, y->path);
}

static int by_name(const void *a, const void *b)
{
	const struct tree_change *x = a, *y = b;

	return tree_name_compare(x->name, x->name_len, y->name, y->name_len);
}

static int write_value(struct linking *k, const struct gitdir_link *link, struct tree_entry *e,
		       struct err *err)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	struct content c;
	int r;

	if (buf_printf(&text, "gitdir: %s\n", link->value) < 0)
		return err_nomem(err);
	r = content_put(k->batch, text.data, text.len, &c, err);
	if (r >= 0)
		tree_entry_set_content(e, &c);
	return r;
}

static int link_dir(struct linking *k, const struct gitdir_link *list, size_t n, size_t at,
		    const struct object_id *dir, unsigned depth, struct object_id *ret,
		    struct tree_summary *ret_below, struct err *err);

/* All links that begin with the same name; 1 if that changes the entry. */
static int link_name(struct linking *k, const struct gitdir_link *list, size_t n, size_t at,
		     unsigned depth, struct tree_entry *e, struct err *err)
{
	const struct object_id was = e->id;
	const size_t len = strcspn(list->path + at, "/");
	int r;

	if (list->path[at + len] == '\0') {
		if (!S_ISREG(e->mode) || e->form == TREE_LINK)
			return 0;
		r = write_value(k, list, e, err);
		return r < 0 ? r : 1;
	}
	if (e->form != TREE_DIR)
		return 0;
	r = link_dir(k, list, n, at + len + 1, &was, depth + 1, &e->id, &e->below, err);
	return r < 0 ? r : 1;
}

static int edit_names(struct linking *k, const struct gitdir_link *list, size_t n, size_t at,
		      const struct object_id *dir, unsigned depth, struct edits *to,
		      struct err *err)
{
	size_t same;
	int r = 0;

	for (size_t i = 0; i < n && r >= 0; i += same) {
		const char *name = list[i].path + at;
		const size_t len = strcspn(name, "/");
		struct edit *one = &to->list[to->n];

		for (same = 1; i + same < n && strncmp(list[i + same].path + at, name, len) == 0 &&
			       list[i + same].path[at + len] == '/';
		     same++)
			continue;
		to->n++;
		r = tree_lookup(batch_store(k->batch), dir, name, len, &one->entry, &one->hold,
				err);
		if (r >= 0)
			r = link_name(k, list + i, same, at, depth, &one->entry, err);
		if (r == 0 || r == -ENOENT) {
			buf_done(&to->list[--to->n].hold);
			*one = (struct edit){ 0 };
			r = 0;
		}
	}
	return r;
}

static int link_dir(struct linking *k, const struct gitdir_link *list, size_t n, size_t at,
		    const struct object_id *dir, unsigned depth, struct object_id *ret,
		    struct tree_summary *ret_below, struct err *err)
{
	CLEANUP(edits_done) struct edits edits = { .list = calloc(n, sizeof(struct edit)) };
	AUTO_FREE struct tree_change *changes = calloc(n, sizeof(*changes));
	int r;

	if (!edits.list || !changes)
		return err_nomem(err);
	if (depth > DEPTH_MAX)
		return err_set(err, -ELOOP, "folders are nested too deep");
	r = edit_names(k, list, n, at, dir, depth, &edits, err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < edits.n; i++)
		changes[i] = (struct tree_change){
			.name = edits.list[i].entry.name,
			.name_len = edits.list[i].entry.name_len,
			.entry = &edits.list[i].entry,
		};
	qsort(changes, edits.n, sizeof(*changes), by_name);
	return tree_edit(k->batch, k->cache, dir, changes, edits.n, ret, ret_below, err);
}

int gitdir_link(struct batch *b, const struct object_id *root, const struct gitdir_links *links,
		struct object_id *ret, struct err *err)
{
	CLEANUP(cache_free_p) struct cache *cache = NULL;
	struct linking k = { .batch = b };
	struct object_id was;
	struct root to;
	int r;

	*ret = *root;
	if (links->n == 0)
		return 0;
	r = batch_pin(b, root, err);
	if (r < 0)
		return r;
	r = root_get(batch_store(b), root, &to, err);
	if (r < 0)
		return r;
	r = cache_new(batch_store(b), &limits, &cache, err);
	if (r < 0)
		return r;
	k.cache = cache;
	was = to.top.id;
	qsort(links->list, links->n, sizeof(*links->list), by_path);
	r = link_dir(&k, links->list, links->n, 0, &was, 0, &to.top.id, &to.top.below, err);
	return r < 0 ? r : root_put(b, &to, ret, err);
}
