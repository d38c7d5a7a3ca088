/*
 * Where the files of experiments are, and how far one is trusted.
 *
 * The project's file is not trusted: it is opened name by name, without following symlinks, and
 * narrows the permissions of the profiles; its plan is judged against the very profiles that its
 * arms run with.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/fdio.h"
#include "base/path.h"
#include "base/text.h"
#include "engine/api/profile.h"
#include "engine/experiment/experiment-i.h"
#include "engine/experiment/file-i.h"
#include "engine/find/config-i.h"
#include "engine/run/profile-i.h"

#define FOLDER "experiments"

struct origin {
	bool of_project;
	struct project project; /* path NULL: there is none here */
	char *shown;            /* owned */
	struct buf text;
};

static void origin_done(struct origin *o)
{
	project_done(&o->project);
	free(o->shown);
	buf_done(&o->text);
}

/* --- finding ------------------------------------------------------------------------------ */

static int find_project(struct engine *e, struct origin *o, struct err *err)
{
	struct store *s = NULL;
	int r;

	if (engine_has_store(e) && engine_store(e, STORE_READ, &s, NULL) < 0)
		s = NULL;
	r = project_choose(e, s, NULL, &o->project, err);
	return r == -ECANCELED ? 0 : r;
}

static int read_user(struct engine *e, const char *file, struct origin *o, struct err *err)
{
	AUTO_FREE char *path = config_file(e->home, file);
	int r = path ? fdio_read_file(AT_FDCWD, path, YAML_MAX, &o->text, err) : -ENOENT;

	if (r < 0)
		return r == -ENOTDIR ? -ENOENT : r;
	o->shown = TAKE_PTR(path);
	return 0;
}

/* The project's counts before the user's. */
static int find_file(struct engine *e, const char *name, struct origin *o, struct err *err)
{
	AUTO_FREE char *file = NULL;
	int r = find_project(e, o, err);

	if (r < 0)
		return r;
	file = text_format(FOLDER "/%s.yaml", name);
	if (!file)
		return err_nomem(err);
	r = o->project.path ? config_read_project(o->project.path, file, &o->text, err) : -ENOENT;
	if (r < 0)
		return r == -ENOENT ? read_user(e, file, o, err) : r;
	o->of_project = true;
	o->shown = path_join(".snap", file);
	return o->shown ? 0 : err_nomem(err);
}

/* --- trust -------------------------------------------------------------------------------- */

static int refuse(const struct file_source *src, const struct file_place *at, const char *key,
		  struct err *err, const char *why, const char *whose)
{
	return err_set(err, -ECANCELED,
		       "%s:%d:%d: '%s' %s%s%s, and an experiment of the project may only narrow",
		       src->shown, at->line, at->column, key, why, whose ? whose : "",
		       whose ? "' has" : "");
}

/* What nobody but the person who runs it may say. */
static int check_forbidden(const struct file_source *src, struct err *err)
{
	static const struct {
		enum file_key key;
		const char *why;
	} keys[] = {
		{ FILE_PROMOTE, "writes the project: say it on the command line" },
		{ FILE_ALLOW, "opens the guard: say it on the command line" },
		{ FILE_ALLOW_MISSING, "takes walls away: say it on the command line" },
		{ FILE_RO, "shows more of the host: say it on the command line" },
		{ FILE_ON, "sends the project to other machines: say it on the command line" },
	};

	for (size_t i = 0; i < ARRAY_LEN(keys); i++)
		if (src->said[keys[i].key].line > 0)
			return refuse(src, &src->said[keys[i].key], file_key_name(keys[i].key), err,
				      keys[i].why, NULL);
	return 0;
}

static int check_profile(const struct file_source *src, const struct engine_experiment *x,
			 const struct engine_profile *p, struct err *err)
{
	const struct {
		uint64_t said, most;
	} limits[FILE_N_LIMITS] = {
		[FILE_MEM] = { x->limits.mem, p->mem },
		[FILE_PIDS] = { x->limits.pids, p->pids },
		[FILE_TIME] = { x->limits.time_ms, p->time_ms },
		[FILE_DISK] = { x->limits.disk, p->disk },
	};

	for (size_t i = 0; i < FILE_N_LIMITS; i++)
		if (src->limits[i].line > 0 && limits[i].most > 0 &&
		    (limits[i].said == 0 || limits[i].said > limits[i].most)) {
			char key[40];

			snprintf(key, sizeof(key), "limits.%s",
				 file_limit_name((enum file_limit)i));
			return refuse(src, &src->limits[i], key, err, "is more than profile '",
				      p->name);
		}
	if (x->net && !profile_net_narrows(x->net, p->net))
		return refuse(src, &src->said[FILE_NET], "net", err, "allows more than profile '",
			      p->name);
	for (size_t i = 0; i < x->n_pass_env; i++)
		if (!strlist_has(&p->pass_env, x->pass_env[i]))
			return refuse(src, &src->said[FILE_PASS_ENV], "pass_env", err,
				      "names a variable more than profile '", p->name);
	return 0;
}

/* Clones and snapshots of another project may hold what this one is not to see. */
static int check_base(struct engine *e, const struct origin *o, const struct file_source *src,
		      const struct file_place *at, const char *text, struct err *err)
{
	CLEANUP(state_done) struct state state = { 0 };
	struct store *s;
	struct err why = { 0 };
	int r = engine_store(e, STORE_READ, &s, err);

	if (r < 0)
		return r;
	r = state_find(e, s, text, &state, &why);
	if (r == -ENOENT || r == -EINVAL || r == -ENXIO)
		return err_set(err, -EINVAL, "%s:%d:%d: 'base': %s", src->shown, at->line,
			       at->column, why.msg);
	if (r < 0)
		return err_set(err, r, "%s", why.msg);
	if (strcmp(state.project.path, o->project.path) != 0)
		return refuse(src, at, "base", err, "is of another project", NULL);
	return 0;
}

/* The profile of the i-th arm; one that is none is said where it is named. */
static int load_profile(struct engine *e, const struct file_source *src,
			const struct engine_experiment *x, size_t i, struct engine_profile *ret,
			struct err *err)
{
	const struct engine_arm *arm = &x->arms[i];
	const struct file_place *at = arm->profile ? &src->arms[i].at : &src->said[FILE_PROFILE];
	struct err why = { 0 };
	int r = engine_profile(e, arm->profile ? arm->profile : x->profile, ret, &why);

	if (r == -ENOENT && at->line > 0)
		return err_set(err, -EINVAL, "%s:%d:%d: 'profile': %s", src->shown, at->line,
			       at->column, why.msg);
	return r < 0 ? err_set(err, r, "%s", why.msg) : 0;
}

/* What is planned inside of an arm runs with the profile of that. */
static int check_inner(const struct file_source *src, const struct engine_experiment *x,
		       const struct engine_profile *p, struct err *err)
{
	int r = check_profile(src, x, p, err);

	for (size_t i = 0; i < src->n_arms && r >= 0; i++)
		if (src->arms[i].inner)
			r = check_inner(src->arms[i].inner, x->arms[i].inner, p, err);
	return r;
}

static int check_arm(struct engine *e, const struct origin *o, const struct file_source *src,
		     const struct engine_experiment *x, size_t i, struct err *err)
{
	CLEANUP(engine_profile_done) struct engine_profile p = { 0 };
	int r = load_profile(e, src, x, i, &p, err);

	if (r < 0 || !o->of_project)
		return r;
	if (x->arms[i].from)
		r = check_base(e, o, src, &src->arms[i].at, x->arms[i].from, err);
	if (r < 0)
		return r;
	r = check_profile(src, x, &p, err);
	if (r < 0)
		return r;
	if (src->arms[i].inner)
		r = check_inner(src->arms[i].inner, x->arms[i].inner, &p, err);
	return r;
}

static int check_trust(struct engine *e, const struct origin *o, const struct file_source *src,
		       const struct engine_experiment *x, struct err *err)
{
	int r = o->of_project ? check_forbidden(src, err) : 0;

	if (r >= 0 && o->of_project && x->from)
		r = check_base(e, o, src, &src->said[FILE_BASE], x->from, err);
	for (size_t i = 0; i < x->n_arms && r >= 0; i++)
		r = check_arm(e, o, src, x, i, err);
	return r;
}

static int apply_matrices(const struct file_source *src, struct engine_experiment *x,
			  struct err *err)
{
	const struct file_place *at = &src->said[FILE_MATRIX];
	int r = 0;

	for (size_t i = 0; i < src->n_arms && r >= 0; i++)
		if (src->arms[i].inner) {
			r = apply_matrices(src->arms[i].inner, x->arms[i].inner, err);
			r = r < 0 ? r : inner_check_count(x, err);
		}
	if (r < 0 || src->matrix.n == 0)
		return r;
	r = engine_matrix_apply(&src->matrix, x, err);
	return r == -EINVAL
		   ? err_wrap(err, r, "%s:%d:%d: 'matrix'", src->shown, at->line, at->column)
		   : r;
}

/* --- the verb ----------------------------------------------------------------------------- */

static int use_profile(struct engine_experiment *x, const char *profile, struct err *err)
{
	if (!profile)
		return 0;
	free(x->profile);
	x->profile = strdup(profile);
	return x->profile ? 0 : err_nomem(err);
}

/* `level` 0: of the whole; else for the inside of an arm. */
static int read_named(struct engine *e, const char *name, const char *profile, size_t level,
		      struct engine_experiment *x, struct err *err)
{
	CLEANUP(file_source_done) struct file_source src = { .level = level };
	CLEANUP(origin_done) struct origin o = { .text = BUF_INIT };
	int r = clone_check_name(name, NULL) < 0 ? -ENOENT : find_file(e, name, &o, err);

	if (r == -ENOENT)
		return err_set(err, -ENOENT,
			       "there is no plan '%.100s': neither .snap/" FOLDER
			       "/%.100s.yaml nor the same file in your configuration",
			       name, name);
	if (r < 0)
		return r;
	src.shown = o.shown;
	x->file = strdup(name);
	if (!x->file)
		return err_nomem(err);
	r = file_read(&src, (const char *)o.text.data, o.text.len, x, err);
	if (r < 0)
		return r;
	r = use_profile(x, profile, err);
	if (r < 0)
		return r;
	r = check_trust(e, &o, &src, x, err);
	return r < 0 ? r : apply_matrices(&src, x, err);
}

int engine_experiment_read(struct engine *e, const char *name, const char *profile,
			   struct engine_experiment *x, struct err *err)
{
	return read_named(e, name, profile, 0, x, err);
}

static int read_inside(struct engine *e, const struct engine_experiment *whole,
		       struct engine_experiment *x, const char *profile, size_t level,
		       struct err *err)
{
	int r = 0;

	for (size_t i = 0; i < x->n_arms && r >= 0; i++) {
		struct engine_arm *arm = &x->arms[i];
		const char *above = arm->profile ? arm->profile : profile;
		AUTO_FREE char *name = NULL;

		if (arm->n_inner == 0)
			continue;
		if (arm->inner->n_arms == 0) {
			name = TAKE_PTR(arm->inner->file);
			r = read_named(e, name, above, level + 1, arm->inner, err);
			if (r < 0)
				return err_wrap(err, r, "arm '%s'", arm->name);
			r = inner_check_count(whole, err);
		}
		if (r >= 0)
			r = read_inside(e, whole, arm->inner, above, level + 1, err);
	}
	return r;
}

int file_read_inside(struct engine *e, struct engine_experiment *x, const char *profile,
		     struct err *err)
{
	return read_inside(e, x, x, profile, 0, err);
}
