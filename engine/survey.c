#include "engine/survey-i.h"

#include "snapshot/capture.h"

static void on_capture(const struct capture_stats *so_far, void *ctx)
{
	const struct engine_watch *watch = ctx;
	struct engine_progress p = {
		.doing = "reading",
		.files = so_far->files,
		.bytes = so_far->bytes,
	};

	watch->fn(&p, watch->ctx);
}

int survey_project(struct engine *e, const struct project *p, struct batch *b,
		   const struct engine_watch *watch, struct survey *ret, struct err *err)
{
	const char *const exclude[] = { e->host->dir };
	struct engine_watch to = *watch;
	const struct capture_options options = {
		.exclude = exclude,
		.n_exclude = 1,
		.progress = to.fn ? on_capture : NULL,
		.progress_ctx = &to,
	};
	struct capture_stats stats = { 0 };
	struct object_id root;
	int r;

	r = capture_directory(b, p->path, &options, &root, &stats, err);
	if (r < 0)
		return r;
	*ret = (struct survey){
		.root = root,
		.files = stats.files,
		.dirs = stats.dirs,
		.bytes = stats.bytes,
	};
	return 0;
}
