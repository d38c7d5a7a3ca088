/*
 * The changes of an arm: paths, lines, and facts that a person should know before it is promoted.
 * Deleting or skipping a test is the cheapest way to make checks pass, so the look reports that.
 */
#include <string.h>

#include "base/buf.h"
#include "base/log.h"
#include "base/strlist.h"
#include "base/vec.h"
#include "engine/api/diff.h"
#include "engine/experiment/compare-i.h"
#include "engine/experiment/experiment-i.h"
#include "snapshot/text/guard.h"
#include "snapshot/text/ignore.h"

#define WARNINGS_MAX 50 /* of an arm */

struct looking {
	struct engine_arm *arm;
	struct guard *guard;   /* owned */
	struct ignore *within; /* owned; NULL: every path is near */
	struct strlist tests;  /* that were added or modified */
	bool skips;            /* the patch of the present file adds a line that skips a test */
};

static void looking_done(struct looking *l)
{
	guard_free(l->guard);
	ignore_free(l->within);
	strlist_done(&l->tests);
}

int arm_warn(struct engine_arm *arm, const char *kind, const char *path, const char *detail,
	     struct err *err)
{
	struct engine_arm_warning *one;

	/* What is said of all of it is never one too many. */
	if (path && arm->n_warnings >= WARNINGS_MAX)
		return 0;
	if (!VEC_ONE_MORE(arm->warnings, arm->n_warnings))
		return err_nomem(err);
	one = &arm->warnings[arm->n_warnings++];
	*one = (struct engine_arm_warning){ .kind = strdup(kind),
					    .path = path ? strdup(path) : NULL,
					    .detail = strdup(detail) };
	return one->kind && !one->path == !path && one->detail ? 0 : err_nomem(err);
}

static void free_warning(struct engine_arm_warning *one)
{
	free(one->kind);
	free(one->path);
	free(one->detail);
}

void arm_forget_warning(struct engine_arm *arm, const char *kind)
{
	size_t kept = 0;

	for (size_t i = 0; i < arm->n_warnings; i++)
		if (strcmp(arm->warnings[i].kind, kind) == 0)
			free_warning(&arm->warnings[i]);
		else
			arm->warnings[kept++] = arm->warnings[i];
	arm->n_warnings = kept;
}

/* --- tests --------------------------------------------------------------------------------- */

static int read_patch(enum patch_part part, const char *text, size_t len, void *ctx,
		      struct err *err)
{
	struct looking *l = ctx;

	l->skips |= part == PATCH_ADDED && warn_skips(text, len);
	return 0;
}

static int end_patch(const struct delta_file *f, const struct patch_counts *counts, void *ctx,
		     struct err *err)
{
	struct looking *l = ctx;
	const bool skips = l->skips;

	l->skips = false;
	return skips ? arm_warn(l->arm, "test-skipped", f->path,
				"the change adds a line that skips a test", err)
		     : 0;
}

/* --- all that changed ---------------------------------------------------------------------- */

static bool is_near(const struct looking *l, const char *path)
{
	AUTO_FREE char *above = l->within ? strdup(path) : NULL;

	if (!above)
		return true;
	for (char *slash = strchr(above, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (ignore_match(l->within, above, true) == IGNORE_OUT)
			return true;
		*slash = '/';
	}
	return ignore_match(l->within, path, false) == IGNORE_OUT;
}

static int name_path(struct engine_arm *arm, const struct delta_file *f, struct err *err)
{
	struct engine_paths *p = &arm->changed;

	p->truncated |= p->n == ENGINE_ARM_PATHS_MAX;
	if (p->truncated)
		return 0;
	if (!VEC_ONE_MORE(p->list, p->n))
		return err_nomem(err);
	p->list[p->n] = (struct engine_path){
		.path = strdup(f->path),
		.status =
		    f->status == DELTA_ADDED || f->status == DELTA_DELETED ? (char)f->status : 'M',
	};
	return p->list[p->n++].path ? 0 : err_nomem(err);
}

/* Of some arms the run knows only a part of what would be promoted. */
static bool is_counted(const struct engine_arm *arm)
{
	return arm->after || arm->n_inner > 0;
}

static void count_path(struct engine_arm *arm, const struct delta_file *f)
{
	const bool moved = f->old_path != NULL;

	arm->added += f->status == DELTA_ADDED || moved;
	arm->deleted += f->status == DELTA_DELETED || moved;
	arm->modified += f->status != DELTA_ADDED && f->status != DELTA_DELETED && !moved;
}

static int look_at_file(const struct delta_file *f, const struct patch_counts *counts, void *ctx,
			struct err *err)
{
	struct looking *l = ctx;
	const bool gone = f->status == DELTA_DELETED;
	const struct guard_rule *rule =
	    guard_match(l->guard, f->path, f->after.mode, gone ? 'D' : 'M');
	int r = name_path(l->arm, f, err);

	if (is_counted(l->arm))
		count_path(l->arm, f);
	l->arm->lines_added += counts->added;
	l->arm->lines_removed += counts->removed;
	if (r >= 0 && rule && rule->level != GUARD_PASS)
		r = arm_warn(l->arm, "guard", f->path, rule->why, err);
	if (r >= 0 && gone && warn_is_test(f->path))
		r = arm_warn(l->arm, "test-deleted", f->path, "the change deletes a test", err);
	/* A test that was moved to where no test is looked for is deleted, too. */
	if (r >= 0 && f->old_path && warn_is_test(f->old_path) && !warn_is_test(f->path))
		r = arm_warn(l->arm, "test-deleted", f->old_path, "the change moves a test away",
			     err);
	if (r >= 0 && !is_near(l, f->path))
		r = arm_warn(l->arm, "far", f->path,
			     "it is outside of the paths that the change is meant for", err);
	if (r >= 0 && !gone && warn_is_test(f->path) && strlist_add(&l->tests, f->path) < 0)
		return err_nomem(err);
	return r;
}

static void forget(struct engine_arm *arm)
{
	for (size_t i = 0; i < arm->n_warnings; i++)
		free_warning(&arm->warnings[i]);
	arm->n_warnings = 0;
	arm->lines_added = arm->lines_removed = 0;
	if (is_counted(arm))
		arm->added = arm->modified = arm->deleted = 0;
	engine_paths_done(&arm->changed);
	arm->changed = (struct engine_paths){ 0 };
}

static int read_within(const struct engine_experiment *x, struct ignore **ret, struct err *err)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT;

	for (size_t i = 0; i < x->n_within; i++)
		if (buf_append_str(&text, x->within[i]) < 0 || buf_append_u8(&text, '\n') < 0)
			return err_nomem(err);
	return x->n_within > 0 ? ignore_parse(text.data, text.len, ret, err) : 0;
}

static int look_at(struct work *w, struct engine_arm *arm, const char *state, struct err *err)
{
	CLEANUP(looking_done) struct looking l = { .arm = arm };
	const struct engine_diff_sink sink = { .file = look_at_file, .ctx = &l };
	const struct engine_diff_sink texts = { .text = read_patch, .file = end_patch, .ctx = &l };
	const char *from = after_first(w->x, arm)->from;
	struct engine_diff_options options = {
		.a = from ? from : w->x->base,
		.b = state,
		.count = true,
	};
	int r;

	forget(arm);
	r = guard_new(NULL, 0, &l.guard, err);
	if (r >= 0)
		r = read_within(w->x, &l.within, err);
	if (r >= 0)
		r = engine_diff(w->engine, &options, &sink, err);
	if (r < 0 || l.tests.n == 0)
		return r;
	/* Only the texts of tests are read. */
	options.paths = (const char *const *)l.tests.list;
	options.n_paths = l.tests.n;
	return engine_diff(w->engine, &options, &texts, err);
}

int arm_look(struct work *w, struct engine_arm *arm, struct err *err)
{
	return look_at(w, arm, arm->result, err);
}

void arm_look_at_failed(struct work *w, struct engine_arm *arm)
{
	struct err err = { 0 };

	if (!arm->has_clone || arm->added + arm->modified + arm->deleted == 0)
		return;
	if (look_at(w, arm, arm->clone, &err) >= 0)
		return;
	forget(arm);
	log_warn("cannot list the changes of arm '%s': %s, continuing", arm->name, err.msg);
}
