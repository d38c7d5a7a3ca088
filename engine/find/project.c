#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/path.h"
#include "engine/api/projects.h"
#include "engine/find/engine-i.h"

/* --- registered ------------------------------------------------------------------------- */

struct search {
	const char *dir;
	bool exact; /* not a parent directory */
	enum project_hidden hidden;
	struct catalog_id id; /* of the nearest so far */
	size_t path_len;      /* 0: none found yet */
};

static int on_project(const struct project *p, void *ctx, struct err *err)
{
	struct search *search = ctx;
	size_t len = strlen(p->path);

	if (p->hidden != (uint64_t)search->hidden)
		return 0;
	if (search->exact ? strcmp(search->dir, p->path) != 0
			  : !path_is_below(search->dir, p->path))
		return 0;
	if (len > search->path_len) {
		search->path_len = len;
		search->id = p->id;
	}
	return 0;
}

/* 1 if found, else 0. */
static int search_registered(struct store *s, struct search *search, struct project *ret,
			     struct err *err)
{
	int r = project_each(s, on_project, search, err);

	if (r < 0 || search->path_len == 0)
		return r;
	r = project_get(s, &search->id, ret, err);
	return r < 0 ? engine_as_damage(err, r) : 1;
}

static int find_registered(struct store *s, const char *dir, bool exact, struct project *ret,
			   struct err *err)
{
	return search_registered(s, &(struct search){ .dir = dir, .exact = exact }, ret, err);
}

int project_id_at(struct store *s, const char *path, char hex[CATALOG_HEX_SIZE])
{
	struct search search = { .dir = path, .exact = true };
	int r = project_each(s, on_project, &search, NULL);

	if (r < 0 || search.path_len == 0)
		return r;
	catalog_id_hex(&search.id, hex);
	return 1;
}

static int no_project(const char *dir, struct err *err)
{
	return err_set(err, -ENXIO, "'%s' is in no project that has snapshots", dir);
}

int engine_no_project(const struct engine *e, struct err *err)
{
	return no_project(e->dir, err);
}

int project_holding(struct store *s, const char *dir, struct project *ret, struct err *err)
{
	int r = find_registered(s, dir, false, ret, err);

	if (r == 0)
		return no_project(dir, err);
	return r < 0 ? r : 0;
}

int project_still(struct store *s, const struct project *p, struct err *err)
{
	CLEANUP(project_done) struct project now = { 0 };
	int r = catalog_id_is_zero(&p->id) ? 0 : project_get(s, &p->id, &now, err);

	if (r == -ENOENT || (now.path && strcmp(now.path, p->path) != 0))
		return err_set(err, -ENXIO, "project '%s' was %s just now", p->path,
			       r < 0 ? "forgotten" : "moved");
	return r;
}

int project_around(struct engine *e, struct store *s, struct project *ret, struct err *err)
{
	AUTO_FREE char *name = clone_here(e);
	CLEANUP(clone_done) struct clone clone = { 0 };
	int r = name ? clone_get(s, name, &clone, err) : -ENOENT;

	if (r == -ENOENT)
		return project_holding(s, e->dir, ret, err);
	return r < 0 ? r : engine_as_damage(err, project_get(s, &clone.project, ret, err));
}

int engine_project(struct engine *e, struct store **ret_store, struct project *ret, struct err *err)
{
	struct store *s;
	int r = engine_store(e, STORE_READ, &s, err);

	if (r == -ENOENT)
		return no_project(e->dir, err);
	if (r < 0)
		return r;
	r = project_around(e, s, ret, err);
	if (r < 0)
		return r;
	*ret_store = s;
	return r;
}

/* --- not registered yet ----------------------------------------------------------------- */

/* What to call a directory that not even git makes a project; NULL for any other. */
static const char *too_wide(const struct engine *e, const char *dir)
{
	if (strcmp(dir, "/") == 0)
		return "the root of the file system";
	return e->home && strcmp(dir, e->home) == 0 ? "your home directory" : NULL;
}

/* The same without a work tree of git's there.  What lies below these may be anybody's project. */
static const char *of_many(const struct engine *e, const char *dir)
{
	static const char *const folders[] = {
		"/bin",  "/boot", "/dev", "/etc",  "/home", "/lib", "/media", "/mnt", "/opt",
		"/proc", "/root", "/run", "/sbin", "/srv",  "/sys", "/usr",   "/var", "/Users",
	};
	const char *what = too_wide(e, dir);
	struct stat st;

	for (size_t i = 0; i < ARRAY_LEN(folders) && !what; i++)
		what = strcmp(dir, folders[i]) == 0 ? "a system folder" : NULL;
	/* As /tmp is. */
	if (!what && lstat(dir, &st) == 0 && (st.st_mode & S_ISVTX) && (st.st_mode & S_IWOTH))
		what = "a folder that all users share";
	return what;
}

bool project_is_work_tree(const char *dir)
{
	AUTO_FREE char *git = path_join(dir, ".git"), *head = path_join(dir, ".git/HEAD");
	struct stat st;

	if (!git || !head || lstat(git, &st) < 0)
		return false;
	return S_ISREG(st.st_mode) || lstat(head, &st) == 0;
}

/* Cut `dir` down to the work tree that holds it; unchanged if there is none. */
static int to_work_tree(const struct engine *e, char *dir, struct err *err)
{
	AUTO_FREE char *up = strdup(dir);

	if (!up)
		return err_nomem(err);
	while (strcmp(up, "/") != 0) {
		/* Dot files kept in git do not make the whole home directory a project. */
		if (!too_wide(e, up) && project_is_work_tree(up)) {
			memcpy(dir, up, strlen(up) + 1);
			return 0;
		}
		*strrchr(up, '/') = '\0';
		if (*up == '\0')
			memcpy(up, "/", sizeof("/"));
	}
	return 0;
}

int project_named(struct engine *e, const char *named, char **ret, struct err *err)
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

/* Choose by the directory in which the command was given. */
static int choose_around(struct engine *e, char *dir, struct err *err)
{
	const char *what;
	int r = to_work_tree(e, dir, err);

	if (r < 0 || (!too_wide(e, dir) && project_is_work_tree(dir)))
		return r;
	what = of_many(e, dir);
	if (!what)
		return 0;
	return err_set(err, -ECANCELED, "'%s' is %s, " ENGINE_ONLY_IF_NAMED, dir, what);
}

int project_choose(struct engine *e, struct store *s, const char *named, struct project *ret,
		   struct err *err)
{
	CLEANUP(project_done) struct project p = { 0 };
	AUTO_FREE char *dir = strdup(named ? named : e->dir);
	int r;

	if (!dir)
		return err_nomem(err);
	r = engine_may_read(e, dir, err);
	if (r < 0)
		return r;
	if (s)
		r = find_registered(s, dir, named != NULL, &p, err);
	if (r < 0)
		return r;
	if (r == 0) {
		r = named ? 0 : choose_around(e, dir, err);
		if (r < 0)
			return r;
		p.path = TAKE_PTR(dir);
	}
	r = engine_may_read(e, p.path, err);
	if (r < 0)
		return r;
	*ret = TAKE_STRUCT(p);
	return 0;
}

int project_hidden_at(struct engine *e, struct store *s, const char *dir, enum project_hidden kind,
		      struct project *ret, struct err *err)
{
	struct search search = { .dir = dir, .exact = true, .hidden = kind };
	int r = engine_may_read(e, dir, err);

	if (r < 0)
		return r;
	r = search_registered(s, &search, ret, err);
	if (r != 0)
		return r < 0 ? r : 0;
	*ret = (struct project){ .path = strdup(dir), .hidden = kind };
	return ret->path ? 0 : err_nomem(err);
}
