#include "engine/survey-i.h"

#include "snapshot/apply.h"
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

/* What is half changed is nothing to capture. */
static int end_interrupted(struct engine *e, const struct project *p, struct err *err)
{
	CLEANUP(apply_report_done) struct apply_report report = { 0 };
	int r = apply_recover(e->host->store, p->path, &report, err);

	if (r > 0)
		engine_warn(e, "an interrupted change of '%s' was ended", p->path);
	for (size_t i = 0; i < report.n; i++)
		engine_warn(e, "'%s' %s", report.notes[i].path, report.notes[i].why);
	return r;
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

	r = end_interrupted(e, p, err);
	if (r < 0)
		return r;
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
