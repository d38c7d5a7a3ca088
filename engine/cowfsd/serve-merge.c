#include <errno.h>

#include "engine/act/echo-i.h"
#include "engine/act/promote-i.h"
#include "engine/act/resolve-i.h"
#include "engine/api/overlaps.h"
#include "engine/api/rebase.h"
#include "engine/api/rollback.h"
#include "engine/cowfsd/verbs-i.h"

static int check_way(enum merge_on_conflict on_conflict, enum merge_style style, struct err *err)
{
	if (on_conflict > MERGE_MARKERS || style > MERGE_STYLE_ZDIFF3)
		return err_set(err, -EINVAL, "there is no such way to merge");
	return 0;
}

/* --- promote ---------------------------------------------------------------------------- */

static DEFINE_FIELDS_DONE(promote_options_done, struct promote_options, wire_promote_options)

static DEFINE_FIELDS_DONE(promote_asked_done, struct engine_promote_options, wire_promote_asked)

int serve_promote(struct task *task, const struct engine_watch *watch, struct json options,
		  struct json answer, struct err *err)
{
	CLEANUP(engine_promotion_done) struct engine_promotion p = { 0 };
	CLEANUP(promote_asked_done) struct engine_promote_options asked = { .watch = *watch };
	CLEANUP(promote_options_done) struct promote_options o = { .asked = &asked };
	int64_t now = 0;
	int r = fields_read(options, &wire_promote_options, &o, err);

	if (r < 0)
		return r;
	r = fields_read(options, &wire_promote_asked, &asked, err);
	if (r < 0)
		return r;
	r = check_way(asked.on_conflict, asked.style, err);
	if (r < 0)
		return r;
	r = promote_do(task, &o, &p, &now, err);
	if (r < 0)
		return r;
	json_set_int(answer, "now", now);
	fields_set(answer, &wire_promotion, &p);
	return 0;
}

/* --- overlaps --------------------------------------------------------------------------- */

int serve_overlaps(struct task *task, const struct engine_watch *watch, struct json options,
		   struct json answer, struct err *err)
{
	CLEANUP(engine_overlaps_done) struct engine_overlaps overlaps = { 0 };
	AUTO_FREE char *clone = json_get_name_or_null(options, "clone");
	int r = json_end(options.doc, err);

	if (r < 0)
		return r;
	return serve_fields(overlaps_find(task, clone, &overlaps, err), answer, &wire_overlaps,
			    &overlaps);
}

/* --- merge ------------------------------------------------------------------------------ */

int serve_merge(struct task *task, const struct engine_watch *watch, struct json options,
		struct json answer, struct err *err)
{
	CLEANUP(merge_told_done) struct merge_told told = { 0 };
	struct merge_ask asked = { 0 };
	int r = wire_get_merge(options, &asked);

	if (r < 0)
		return err_set(err, r, "'merge' wants three roots");
	r = json_end(options.doc, err);
	if (r < 0)
		return r;
	return serve_fields(merge_find(task, &asked, &told, err), answer, &wire_merge_told, &told);
}

/* --- rebase ----------------------------------------------------------------------------- */

static DEFINE_FIELDS_DONE(rebase_options_done, struct engine_rebase_options, wire_rebase_options)

int serve_rebase(struct task *task, const struct engine_watch *watch, struct json options,
		 struct json answer, struct err *err)
{
	CLEANUP(engine_rebased_done) struct engine_rebased rebased = { 0 };
	CLEANUP(rebase_options_done) struct engine_rebase_options o = { .watch = *watch };
	int r = fields_read(options, &wire_rebase_options, &o, err);

	if (r < 0)
		return r;
	r = check_way(o.on_conflict, o.style, err);
	if (r < 0)
		return r;
	r = rebase_do(task, &o, &rebased, err);
	if (r < 0)
		return r;
	json_set_uint(answer, "echo", echo_count(task));
	fields_set(answer, &wire_rebased, &rebased);
	return 0;
}

/* --- resolve ---------------------------------------------------------------------------- */

static DEFINE_FIELDS_DONE(resolve_options_done, struct engine_resolve_options, wire_resolve_options)

int serve_resolve(struct task *task, const struct engine_watch *watch, struct json options,
		  struct json answer, struct err *err)
{
	CLEANUP(resolve_options_done) struct engine_resolve_options o = { 0 };
	int r = fields_read(options, &wire_resolve_options, &o, err);

	return r < 0 ? r : resolve_do(task, &o, err);
}

/* --- rollback --------------------------------------------------------------------------- */

static DEFINE_FIELDS_DONE(rollback_options_done, struct engine_rollback_options,
			  wire_rollback_options)

int serve_rollback(struct task *task, const struct engine_watch *watch, struct json options,
		   struct json answer, struct err *err)
{
	CLEANUP(engine_rolled_done) struct engine_rolled rolled = { 0 };
	CLEANUP(rollback_options_done) struct engine_rollback_options o = { .watch = *watch };
	int r = fields_read(options, &wire_rollback_options, &o, err);

	if (r < 0)
		return r;
	if (o.second && !o.first)
		return err_set(err, -EINVAL, "'second' comes after 'first'");
	r = rollback_do(task, &o, &rolled, err);
	if (r < 0)
		return r;
	json_set_uint(answer, "echo", echo_count(task));
	fields_set(answer, &wire_rolled, &rolled);
	return 0;
}
