#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "engine/api/clone.h"
#include "engine/find/engine-i.h"

int clone_find(struct store *s, const char *name, struct clone *ret, struct err *err)
{
	int r = clone_get(s, name, ret, err);

	return r == -ENOENT ? err_set(err, r, "there is no clone '%s'", name) : r;
}

/* By the path alone: the directory may be on a mount of ours, which cowfsd must not touch. */
char *clone_here(struct engine *e)
{
	AUTO_FREE char *real =
	    e->no_symlinks ? strdup(e->store_path) : realpath(e->store_path, NULL);
	AUTO_FREE char *clones = real ? path_join(real, CLONES_DIR) : NULL;
	const char *name;

	if (!clones || !path_is_below(e->dir, clones) || strcmp(e->dir, clones) == 0)
		return NULL;
	name = e->dir + strlen(clones) + 1;
	return strndup(name, strcspn(name, "/"));
}

char *clone_inside(struct engine *e)
{
	AUTO_FREE char *name = clone_here(e);
	AUTO_FREE char *real = name ? realpath(e->store_path, NULL) : NULL;
	AUTO_FREE char *clones = real ? path_join(real, CLONES_DIR) : NULL;
	AUTO_FREE char *top = clones ? path_join(clones, name) : NULL;
	const size_t len = top ? strlen(top) : 0;

	return top ? strdup(e->dir + len + (e->dir[len] == '/')) : NULL;
}

int clone_meant(struct engine *e, struct store *s, const char *name, struct clone *ret,
		struct err *err)
{
	AUTO_FREE char *here = name ? NULL : clone_here(e);

	if (!name && !here)
		return err_set(err, -EDESTADDRREQ,
			       "name the clone: the current directory is in none");
	return clone_find(s, name ? name : here, ret, err);
}

int clone_origin(struct store *s, const struct clone *c, struct project *ret,
		 struct snapshot *ret_base, struct err *err)
{
	int r = engine_as_damage(err, project_get(s, &c->project, ret, err));

	return r < 0 ? r : engine_as_damage(err, snapshot_get(s, &c->base, ret_base, err));
}

char *engine_clone_here(struct engine *e)
{
	return clone_here(e);
}

int engine_owns_clone(struct engine *e, const char *name, uint64_t owner, struct err *err)
{
	CLEANUP(clone_done) struct clone c = { 0 };
	struct store *s;
	int r = engine_store(e, STORE_READ, &s, err);

	r = r < 0 ? r : clone_get(s, name, &c, err);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	return c.owner == owner;
}

bool engine_has_clone(struct engine *e, const char *name)
{
	CLEANUP(clone_done) struct clone c = { 0 };
	struct store *s;

	return engine_store(e, STORE_READ, &s, NULL) >= 0 && clone_get(s, name, &c, NULL) >= 0;
}
