#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "cowfs/store/root.h"
#include "engine/find/gitdir-i.h"

#define GIT ".git"

/* 1 and what stands under `.git`, 0 if nothing does.  *ret borrows from `hold`. */
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

	if (r >= 0)
		r = find_git(s, &at, &git, &hold, err);
	return r <= 0 ? r : S_ISREG(git.mode);
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
	if (r >= 0)
		r = find_git(s, &at, &git, &hold, err);
	if (r <= 0 || git.form != TREE_DIR)
		return r < 0 ? r : 0;
	return gitdir_is_file(s, project, err);
}

static int count(const char *path, char status, void *ctx, struct err *err)
{
	struct changes *c = ctx;

	(void)err;
	if (gitdir_holds(path))
		return 0;
	c->added += status == 'A';
	c->modified += status == 'M';
	c->deleted += status == 'D';
	return 0;
}

int gitdir_count_changes(struct store *s, const struct object_id *base,
			 const struct object_id *project, struct changes *ret, struct err *err)
{
	int r = gitdir_is_grafted(s, base, project, err);

	*ret = (struct changes){ 0 };
	if (r == 0)
		return changes_count(s, base, project, ret, err);
	return r < 0 ? r : changes_each(s, base, project, count, ret, err);
}

bool gitdir_holds(const char *path)
{
	const size_t len = strlen(GIT);

	return strncmp(path, GIT, len) == 0 && (path[len] == '\0' || path[len] == '/');
}
