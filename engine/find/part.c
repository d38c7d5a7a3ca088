#include "engine/find/part-i.h"

#include <errno.h>
#include <string.h>

#include "base/path.h"
#include "cowfs/store/root.h"

int part_resolve(const struct engine *e, const char *project, const char *named, char **ret,
		 struct err *err)
{
	AUTO_FREE char *clean = path_clean(e->dir, named);
	const char *rest;

	if (!clean)
		return err_nomem(err);
	if (!path_is_below(clean, project))
		return err_set(err, -EINVAL, "'%s' is outside of the project '%s'", named, project);
	rest = clean + strlen(project);
	rest += strspn(rest, "/");
	if (*rest == '\0')
		return err_set(err, -EINVAL, "'%s' is the whole project: leave '--path' out",
			       named);
	*ret = strdup(rest);
	return *ret ? 0 : err_nomem(err);
}

int part_check(const char *part, uint64_t dirs, const char *project, struct err *err)
{
	uint64_t way = part ? 2 : 0; /* the top and the first step */

	for (const char *at = part; at && (at = strchr(at, '/')); at++)
		way++;
	if (dirs >= way)
		return 0;
	return err_set(err, -ENOENT,
		       "'%s' is no directory of '%s', or a symlink or '.snapignore' is in the way",
		       part, project);
}

bool part_has(const char *part, const char *path)
{
	return !part || path_is_within(path, part) || path_is_within(part, path);
}

bool part_covers(const char *part, const char *path)
{
	return !part || path_is_within(path, part);
}

bool part_same(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

int part_of_clone(struct store *s, const struct clone *c, char **ret, struct err *err)
{
	struct snapshot base = { 0 };
	int r = engine_as_damage(err, snapshot_get(s, &c->base, &base, err));

	*ret = TAKE_PTR(base.part);
	snapshot_done(&base);
	return r < 0 ? r : 0;
}

int part_of_state(struct store *s, const struct state *state, char **ret, struct err *err)
{
	const char *part = state->snapshot.part;

	if (state->kind == STATE_CLONE)
		return part_of_clone(s, &state->clone, ret, err);
	*ret = part ? strdup(part) : NULL;
	return part && !*ret ? err_nomem(err) : 0;
}

int part_is_in(struct store *s, const struct object_id *root, const char *path, struct err *err)
{
	CLEANUP(buf_done) struct buf hold = BUF_INIT;
	struct tree_entry e = { 0 };
	struct object_id dir;
	struct root top;
	int r = root_get(s, root, &top, err);

	dir = top.top.id;
	for (size_t len; r >= 0 && *path != '\0'; path += len + (path[len] == '/')) {
		len = strcspn(path, "/");
		r = tree_lookup(s, &dir, path, len, &e, &hold, err);
		if (r >= 0 && path[len] == '/' && e.form != TREE_DIR)
			return 0;
		dir = e.id;
	}
	return r == -ENOENT ? 0 : r < 0 ? r : 1;
}

static bool is_outside(const char *path, const void *ctx)
{
	return !part_has(ctx, path);
}

int part_count_changes(struct store *s, const char *part, const struct object_id *from,
		       const struct object_id *to, struct changes *ret, struct err *err)
{
	return changes_count_without(s, from, to, is_outside, part, ret, err);
}
