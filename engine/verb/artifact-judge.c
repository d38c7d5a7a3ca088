#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/path.h"
#include "cowfs/store/tree-walk.h"
#include "engine/find/rules-i.h"
#include "engine/verb/artifact-i.h"

struct judging {
	struct store *store;
	struct guard *guard; /* borrowed */
};

/* --- links ------------------------------------------------------------------------------ */

/*
 * Does a link that is `depth` directories deep lead to a name in the artifact?  Without a ".." behind a
 * name it does so whatever other links are on its way, if these do too.
 */
static bool stays_in(const char *target, unsigned depth)
{
	bool named = false;
	size_t n;

	if (*target == '/')
		return false;
	for (; *target != '\0'; target += n + (target[n] == '/')) {
		n = strcspn(target, "/");
		if (n == 2 && strncmp(target, "..", n) == 0) {
			if (named || depth == 0)
				return false;
			depth--;
		} else if (n > 0 && !(n == 1 && *target == '.')) {
			named = true;
		}
		if (n == strlen(".git") && strncasecmp(target, ".git", n) == 0)
			return false;
	}
	return true;
}

/* --- the tree --------------------------------------------------------------------------- */

static int refuse(const char *path, const struct guard_rule *rule, struct err *err)
{
	return err_set(err, -EPERM,
		       "--to DIR must be outside of the project for this artifact: the guard holds "
		       "'%s' (%s)",
		       path, rule->name);
}

static int has(const struct judging *j, const struct object_id *dir, const char *name,
	       struct err *err)
{
	CLEANUP(buf_done) struct buf hold = BUF_INIT;
	struct tree_entry e;
	int r = tree_lookup(j->store, dir, name, strlen(name), &e, &hold, err);

	return r == -ENOENT ? 0 : r < 0 ? r : 1;
}

/* Would git take it for a repository? */
static int is_bare(const struct judging *j, const struct object_id *dir, struct err *err)
{
	int r = has(j, dir, "HEAD", err);

	if (r <= 0)
		return r;
	r = has(j, dir, "commondir", err);
	if (r != 0)
		return r;
	r = has(j, dir, "objects", err);
	return r <= 0 ? r : has(j, dir, "refs", err);
}

static int judge_dir(const struct judging *j, const struct object_id *dir, const char *path,
		     struct err *err)
{
	int r = is_bare(j, dir, err);

	return r > 0 ? refuse(path, guard_rule_named(GUARD_BARE), err) : r;
}

static int judge_entry(const struct tree_entry *e, const char *path, unsigned depth, void *ctx,
		       struct err *err)
{
	const struct judging *j = ctx;
	AUTO_FREE char *target = S_ISLNK(e->mode) ? strndup(e->target, e->target_len) : NULL;
	const struct guard_rule *rule;

	if (S_ISLNK(e->mode) && !target)
		return err_nomem(err);
	rule = guard_match(j->guard, path, e->mode & (S_IFMT | 0777), 'A');
	if (rule && rule->level == GUARD_HOLD)
		return refuse(path, rule, err);
	if (target && !stays_in(target, depth))
		return refuse(path, guard_rule_named(GUARD_LINK), err);
	return e->form == TREE_DIR ? judge_dir(j, &e->id, path, err) : 0;
}

/* --- where it comes to ------------------------------------------------------------------ */

/* The path without symlinks, as far as it exists. */
static char *real_path(const char *path)
{
	AUTO_FREE char *up = strdup(path), *real = NULL;

	while (up && !(real = realpath(up, NULL)) && up[1] != '\0') {
		char *slash = strrchr(up, '/');

		slash[slash == up] = '\0';
	}
	if (!real)
		return NULL;
	path += strlen(up);
	path += strspn(path, "/");
	return *path != '\0' ? path_join(real, path) : TAKE_PTR(real);
}

int artifact_judge(struct engine *e, struct store *s, const struct object_id *tree, const char *to,
		   struct err *err)
{
	CLEANUP(project_done) struct project project = { 0 };
	CLEANUP(engine_rules_done) struct engine_rules rules = { 0 };
	CLEANUP(guard_free_p) struct guard *guard = NULL;
	AUTO_FREE char *user = rules_of_user(e), *real = real_path(to);
	struct judging j = { .store = s };
	const char *below;
	int r;

	if (!real)
		return err_nomem(err);
	r = project_holding(s, real, &project, err);
	if (r < 0)
		return r == -ENXIO ? 0 : r;
	r = rules_guard(user, project.path, &rules, &guard, err);
	if (r < 0)
		return r;
	j.guard = guard;
	below = real + strlen(project.path);
	below += strspn(below, "/");
	r = judge_dir(&j, tree, below, err);
	return r < 0 ? r : tree_walk(s, tree, below, judge_entry, &j, err);
}
