#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/path.h"
#include "engine/engine-i.h"

bool catalog_id_same(const struct catalog_id *a, const struct catalog_id *b)
{
	return memcmp(a->b, b->b, sizeof(a->b)) == 0;
}

bool catalog_id_is_zero(const struct catalog_id *id)
{
	static const struct catalog_id zero;

	return catalog_id_same(id, &zero);
}

/* --- registered ------------------------------------------------------------------------- */

struct search {
	const char *dir;
	bool exact;           /* only the directory itself will do */
	struct catalog_id id; /* of the nearest so far */
	size_t path_len;      /* of its path; 0: none yet */
};

static int on_project(const struct project *p, void *ctx, struct err *err)
{
	struct search *search = ctx;
	size_t len = strlen(p->path);

	(void)err;
	if (search->exact ? strcmp(search->dir, p->path) != 0
			  : !path_is_below(search->dir, p->path))
		return 0;
	if (len > search->path_len) {
		search->path_len = len;
		search->id = p->id;
	}
	return 0;
}

/* 1 if there is one, 0 if not. */
static int find_registered(struct store *s, const char *dir, bool exact, struct project *ret,
			   struct err *err)
{
	struct search search = { .dir = dir, .exact = exact };
	int r;

	r = project_each(s, on_project, &search, err);
	if (r < 0 || search.path_len == 0)
		return r;
	r = project_get(s, &search.id, ret, err);
	return r < 0 ? engine_as_damage(err, r) : 1;
}

static int no_project(const char *dir, struct err *err)
{
	return err_set(err, -ENXIO, "'%s' is in no project that has snapshots", dir);
}

int project_holding(struct store *s, const char *dir, struct project *ret, struct err *err)
{
	int r = find_registered(s, dir, false, ret, err);

	if (r == 0)
		return no_project(dir, err);
	return r < 0 ? r : 0;
}

int engine_project(struct engine *e, struct store **ret_store, struct project *ret, struct err *err)
{
	struct store *s;
	int r;

	r = engine_store(e, STORE_READ, &s, err);
	if (r == -ENOENT)
		return no_project(e->dir, err);
	if (r >= 0)
		r = project_holding(s, e->dir, ret, err);
	if (r >= 0)
		*ret_store = s;
	return r;
}

/* --- not registered yet ----------------------------------------------------------------- */

/* What may be a project only if someone says so, by the name to call it; NULL for all else. */
static const char *too_wide(const char *dir)
{
	const char *home = getenv("HOME");
	AUTO_FREE char *real = home && *home == '/' ? realpath(home, NULL) : NULL;

	if (strcmp(dir, "/") == 0)
		return "the root of all";
	return real && strcmp(dir, real) == 0 ? "your home directory" : NULL;
}

/* Git's own mark: a repository, or a file that leads to one. */
static bool is_work_tree(const char *dir)
{
	AUTO_FREE char *git = path_join(dir, ".git"), *head = path_join(dir, ".git/HEAD");
	struct stat st;

	if (!git || !head || lstat(git, &st) < 0)
		return false;
	return S_ISREG(st.st_mode) || lstat(head, &st) == 0;
}

/* Cut `dir` down to the work tree that holds it; unchanged if there is none. */
static int to_work_tree(char *dir, struct err *err)
{
	AUTO_FREE char *up = strdup(dir);

	if (!up)
		return err_nomem(err);
	while (strcmp(up, "/") != 0) {
		/* Someone's dot files in git do not make all of the home directory one project. */
		if (!too_wide(up) && is_work_tree(up)) {
			strcpy(dir, up);
			return 0;
		}
		*strrchr(up, '/') = '\0';
		if (*up == '\0')
			strcpy(up, "/");
	}
	return 0;
}

/* The directory the user named, as a path that stays the same from wherever it is named. */
static int named_dir(struct engine *e, const char *named, char **ret, struct err *err)
{
	AUTO_FREE char *path = named[0] == '/' ? strdup(named) : path_join(e->dir, named);
	AUTO_FREE char *real = NULL;
	struct stat st;

	if (!path)
		return err_nomem(err);
	real = realpath(path, NULL);
	if (!real || stat(real, &st) < 0)
		return err_sys(err, "directory '%s'", named);
	if (!S_ISDIR(st.st_mode))
		return err_set(err, -ENOTDIR, "'%s' is not a directory", named);
	*ret = TAKE_PTR(real);
	return 0;
}

int project_choose(struct engine *e, struct store *s, const char *named, struct project *ret,
		   struct err *err)
{
	CLEANUP(project_done) struct project p = { 0 };
	AUTO_FREE char *dir = NULL;
	int r;

	if (named)
		r = named_dir(e, named, &dir, err);
	else
		r = (dir = strdup(e->dir)) ? 0 : err_nomem(err);
	if (r < 0)
		return r;
	r = s ? find_registered(s, dir, named != NULL, &p, err) : 0;
	if (r < 0)
		return r;
	if (r == 0) {
		r = named ? 0 : to_work_tree(dir, err);
		if (r < 0)
			return r;
		if (!named && too_wide(dir))
			return err_set(err, -ECANCELED,
				       "'%s' is %s, which is a project only if you name it", dir,
				       too_wide(dir));
		p.path = TAKE_PTR(dir);
	}
	*ret = p;
	p = (struct project){ 0 };
	return 0;
}
