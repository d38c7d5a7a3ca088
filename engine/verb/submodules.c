#include "engine/verb/submodules-i.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/fdio.h"
#include "base/path.h"
#include "base/vec.h"
#include "engine/ask/ask-hold-i.h"
#include "engine/find/gitdir-i.h"
#include "snapshot/diff/changes.h"

#define MODULES      "modules"
#define DEPTH_MAX    32 /* of folders: names of submodules may have slashes */
#define SETTINGS_MAX ((size_t)4 << 20)

static void submodule_done(struct submodule *s)
{
	free(s->git_dir);
	free(s->in_clone);
	free(s->place);
	*s = (struct submodule){ 0 };
}

DEFINE_LIST_DONE(submodules_done, struct submodules, submodule_done)

/* --- the project's ---------------------------------------------------------------------- */

struct finding {
	const char *project;
	struct submodules *to;
};

static bool exists(const char *dir, const char *name)
{
	AUTO_FREE char *path = path_join(dir, name);
	struct stat st;

	return path && lstat(path, &st) == 0;
}

/* The work tree that the settings of a repository name, from the top of the project; or NULL. */
static char *find_place(const char *project, const char *git_dir)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT, rest = BUF_INIT;
	AUTO_FREE char *config = path_join(git_dir, "config"), *clean = NULL, *named = NULL;
	struct gitdir_settings said = { 0 };

	if (!config || fdio_read_file(AT_FDCWD, config, SETTINGS_MAX, &text, NULL) < 0 ||
	    gitdir_read_settings((const char *)text.data, text.len, &rest, &said, NULL) < 0)
		return NULL;
	named = said.worktree;
	clean = named ? path_clean(git_dir, named) : NULL;
	if (!clean || !path_is_below(clean, project) || strcmp(clean, project) == 0)
		return NULL;
	return strdup(clean + strlen(project) + 1);
}

static int add(struct finding *f, const char *dir, const char *in_clone, struct err *err)
{
	AUTO_FREE char *place = find_place(f->project, dir);
	struct submodule *one;

	if (!place)
		return 0;
	if (!VEC_ONE_MORE(f->to->list, f->to->n))
		return err_nomem(err);
	one = &f->to->list[f->to->n++];
	*one = (struct submodule){
		.git_dir = strdup(dir),
		.in_clone = strdup(in_clone),
		.place = TAKE_PTR(place),
	};
	return one->git_dir && one->in_clone ? 0 : err_nomem(err);
}

static int find_in(struct finding *f, const char *dir, const char *in_clone, unsigned depth,
		   struct err *err);

static int find_one(struct finding *f, const char *dir, const char *in_clone, const char *name,
		    unsigned depth, struct err *err)
{
	AUTO_FREE char *at = path_join(dir, name), *copy = path_join(in_clone, name);
	AUTO_FREE char *deeper = at ? path_join(at, MODULES) : NULL;
	AUTO_FREE char *deeper_copy = copy ? path_join(copy, MODULES) : NULL;
	struct stat st;
	int r;

	if (!deeper || !deeper_copy)
		return err_nomem(err);
	if (lstat(at, &st) < 0 || !S_ISDIR(st.st_mode))
		return 0;
	if (!exists(at, "HEAD") || !exists(at, "objects"))
		return find_in(f, at, copy, depth + 1, err);
	r = add(f, at, copy, err);
	return r < 0 ? r : find_in(f, deeper, deeper_copy, depth + 1, err);
}

static int find_in(struct finding *f, const char *dir, const char *in_clone, unsigned depth,
		   struct err *err)
{
	DIR *d = depth < DEPTH_MAX ? opendir(dir) : NULL;
	const struct dirent *e;
	int r = 0;

	if (!d)
		return 0;
	while (r >= 0 && (e = readdir(d)))
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			r = find_one(f, dir, in_clone, e->d_name, depth, err);
	closedir(d);
	return r;
}

/* --- which the clone changed ------------------------------------------------------------ */

struct marking {
	const struct submodules *of;
	bool *changed; /* one for each */
};

static int mark(const char *path, char status, void *ctx, struct err *err)
{
	struct marking *m = ctx;

	for (size_t i = 0; i < m->of->n; i++) {
		const char *dir = m->of->list[i].in_clone;
		const size_t len = strlen(dir);

		if (strncmp(path, dir, len) == 0 && path[len] == '/' &&
		    strncmp(path + len + 1, MODULES "/", strlen(MODULES) + 1) != 0)
			m->changed[i] = true;
	}
	return 0;
}

static int hold_both(struct engine *e, struct store *s, const char *name, struct hold *h,
		     struct err *err)
{
	CLEANUP(clone_done) struct clone clone = { 0 };
	const struct engine_watch watch = { 0 };
	char hex[CATALOG_HEX_SIZE];
	int r = clone_find(s, name, &clone, err);

	if (r < 0)
		return r;
	r = state_find(e, s, catalog_id_hex(&clone.base, hex), &h->states[0], err);
	h->n = r >= 0;
	if (r < 0)
		return engine_as_damage(err, r);
	r = state_find(e, s, name, &h->states[1], err);
	h->n += r >= 0;
	return r < 0 ? r : hold_open(e, h, &watch, err);
}

static int keep_changed(struct engine *e, const char *clone, struct submodules *of, struct err *err)
{
	CLEANUP(hold_done) struct hold h = HOLD_INIT;
	AUTO_FREE bool *changed = calloc(of->n, sizeof(*changed));
	struct marking m = { .of = of, .changed = changed };
	struct store *s;
	size_t kept = 0;
	int r;

	if (!changed)
		return err_nomem(err);
	r = engine_store(e, STORE_READ, &s, err);
	if (r < 0)
		return r;
	r = hold_both(e, s, clone, &h, err);
	if (r < 0)
		return r;
	r = changes_each(s, &h.held[0].root, &h.held[1].root, mark, &m, err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < of->n; i++) {
		struct submodule one = of->list[i];

		of->list[i] = (struct submodule){ 0 };
		if (changed[i])
			of->list[kept++] = one;
		else
			submodule_done(&one);
	}
	of->n = kept;
	return 0;
}

int submodules_changed(struct engine *e, const char *clone, const char *project,
		       const char *git_dir, struct submodules *ret, struct err *err)
{
	CLEANUP(submodules_done) struct submodules found = { 0 };
	AUTO_FREE char *dir = path_join(git_dir, MODULES);
	struct finding f = { .project = project, .to = &found };
	int r;

	*ret = found;
	if (!dir)
		return err_nomem(err);
	r = find_in(&f, dir, ".git/" MODULES, 0, err);
	if (r < 0 || found.n == 0)
		return r;
	r = keep_changed(e, clone, &found, err);
	if (r < 0)
		return r;
	*ret = TAKE_STRUCT(found);
	return 0;
}
