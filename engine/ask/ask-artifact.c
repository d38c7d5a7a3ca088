#include "engine/api/artifact.h"

#include "engine/ask/ask-i.h"
#include "engine/find/engine-i.h"

static int ask_for_one(struct engine *e, struct ask *a, struct engine_artifact *ret,
		       struct err *err)
{
	int r = engine_has_store(e) ? 0 : engine_no_project(e, err);

	if (r < 0)
		return r;
	return ask_for(a, e, ASK_STORE, NULL, &wire_artifact, ret, err);
}

int engine_artifact_save(struct engine *e, const struct engine_artifact_options *options,
			 struct engine_artifact *ret, struct err *err)
{
	CLEANUP(ask_done) struct ask a;

	ask_begin(&a, e, VERB_ARTIFACT);
	fields_set(a.options, &wire_artifact_options, options);
	return ask_for_one(e, &a, ret, err);
}

int engine_artifact_remove(struct engine *e, const char *id, struct engine_artifact *ret,
			   struct err *err)
{
	CLEANUP(ask_done) struct ask a;

	ask_begin(&a, e, VERB_REMOVE_ARTIFACT);
	json_set_text(a.options, "artifact", id);
	return ask_for_one(e, &a, ret, err);
}
