#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "engine/act/hide-i.h"
#include "engine/act/stage-i.h"
#include "engine/cowfsd/scope-i.h"
#include "engine/cowfsd/verbs-i.h"
#include "engine/host/host-i.h"
#include "engine/host/promises-i.h"

static DEFINE_FIELDS_DONE(stage_options_done, struct stage_options, wire_stage_options)

/*
 * A new clone may be there before all files are read, and uses what a capture that is under way has seen; for one
 * that lends nothing it waits, unless the clone is to be lazy.  So may one with a name be there, but without a snapshot
 * of it nobody could tell later what it was before the run.
 */
static int begin(struct task *task, const struct stage_options *o, struct json options,
		 struct stage *ret, struct err *err)
{
	const struct scope_rule rule = { true, .names = { "clone", "from" },
					 .beside = !o->clone && !o->eager };
	int r;

	if (o->clone ? !o->no_snapshot : o->lazy)
		return stage_begin(task, o, ret, err);
	r = scope_enter(task, &rule, false, options, &o->watch, err);
	if (r < 0)
		return r;
	/* Else it could not be lazy itself. */
	if (!o->clone)
		promises_leave(task->host->promises);
	r = stage_begin(task, o, ret, err);
	if (o->clone)
		promises_leave(task->host->promises);
	return r;
}

int serve_stage(struct task *task, const struct engine_watch *watch, struct json options,
		struct json answer, struct err *err)
{
	CLEANUP(stage_done) struct stage stage = { 0 };
	CLEANUP(stage_options_done) struct stage_options o = { .watch = *watch };
	int r = fields_read(options, &wire_stage_options, &o, err);

	if (r < 0)
		return r;
	if (strlen(o.run) != STAGE_RUN_SIZE - 1 ||
	    strspn(o.run, "0123456789abcdef") != STAGE_RUN_SIZE - 1)
		return err_set(err, -EINVAL, "'%s' is no id of a run", o.run);
	if (o.root && o.root[0] != '/')
		return err_set(err, -EINVAL, "'root' is not absolute");
	return serve_fields(begin(task, &o, options, &stage, err), answer, &wire_stage, &stage);
}

/* Rising, each once or more. */
static int read_hidden(struct json list, uint64_t **ret, size_t *ret_n, struct err *err)
{
	const size_t n = json_length(list);
	uint64_t before = 0;

	if (n > STAGE_HIDDEN_MAX)
		return err_set(err, -EINVAL, "too many numbers in 'hidden'");
	*ret = calloc(n + 1, sizeof(**ret));
	if (!*ret)
		return err_nomem(err);
	for (size_t i = 0; i < n; i++) {
		const char *text = json_at_text(list, i);

		if (!text || size_parse_u64(text, &(*ret)[i]) < 0 || (*ret)[i] < before)
			return err_set(err, -EINVAL, "'hidden' is no list of rising numbers");
		before = (*ret)[i];
	}
	*ret_n = n;
	return 0;
}

int serve_stage_root(struct task *task, const struct engine_watch *watch, struct json options,
		     struct json answer, struct err *err)
{
	const bool one_id = json_get_bool(options, "one_id");
	const uint64_t uid = json_get_uint(options, "uid"), gid = json_get_uint(options, "gid");
	const uint32_t one[] = { (uint32_t)uid, (uint32_t)gid };
	const struct json list = json_get_array(options, "hidden");
	AUTO_FREE uint64_t *hidden = NULL;
	struct stage_root how = { .one = one_id ? one : NULL };
	AUTO_CLOSE int fd = *task->given;
	int r = json_end(options.doc, err);

	*task->given = -1;
	if (r < 0)
		return r;
	if (fd < 0)
		return err_set(err, -EINVAL, "no connection came with 'stage-root'");
	if (uid >= UINT32_MAX || gid >= UINT32_MAX)
		return err_set(err, -EINVAL, "no user or group has the number of 'stage-root'");
	r = read_hidden(list, &hidden, &how.n_hidden, err);
	how.hidden = hidden;
	return r < 0 ? r : stage_root(task, TAKE_FD(fd), &how, err);
}

int serve_stage_hide(struct task *task, const struct engine_watch *watch, struct json options,
		     struct json answer, struct err *err)
{
	CLEANUP(hidden_done) struct hidden more = { 0 };
	AUTO_FREE char *clone = json_get_name(options, "clone");
	const struct json files = json_get_array(options, "hidden");
	const struct json dirs = json_get_array(options, "dirs");
	int r = json_end(options.doc, err);

	r = r < 0 ? r : read_hidden(files, &more.numbers.list, &more.numbers.n, err);
	r = r < 0 ? r : read_hidden(dirs, &more.dirs.list, &more.dirs.n, err);
	return r < 0 ? r : hide_add(task, clone, &more, err);
}

int serve_stage_end(struct task *task, const struct engine_watch *watch, struct json options,
		    struct json answer, struct err *err)
{
	CLEANUP(stage_end_done) struct stage_end end = { 0 };
	int r = json_end(options.doc, err);

	if (r < 0)
		return r;
	return serve_fields(stage_end(task, &end, err), answer, &wire_stage_end, &end);
}

int serve_stage_settle(struct task *task, const struct engine_watch *watch, struct json options,
		       struct json answer, struct err *err)
{
	const bool keep = json_get_bool(options, "keep");
	int r = json_end(options.doc, err);

	return r < 0 ? r : stage_settle(task, keep, err);
}

int serve_stage_stay(struct task *task, const struct engine_watch *watch, struct json options,
		     struct json answer, struct err *err)
{
	AUTO_FREE char *clone = json_get_name(options, "clone");
	int r = json_end(options.doc, err);

	return r < 0 ? r : stage_stay(task, clone, err);
}
