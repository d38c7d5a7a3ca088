#include <errno.h>

#include "base/cleanup.h"
#include "engine/act/image-i.h"
#include "engine/cowfsd/verbs-i.h"

static DEFINE_FIELDS_DONE(ask_free, struct import_ask, wire_import)

int serve_import(struct task *task, const struct engine_watch *watch, struct json options,
		 struct json answer, struct err *err)
{
	CLEANUP(engine_imported_done) struct engine_imported made = { 0 };
	CLEANUP(ask_free) struct import_ask ask = { 0 };
	AUTO_CLOSE int fd = TAKE_FD(*task->given);
	int r = fields_read(options, &wire_import, &ask, err);

	if (r < 0)
		return r;
	if (fd < 0)
		return err_set(err, -EPROTO, "an import without a descriptor to read it from");
	return serve_fields(image_import(task, &ask, fd, watch, &made, err), answer, &wire_imported,
			    &made);
}

int serve_remove_image(struct task *task, const struct engine_watch *watch, struct json options,
		       struct json answer, struct err *err)
{
	CLEANUP(engine_image_done) struct engine_image gone = { 0 };
	AUTO_FREE char *name = json_get_name(options, "image");
	const bool force = json_get_bool(options, "force");
	int r = json_end(options.doc, err);

	if (r < 0)
		return r;
	return serve_fields(image_remove(task, name, force, &gone, err), answer, &wire_image,
			    &gone);
}
