#include "engine/act/artifact-i.h"
#include "engine/cowfsd/verbs-i.h"

static DEFINE_FIELDS_DONE(options_done, struct engine_artifact_options, wire_artifact_options)

int serve_artifact(struct task *task, const struct engine_watch *watch, struct json options,
		   struct json answer, struct err *err)
{
	CLEANUP(engine_artifact_done) struct engine_artifact made = { 0 };
	CLEANUP(options_done) struct engine_artifact_options o = { 0 };
	int r = fields_read(options, &wire_artifact_options, &o, err);

	if (r < 0)
		return r;
	return serve_fields(artifact_save(task, &o, &made, err), answer, &wire_artifact, &made);
}

int serve_remove_artifact(struct task *task, const struct engine_watch *watch, struct json options,
			  struct json answer, struct err *err)
{
	CLEANUP(engine_artifact_done) struct engine_artifact gone = { 0 };
	AUTO_FREE char *id = json_get_name(options, "artifact");
	int r = json_end(options.doc, err);

	if (r < 0)
		return r;
	return serve_fields(artifact_remove(task, id, &gone, err), answer, &wire_artifact, &gone);
}
