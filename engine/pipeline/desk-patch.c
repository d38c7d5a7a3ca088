#include <errno.h>

#include "engine/api/diff.h"
#include "engine/pipeline/desk-i.h"
#include "engine/pipeline/pipeline-i.h"

static int add_patch(enum patch_part part, const char *text, size_t len, void *ctx, struct err *err)
{
	struct buf *patch = ctx;
	const size_t room = DESK_PATCH_MAX - patch->len;

	if (buf_append(patch, text, len < room ? len : room) < 0)
		return err_nomem(err);
	return len > room ? -EFBIG : 0;
}

int desk_patch(struct engine *e, const struct engine_change *c, struct buf *patch, struct err *err)
{
	CLEANUP(engine_close_p) struct engine *there = NULL;
	const struct engine_diff_sink sink = { .text = add_patch, .ctx = patch };
	int r = pipeline_engine(e, c->project, &there, err);

	if (r >= 0)
		r = engine_diff(
		    there,
		    &(struct engine_diff_options){ .a = c->base, .b = c->state_id, .context = 3 },
		    &sink, err);
	return r == -EFBIG ? 1 : r;
}
