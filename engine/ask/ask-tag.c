#include "engine/api/tag.h"

#include <stdlib.h>

#include "engine/ask/ask-i.h"
#include "engine/find/engine-i.h"

/* `state` NULL: delete it. */
static int ask_to_tag(struct engine *e, const char *name, const char *state,
		      struct engine_tags *ret, struct err *err)
{
	CLEANUP(engine_tags_done) struct engine_tags tags = { 0 };
	CLEANUP(ask_done) struct ask a;
	struct json answer;
	int r;

	ask_begin(&a, e, VERB_TAG);
	json_set_name(a.options, "tag", name);
	json_set_name(a.options, "state", state);
	r = engine_has_store(e) ? 0 : engine_no_project(e, err);
	if (r < 0)
		return r;
	r = ask_daemon(&a, e, ASK_STORE, NULL, &answer, err);
	if (r < 0)
		return r;
	tags.list = calloc(1, sizeof(*tags.list));
	if (!tags.list)
		return err_nomem(err);
	tags.n = 1;
	tags.project = json_get_name(answer, "project");
	r = ask_take(&a, answer, &wire_tag, &tags.list[0], err);
	if (r < 0)
		return r;
	*ret = TAKE_STRUCT(tags);
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
