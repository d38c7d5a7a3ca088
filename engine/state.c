#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/size.h"
#include "engine/engine-i.h"

static bool looks_like_id(const char *text)
{
	const size_t len = strlen(text);

	return len > 0 && len < ENGINE_ID_SIZE && strspn(text, "0123456789abcdefABCDEF") == len;
}

static int not_found(const char *text, struct err *err)
{
	return err_set(err, -ENOENT, "there is no snapshot '%s'", text);
}

/* "@", "@-2", "NAME@-1": counted back from the newest of the project or a clone. */
static int resolve_relative(struct engine *e, const char *text, const char *at,
			    struct snapshot *ret, struct err *err)
{
	CLEANUP(engine_history_done) struct engine_history h = { 0 };
	AUTO_FREE char *clone = at > text ? strndup(text, (size_t)(at - text)) : NULL;
	struct store *s;
	uint64_t back = 0;
	int r;

	if (at > text && !clone)
		return err_nomem(err);
	if (at[1] != '\0' && (at[1] != '-' || size_parse_u64(at + 2, &back) < 0))
		return err_set(err, -EINVAL, "state '%s': after '@' comes nothing or '-NUMBER'",
			       text);
	r = engine_log(e, clone, &h, err);
	if (r >= 0)
		r = engine_store(e, STORE_READ, &s, err);
	if (r < 0)
		return r;
	if (h.n == 0)
		return not_found(text, err);
	if (back >= h.n)
		return err_set(err, -ENOENT,
			       "there is no snapshot '%s': the first of all is '%.*s@-%zu'", text,
			       (int)(at - text), text, h.n - 1);
	return engine_as_damage(err, snapshot_find(s, h.list[back].id, ret, err));
}

/* Tags are a project's own; where there is no project there are none. */
static int resolve_tag(struct engine *e, struct store *s, const char *text, struct snapshot *ret,
		       struct err *err)
{
	CLEANUP(project_done) struct project project = { 0 };
	CLEANUP(tag_done) struct tag tag = { 0 };
	AUTO_FREE char *full = NULL;
	int r;

	r = project_around(e, s, &project, err);
	if (r == -ENXIO)
		return -ENOENT;
	if (r < 0)
		return r;
	full = tag_full_name(&project.id, text);
	if (!full)
		return err_nomem(err);
	r = tag_get(s, full, &tag, err);
	return r < 0 ? r : engine_as_damage(err, snapshot_get(s, &tag.snapshot, ret, err));
}

int state_resolve(struct engine *e, struct store *s, const char *text, struct snapshot *ret,
		  struct err *err)
{
	const char *at = strchr(text, '@');
	int r;

	if (*text == '\0')
		return err_set(err, -EINVAL, "the name of the state is empty");
	if (strcmp(text, ".") == 0)
		return err_set(err, -EINVAL, "'.' is the project as it is now, not a snapshot");
	if (at)
		return resolve_relative(e, text, at, ret, err);
	if (looks_like_id(text) && strlen(text) == ENGINE_ID_SIZE - 1) {
		r = snapshot_find(s, text, ret, err);
	} else {
		r = resolve_tag(e, s, text, ret, err);
		if (r == -ENOENT && looks_like_id(text))
			r = snapshot_find(s, text, ret, err);
	}
	return r == -ENOENT ? not_found(text, err) : r;
}
