#include <errno.h>

#include "engine/api/tag.h"
#include "engine/wire/wire-i.h"

/* `state` NULL: delete it. */
static int ask_to_tag(struct engine *e, const char *name, const char *state,
		      struct engine_tags *ret, struct err *err)
{
	CLEANUP(engine_tags_done) struct engine_tags tags = { 0 };
	CLEANUP(ask_done) struct ask a;
	struct json answer;
	int r;

	ask_begin(&a, e, wire_tag.name);
	json_set_name(a.options, "tag", name);
	json_set_name(a.options, "state", state);
	r = engine_has_store(e) ? 0 : engine_no_project(e, err);
	if (r >= 0)
		r = ask_daemon(&a, e, ASK_STORE, NULL, &answer, err);
	if (r < 0)
		return r;
	tags.list = calloc(1, sizeof(*tags.list));
	if (!tags.list)
		return err_nomem(err);
	tags.n = 1;
	tags.project = json_get_name(answer, "project");
	tags.list[0].name = json_get_name(answer, "tag");
	WIRE_GET_SHORT(answer, "snapshot", tags.list[0].snapshot);
	r = ask_end(&a, err);
	if (r < 0)
		return r;
	*ret = tags;
	tags = (struct engine_tags){ 0 };
	return 0;
}

int engine_tag_add(struct engine *e, const char *name, const char *state, struct engine_tags *ret,
		   struct err *err)
{
	int r = tag_check_name(name, err);

	return r < 0 ? r : ask_to_tag(e, name, state, ret, err);
}

int engine_tag_delete(struct engine *e, const char *name, struct engine_tags *ret, struct err *err)
{
	return ask_to_tag(e, name, NULL, ret, err);
}

static int serve_tag(struct engine *e, const struct engine_watch *watch, struct json options,
		     struct json answer, struct err *err)
{
	CLEANUP(engine_tags_done) struct engine_tags tags = { 0 };
	AUTO_FREE char *name = json_get_name(options, "tag");
	AUTO_FREE char *state = json_get_name_or_null(options, "state");
	struct store *unused;
	int r = json_end(options.doc, err);

	(void)watch;
	if (r >= 0)
		r = engine_store(e, STORE_WRITE, &unused, err);
	if (r >= 0)
		r = state ? tag_add(e, name, state, &tags, err) : tag_delete(e, name, &tags, err);
	if (r < 0)
		return r;
	json_set_name(answer, "project", tags.project);
	json_set_name(answer, "tag", tags.list[0].name);
	wire_set_short(answer, "snapshot", tags.list[0].snapshot);
	return 0;
}

const struct wire_verb wire_tag = { "tag", serve_tag };
