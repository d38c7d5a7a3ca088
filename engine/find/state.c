#include <errno.h>
#include <string.h>

#include "base/size.h"
#include "engine/find/engine-i.h"
#include "engine/find/image-i.h"

static bool looks_like_id(const char *text)
{
	const size_t len = strlen(text);

	return len > 0 && len < ENGINE_ID_SIZE && strspn(text, "0123456789abcdefABCDEF") == len;
}

static int not_found(const char *text, struct err *err)
{
	return err_set(err, -ENOENT, "there is no snapshot '%s'", text);
}

/* "@", "@-2", "NAME@-1": counts back from the newest snapshot of the project or a clone. */
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
	if (r < 0)
		return r;
	r = engine_store(e, STORE_READ, &s, err);
	if (r < 0)
		return r;
	history_keep_users(&h);
	if (h.n == 0)
		return not_found(text, err);
	if (back >= h.n)
		return err_set(err, -ENOENT,
			       "there is no snapshot '%s': the first of all is '%.*s@-%zu'", text,
			       (int)(at - text), text, h.n - 1);
	return engine_as_damage(err, snapshot_find(s, h.list[back].id, ret, err));
}

/* Tags belong to a project; without a project there are none. */
static int resolve_tag(struct engine *e, struct store *s, const char *text, struct snapshot *ret,
		       struct err *err)
{
	CLEANUP(project_done) struct project project = { 0 };
	CLEANUP(tag_done) struct tag tag = { 0 };
	AUTO_FREE char *full = NULL;
	int r = project_around(e, s, &project, err);

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

void state_done(struct state *s)
{
	free(s->text);
	project_done(&s->project);
	clone_done(&s->clone);
	snapshot_done(&s->snapshot);
	*s = (struct state){ 0 };
}

/* For a text that is neither "." nor a clone's name. */
static int find_snapshot(struct engine *e, struct store *s, const char *text, struct state *ret,
			 struct err *err)
{
	char hex[CATALOG_HEX_SIZE];
	int r = state_resolve(e, s, text, &ret->snapshot, err);

	if (r < 0)
		return r;
	ret->kind = STATE_SNAPSHOT;
	ret->text = strdup(catalog_id_hex(&ret->snapshot.id, hex));
	if (!ret->text)
		return err_nomem(err);
	return engine_as_damage(err, project_get(s, &ret->snapshot.project, &ret->project, err));
}

static int find_any(struct engine *e, struct store *s, const char *text, struct state *ret,
		    struct err *err)
{
	int r;

	if (strcmp(text, ".") == 0) {
		ret->kind = STATE_PROJECT;
		ret->text = strdup(text);
		return ret->text ? project_around(e, s, &ret->project, err) : err_nomem(err);
	}
	r = clone_check_name(text, NULL) < 0 ? -ENOENT : clone_get(s, text, &ret->clone, err);
	if (r == -ENOENT) {
		r = find_snapshot(e, s, text, ret, err);
		return r == -ENOENT && !strchr(text, '@')
			   ? err_set(err, r, "there is no clone or snapshot '%s'", text)
			   : r;
	}
	if (r < 0)
		return r;
	ret->kind = STATE_CLONE;
	ret->text = strdup(text);
	if (!ret->text)
		return err_nomem(err);
	return engine_as_damage(err, project_get(s, &ret->clone.project, &ret->project, err));
}

int state_find(struct engine *e, struct store *s, const char *text, struct state *ret,
	       struct err *err)
{
	CLEANUP(state_done) struct state found = { 0 };
	int r = find_any(e, s, text, &found, err);

	if (r < 0)
		return r;
	*ret = TAKE_STRUCT(found);
	return 0;
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
		if (r == -ENOENT)
			r = image_snapshot(s, text, ret, err);
		/* A name that happens to be hex is meant before an id that begins so. */
		if (r == -ENOENT && looks_like_id(text))
			r = snapshot_find(s, text, ret, err);
	}
	return r == -ENOENT ? not_found(text, err) : r;
}
