#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/path.h"
#include "cowfs/store/content.h"
#include "cowfs/store/root.h"
#include "engine/find/conflicts-i.h"
#include "engine/find/gitdir-i.h"

#define GIT      ".git"
#define PREFIX   "gitdir: "
#define MARK_MAX 8192 /* bytes of a file `.git` */

/* Find `.git`: 1 if it exists, else 0.  *ret borrows from `hold`. */
static int find_git(struct store *s, const struct root *root, struct tree_entry *ret,
		    struct buf *hold, struct err *err)
{
	int r = tree_lookup(s, &root->top.id, GIT, strlen(GIT), ret, hold, err);

	return r == -ENOENT ? 0 : r < 0 ? r : 1;
}

int gitdir_is_file(struct store *s, const struct object_id *root, struct err *err)
{
	CLEANUP(buf_done) struct buf hold = BUF_INIT;
	struct tree_entry git;
	struct root at;
	int r = root_get(s, root, &at, err);

	if (r < 0)
		return r;
	r = find_git(s, &at, &git, &hold, err);
	return r <= 0 ? r : S_ISREG(git.mode);
}

/* Find a path in the tree: 1 if it exists, else 0.  *ret borrows from `hold`. */
static int find_deep(struct store *s, const struct object_id *root, const char *path,
		     struct tree_entry *ret, struct buf *hold, struct err *err)
{
	struct object_id dir;
	struct root at;
	int r = root_get(s, root, &at, err);

	if (r < 0)
		return r;
	for (ret->id = at.top.id; *path != '\0';) {
		const size_t len = strcspn(path, "/");

		dir = ret->id;
		r = tree_lookup(s, &dir, path, len, ret, hold, err);
		if (r < 0)
			return r == -ENOENT ? 0 : r;
		path += len + (path[len] == '/');
		if (*path != '\0' && ret->form != TREE_DIR)
			return 0;
	}
	return 1;
}

/* Read the path after "gitdir: "; *ret is owned, NULL if there is none. */
static int read_value(struct store *s, const struct tree_entry *e, char **ret, struct err *err)
{
	const struct content c = tree_entry_content(e);
	CLEANUP(content_reader_free_p) struct content_reader *rd = NULL;
	char text[MARK_MAX + 1];
	const size_t before = strlen(PREFIX);
	ssize_t n;
	int r = content_reader_new(s, &c, &rd, err);

	*ret = NULL;
	if (r < 0)
		return r;
	n = content_reader_read(rd, 0, text, c.size, err);
	if (n < 0)
		return (int)n;
	text[n] = '\0';
	if (strncmp(text, PREFIX, before) != 0)
		return 0;
	*ret = strndup(text + before, strcspn(text + before, "\r\n"));
	return *ret ? 0 : err_nomem(err);
}

int gitdir_read_mark(struct store *s, const struct object_id *root, const char *path, char **ret,
		     struct err *err)
{
	CLEANUP(buf_done) struct buf hold = BUF_INIT;
	struct tree_entry e = { 0 };
	int r = find_deep(s, root, path, &e, &hold, err);

	*ret = NULL;
	if (r <= 0 || !S_ISREG(e.mode) || e.form == TREE_LINK || e.size == 0 || e.size > MARK_MAX)
		return r < 0 ? r : 0;
	return read_value(s, &e, ret, err);
}

int gitdir_leads_out(struct store *s, const struct object_id *root, const char *project,
		     const char *path, char **ret, struct err *err)
{
	AUTO_FREE char *named = NULL, *mark = path_join(project, path), *to = NULL;
	int r = gitdir_read_mark(s, root, path, &named, err);

	*ret = NULL;
	if (r < 0 || !named)
		return r;
	if (mark && strrchr(mark, '/'))
		*strrchr(mark, '/') = '\0';
	to = mark ? path_clean(mark, named) : NULL;
	if (!to)
		return err_nomem(err);
	if (named[0] == '/' || !path_is_below(to, project))
		*ret = TAKE_PTR(to);
	return 0;
}

int gitdir_is_grafted(struct store *s, const struct object_id *clone,
		      const struct object_id *project, struct err *err)
{
	CLEANUP(buf_done) struct buf hold = BUF_INIT;
	struct tree_entry git;
	struct root at;
	int r;

	if (object_id_equal(clone, project))
		return 0;
	r = root_get(s, clone, &at, err);
	if (r < 0)
		return r;
	r = find_git(s, &at, &git, &hold, err);
	if (r <= 0 || git.form != TREE_DIR)
		return r < 0 ? r : 0;
	return gitdir_is_file(s, project, err);
}

/* --- comparing -------------------------------------------------------------------------- */

/* Does a file `.git` at that path name something in its tree? */
static bool stays_in(const char *path, const char *value)
{
	size_t up = 0, depth = 0;

	for (; strncmp(value + 3 * up, "../", 3) == 0; up++)
		continue;
	for (const char *at = strchr(path, '/'); at; at = strchr(at + 1, '/'))
		depth++;
	return *value != '/' && up <= depth && !strstr(value + 3 * up, "..");
}

static int is_link(struct store *s, const struct object_id *a, const struct object_id *b,
		   const char *mark, struct err *err)
{
	CLEANUP(buf_done) struct buf hold_a = BUF_INIT, hold_b = BUF_INIT;
	AUTO_FREE char *value_a = NULL, *value_b = NULL;
	struct tree_entry in_a = { 0 }, in_b = { 0 };
	int r = find_deep(s, a, mark, &in_a, &hold_a, err);

	r = r <= 0 ? r : find_deep(s, b, mark, &in_b, &hold_b, err);
	if (r <= 0 || S_ISREG(in_a.mode) != S_ISREG(in_b.mode))
		return r <= 0 ? r : in_a.form == TREE_DIR || in_b.form == TREE_DIR;
	r = gitdir_read_mark(s, a, mark, &value_a, err);
	r = r < 0 ? r : gitdir_read_mark(s, b, mark, &value_b, err);
	if (r < 0 || !value_a || !value_b)
		return r < 0 ? r : 0;
	return stays_in(mark, value_a) != stays_in(mark, value_b);
}

int gitdir_is_link(struct store *s, const struct object_id *a, const struct object_id *b,
		   const char *path)
{
	AUTO_FREE char *mark = NULL;
	struct err err = { 0 };
	size_t len;

	if (!conflicts_is_git(path, &len))
		return 0;
	mark = strndup(path, len);
	return mark ? is_link(s, a, b, mark, &err) : -ENOMEM;
}

static bool is_projects(const struct state *s)
{
	return s->kind == STATE_PROJECT || (s->kind == STATE_SNAPSHOT && !s->snapshot.clone);
}

bool gitdir_has_links(struct store *s, const struct state *a, const struct state *b)
{
	CLEANUP(snapshot_done) struct snapshot base = { 0 };
	const struct state *clones = is_projects(a) ? b : a;
	const struct catalog_id *id =
	    clones->kind == STATE_CLONE ? &clones->clone.base : &clones->snapshot.base;

	if (is_projects(a) == is_projects(b))
		return false;
	if (catalog_id_is_zero(id))
		return true; /* of a store from before bases were recorded */
	return snapshot_get(s, id, &base, NULL) >= 0 && base.clone;
}

struct counted {
	struct store *store;
	const struct object_id *from, *to;
};

static bool leaves_out(const char *path, const void *ctx)
{
	const struct counted *c = ctx;

	return gitdir_is_link(c->store, c->from, c->to, path) > 0;
}

int gitdir_count_changes(struct store *s, const struct object_id *base,
			 const struct object_id *project, struct changes *ret, struct err *err)
{
	const struct counted c = { .store = s, .from = base, .to = project };

	return changes_count_without(s, base, project, leaves_out, &c, ret, err);
}
