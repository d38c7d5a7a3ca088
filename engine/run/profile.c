/*
 * Where profiles are, and how one is made from its file and the profile it extends.
 *
 * The project's files are not trusted: they are opened name by name, without following symlinks,
 * and only if they are regular.
 */
#include "engine/api/profile.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/fdio.h"
#include "base/path.h"
#include "base/vec.h"
#include "engine/find/config-i.h"
#include "engine/find/engine-i.h"
#include "engine/run/profile-i.h"

#define SUFFIX      ".yaml"
#define EXTENDS_MAX 8

struct places {
	char *project; /* the project's directory; NULL: there is none here */
	char *user;    /* the folder of the user's profiles; NULL: there is no home */
	const char *home;
};

static void places_done(struct places *p)
{
	free(p->project);
	free(p->user);
}

/* --- places ------------------------------------------------------------------------------- */

static void find_user(struct engine *e, struct places *ret)
{
	ret->home = e->home;
	ret->user = config_file(e->home, "profiles");
}

/* No project here, or one that must be named, means no profiles of a project. */
static int find_project(struct engine *e, struct places *ret, struct err *err)
{
	CLEANUP(project_done) struct project project = { 0 };
	struct store *s = NULL;
	int r;

	if (engine_has_store(e) && engine_store(e, STORE_READ, &s, NULL) < 0)
		s = NULL;
	r = project_choose(e, s, NULL, &project, NULL);
	if (r == 0)
		ret->project = TAKE_PTR(project.path);
	else if (r != -ECANCELED)
		return err_wrap(err, r, "looking for the project of '%s'", e->dir);
	return 0;
}

/* The folder of an origin; -ENOENT if there is none. */
static int open_folder(const struct places *p, enum engine_profile_origin origin)
{
	AUTO_CLOSE int top = -1, snap = -1;

	if (origin == PROFILE_USER)
		return p->user ? fdio_open_read(AT_FDCWD, p->user, O_DIRECTORY) : -ENOENT;
	if (!p->project)
		return -ENOENT;
	top = fdio_open_read(AT_FDCWD, p->project, O_DIRECTORY);
	snap = top < 0 ? top : fdio_open_read(top, ".snap", O_DIRECTORY | O_NOFOLLOW);
	return snap < 0 ? snap : fdio_open_read(snap, "profiles", O_DIRECTORY | O_NOFOLLOW);
}

static bool is_missing(int r)
{
	return r == -ENOENT || r == -ENOTDIR;
}

static bool name_valid(const char *name, size_t len)
{
	if (len == 0 || len > PROFILE_NAME_MAX || strchr("-.", name[0]))
		return false;
	return VEC_ALL(it, name, len,
		       (*it >= 'a' && *it <= 'z') || (*it >= 'A' && *it <= 'Z') ||
			   (*it >= '0' && *it <= '9') || strchr("._-", *it));
}

/* --- finding ------------------------------------------------------------------------------ */

struct found {
	enum engine_profile_origin origin;
	char *file;  /* owned; NULL if it is built in */
	char *shown; /* owned */
	struct buf text;
};

static void found_done(struct found *f)
{
	free(f->file);
	free(f->shown);
	buf_done(&f->text);
}

static int read_file(int folder, const char *file, const char *shown,
		     enum engine_profile_origin origin, struct buf *out, struct err *err)
{
	AUTO_CLOSE int fd =
	    fdio_open_read(folder, file, origin == PROFILE_PROJECT ? O_NOFOLLOW : 0);
	struct stat st;
	ssize_t n;

	if (fd < 0)
		return is_missing(fd)
			   ? -ENOENT
			   : err_set(err, fd, "opening '%s' failed: %s", shown, strerror(-fd));
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return err_set(err, -EINVAL, "'%s' is no regular file", shown);
	if (buf_reserve(out, YAML_MAX + 1) < 0)
		return err_nomem(err);
	n = fdio_read(fd, out->data, YAML_MAX + 1);
	if (n < 0)
		return err_set(err, (int)n, "reading '%s' failed: %s", shown, strerror((int)-n));
	out->len = (size_t)n;
	return 0;
}

/* -ENOENT without a sentence if there is no such file. */
static int find_file(const struct places *p, enum engine_profile_origin origin, const char *name,
		     struct found *ret, struct err *err)
{
	char file[PROFILE_NAME_MAX + sizeof(SUFFIX)];
	AUTO_CLOSE int folder = open_folder(p, origin);

	if (folder < 0)
		return is_missing(folder) || folder == -ELOOP
			   ? -ENOENT
			   : err_set(err, folder, "opening the folder of profiles failed: %s",
				     strerror(-folder));
	snprintf(file, sizeof(file), "%s" SUFFIX, name);
	ret->origin = origin;
	if (origin == PROFILE_PROJECT) {
		AUTO_FREE char *dir = path_join(p->project, ".snap/profiles");

		ret->file = dir ? path_join(dir, file) : NULL;
		ret->shown = path_join(".snap/profiles", file);
	} else {
		ret->file = path_join(p->user, file);
		ret->shown = ret->file ? strdup(ret->file) : NULL;
	}
	if (!ret->file || !ret->shown)
		return err_nomem(err);
	return read_file(folder, file, ret->shown, origin, &ret->text, err);
}

static int find_profile(const struct places *p, enum engine_profile_origin from, const char *name,
			struct found *ret, struct err *err)
{
	const char *text = profile_built_in(name);
	int r = -ENOENT;

	if (!name_valid(name, strlen(name)))
		return err_set(err, -EINVAL, "'%.100s' cannot be the name of a profile", name);
	for (enum engine_profile_origin o = from; r == -ENOENT && o < PROFILE_BUILT_IN; o++) {
		found_done(ret);
		*ret = (struct found){ 0 };
		r = find_file(p, o, name, ret, err);
	}
	if (r != -ENOENT)
		return r;
	found_done(ret);
	*ret = (struct found){ .origin = PROFILE_BUILT_IN };
	if (!text)
		return err_set(err, -ENOENT, "there is no profile '%s'", name);
	ret->shown = path_join("built-in", name);
	return ret->shown && buf_append_str(&ret->text, text) == 0 ? 0 : err_nomem(err);
}

/* --- making ------------------------------------------------------------------------------- */

/* A run never writes to the project, so nothing around or inside it may be writable. */
static int spare_project(const struct profile_source *src, const struct engine_profile *p,
			 struct err *err)
{
	for (size_t i = 0; i < p->n_mounts; i++) {
		const char *host = p->mounts[i].host;

		if (p->mounts[i].writable && src->project &&
		    (path_is_below(host, src->project) || path_is_below(src->project, host)))
			return err_set(err, -ECANCELED,
				       "%s:%d:%d: 'mounts' has '%.100s' writable, and a run never "
				       "writes the project",
				       src->shown, src->said[KEY_MOUNTS].line,
				       src->said[KEY_MOUNTS].column, host);
	}
	return 0;
}

static int load_profile(const struct places *places, enum engine_profile_origin from,
			const char *name, int depth, struct engine_profile *ret, struct err *err);

static int load_base(const struct places *places, const struct profile_source *src,
		     struct engine_profile *p, int depth, struct engine_profile *ret,
		     struct err *err)
{
	const char *name = p->extends ? p->extends : "default";
	enum engine_profile_origin from = p->origin == PROFILE_PROJECT ? PROFILE_USER : p->origin;
	int r;

	/* A profile that extends its own name extends the one that it hides. */
	if (p->origin != PROFILE_PROJECT && strcmp(name, p->name) == 0)
		from = p->origin + 1;
	if (from > PROFILE_BUILT_IN)
		return 1;
	if (depth == EXTENDS_MAX)
		return err_set(err, -EINVAL, "%s:%d:%d: 'extends' leads in a circle, or too far",
			       src->shown, src->said[KEY_EXTENDS].line,
			       src->said[KEY_EXTENDS].column);
	r = load_profile(places, from, name, depth + 1, ret, err);
	if (r == -ENOENT)
		return err_set(err, -EINVAL, "%s:%d:%d: 'extends': there is no profile '%.60s'%s",
			       src->shown, src->said[KEY_EXTENDS].line,
			       src->said[KEY_EXTENDS].column, name,
			       p->origin == PROFILE_PROJECT ? " of yours or built in" : "");
	return r;
}

/* The built-in default, which nobody asked for. */
static bool is_of_nobody(const struct engine_profile *p)
{
	return p->origin == PROFILE_BUILT_IN && strcmp(p->name, "default") == 0;
}

static int load_profile(const struct places *places, enum engine_profile_origin from,
			const char *name, int depth, struct engine_profile *ret, struct err *err)
{
	CLEANUP(engine_profile_done) struct engine_profile p = { 0 }, base = { 0 };
	CLEANUP(found_done) struct found found = { 0 };
	struct profile_source src = { 0 };
	int r = find_profile(places, from, name, &found, err);

	if (r < 0)
		return r;
	src = (struct profile_source){ .shown = found.shown,
				       .project = places->project,
				       .home = places->home };
	p.name = strdup(name);
	p.origin = found.origin;
	p.file = TAKE_PTR(found.file);
	if (!p.name)
		return err_nomem(err);
	r = profile_read(&src, (const char *)found.text.data, found.text.len, &p, err);
	if (r == 0)
		r = spare_project(&src, &p, err);
	if (r == 0)
		r = load_base(places, &src, &p, depth, &base, err);
	if (r == 0 && p.origin == PROFILE_PROJECT)
		r = profile_narrows(&src, &p, &base, err);
	if (r == 0)
		r = profile_inherit(&src, &p, &base, err);
	if (r < 0)
		return r;
	p.mem_said = base.mem_said || (src.said[KEY_MEM].line > 0 && !is_of_nobody(&p));
	*ret = TAKE_STRUCT(p);
	return 0;
}

/* Built-in profiles need no project, so a run without a named profile opens no store. */
static bool user_has(const struct places *places, const char *file)
{
	AUTO_CLOSE int folder = open_folder(places, PROFILE_USER);

	return folder >= 0 && faccessat(folder, file, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

int engine_profile(struct engine *e, const char *name, struct engine_profile *ret, struct err *err)
{
	CLEANUP(places_done) struct places places = { 0 };
	int r = 0;

	find_user(e, &places);
	if (name || user_has(&places, "default" SUFFIX))
		r = find_project(e, &places, err);
	if (r < 0)
		return r;
	/* A project's profile is used only if the user names it. */
	return load_profile(&places, name ? PROFILE_PROJECT : PROFILE_USER, name ? name : "default",
			    0, ret, err);
}

/* --- listing ------------------------------------------------------------------------------ */

static int add_entry(struct engine_profiles *p, const char *name, size_t len, struct err *err)
{
	for (size_t i = 0; i < p->n; i++)
		if (strlen(p->list[i].name) == len && strncmp(p->list[i].name, name, len) == 0)
			return 0;
	if (!VEC_ONE_MORE(p->list, p->n))
		return err_nomem(err);
	p->list[p->n] = (struct engine_profile_entry){ .name = strndup(name, len) };
	if (!p->list[p->n].name)
		return err_nomem(err);
	p->n++;
	return 0;
}

static int add_folder(const struct places *places, enum engine_profile_origin origin,
		      struct engine_profiles *p, struct err *err)
{
	AUTO_CLOSE int fd = open_folder(places, origin);
	const struct dirent *d;
	DIR *dir;
	int r = 0;

	if (fd < 0)
		return 0; /* an error is reported when somebody names such a profile */
	dir = fdopendir(fd);
	if (!dir)
		return err_sys(err, "reading the folder of profiles");
	fd = -1;
	while (r == 0 && (d = readdir(dir))) {
		const size_t len = strlen(d->d_name), tail = strlen(SUFFIX);

		if (len > tail && strcmp(d->d_name + len - tail, SUFFIX) == 0 &&
		    name_valid(d->d_name, len - tail))
			r = add_entry(p, d->d_name, len - tail, err);
	}
	closedir(dir);
	return r;
}

static int by_name(const void *a, const void *b)
{
	const struct engine_profile_entry *x = a, *y = b;

	return strcmp(x->name, y->name);
}

static int fill_entry(const struct places *places, struct engine_profile_entry *entry,
		      struct err *err)
{
	CLEANUP(engine_profile_done) struct engine_profile p = { 0 };
	CLEANUP(found_done) struct found found = { 0 };

	if (load_profile(places, PROFILE_PROJECT, entry->name, 0, &p, &entry->problem) < 0)
		IGNORE_RESULT(find_profile(places, PROFILE_PROJECT, entry->name, &found, NULL),
			      "its place can be shown, whatever is wrong with it");
	entry->origin = p.name ? p.origin : found.origin;
	entry->file = p.name ? TAKE_PTR(p.file) : TAKE_PTR(found.file);
	entry->description = strdup(p.description ? p.description : "");
	return entry->description ? 0 : err_nomem(err);
}

int engine_profiles(struct engine *e, struct engine_profiles *ret, struct err *err)
{
	CLEANUP(engine_profiles_done) struct engine_profiles p = { 0 };
	CLEANUP(places_done) struct places places = { 0 };
	int r;

	find_user(e, &places);
	r = find_project(e, &places, err);
	if (r == 0)
		r = add_folder(&places, PROFILE_PROJECT, &p, err);
	if (r == 0)
		r = add_folder(&places, PROFILE_USER, &p, err);
	for (size_t i = 0; r == 0 && profile_built_in_name(i); i++)
		r = add_entry(&p, profile_built_in_name(i), strlen(profile_built_in_name(i)), err);
	VEC_SORT(p.list, p.n, by_name);
	for (size_t i = 0; r == 0 && i < p.n; i++)
		r = fill_entry(&places, &p.list[i], err);
	if (r < 0)
		return r;
	*ret = TAKE_STRUCT(p);
	return 0;
}
