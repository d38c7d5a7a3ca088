#include "engine/act/land-i.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/vec.h"
#include "cowfs/store/pin.h"
#include "engine/act/clone-base-i.h"
#include "engine/act/forget-i.h"
#include "engine/act/system-i.h"
#include "snapshot/apply/apply.h"

/* --- paths ------------------------------------------------------------------------------ */

int landing_add_path(struct engine_rolled_path **list, size_t *n, const char *path, char status,
		     const char *why)
{
	return landing_add_note(list, n, path, status, why, NULL);
}

int landing_add_note(struct engine_rolled_path **list, size_t *n, const char *path, char status,
		     const char *why, const char *detail)
{
	struct engine_rolled_path *p;

	if (*n == ENGINE_ROLLED_PATHS_MAX)
		return 0;
	if (!VEC_ONE_MORE(*list, *n))
		return -ENOMEM;
	p = &(*list)[(*n)++];
	*p = (struct engine_rolled_path){
		.path = strdup(path),
		.status = status,
		.why = why ? strdup(why) : NULL,
		.detail = detail ? strdup(detail) : NULL,
	};
	return p->path && (p->why || !why) && (p->detail || !detail) ? 0 : -ENOMEM;
}

void landed_done(struct landed *l)
{
	engine_rolled_paths_free(l->conflicts, l->n_conflicts);
	*l = (struct landed){ 0 };
}

/* --- looking ---------------------------------------------------------------------------- */

static int note_unread(struct landing *l, struct err *err)
{
	const struct capture_report *unread = &l->now.unread;

	l->leave = calloc(unread->n + 1, sizeof(*l->leave));
	if (!l->leave)
		return err_nomem(err);
	for (size_t i = 0; i < unread->n; i++)
		l->leave[i] = unread->list[i].path;
	return 0;
}

int landing_check_unread(const struct landing *l, struct err *err)
{
	if (l->now.unread.more == 0 || system_is(l->project->path))
		return 0;
	return err_set(err, -EACCES, "'%s': too much cannot be read to leave it out by name",
		       l->project->path);
}

static int capture_project(struct landing *l, const struct survey_options *options, struct err *err)
{
	CLEANUP(batch_end_p) struct batch *b = NULL;
	struct store *s = l->task->engine.store;
	int r = batch_begin(s, &b, err);

	if (r < 0)
		return r;
	r = survey_capture(l->task, l->project, b, options, &l->now, err);
	survey_tell_unread(l->task, &l->now, r);
	r = r < 0 ? r : note_unread(l, err);
	if (r < 0)
		return r;
	r = survey_lacks(&l->now, &l->lacks, &l->lacking, err);
	if (r < 0)
		return r;
	r = batch_commit(b, BATCH_SAFE, err);
	if (r < 0)
		return r;
	/* A gc reads what is pinned, so commit first.  The batch keeps it until it ends. */
	r = store_pin(s, OBJECT_TREE, &l->now.root, err);
	l->pinned = r >= 0;
	return r;
}

int landing_open(struct landing *l, struct task *task, const struct project *p,
		 const struct survey_options *options, struct err *err)
{
	struct survey_options o = *options;
	int r;

	*l = (struct landing){ .task = task, .project = p };
	if (system_is(p->path) && !options->machine)
		return err_set(
		    err, -ECANCELED,
		    "'/' is this machine, and snap changes nothing in it unless root "
		    "names paths with 'promote --root --path PATH', or takes that back with "
		    "'undo --root'; 'promote --path PATH --to DIR' takes them elsewhere");
	o.skip_unreadable |= system_is(p->path);
	r = turns_take(&task->host->turns, p->path, &l->turn, err);
	if (r < 0)
		return r;
	r = project_still(task->engine.store, p, err);
	if (r < 0)
		return r;
	l->as_of = engine_now();
	r = history_newest(task->engine.store, &p->id, &l->newest, err);
	return r < 0 && r != -ENOENT ? r : capture_project(l, &o, err);
}

void landing_close(struct landing *l)
{
	if (l->pinned)
		store_unpin(l->task->engine.store, OBJECT_TREE, &l->now.root);
	free(l->leave);
	captured_done(&l->now);
	buf_done(&l->lacks);
	snapshot_done(&l->newest);
	turn_give(l->turn);
	*l = (struct landing){ 0 };
}

/* --- keeping ---------------------------------------------------------------------------- */

/* What we put into the store, so that it can be removed again. */
struct puts {
	struct catalog_id before, after, base, receipt, project; /* zero: not put by us */
};

static int take_out(struct batch *b, const struct catalog_id *receipt, struct err *err)
{
	char hex[CATALOG_HEX_SIZE];

	return ref_delete(b, REF_RECEIPT, catalog_id_hex(receipt, hex), CATALOG_HEX_SIZE - 1, err);
}

/* It may have been removed since it was found. */
static int find_newest_again(struct landing *l, struct err *err)
{
	CLEANUP(snapshot_done) struct snapshot still = { 0 };
	struct store *s = l->task->engine.store;
	int r = 0;

	if (!catalog_id_is_zero(&l->newest.id))
		r = snapshot_get(s, &l->newest.id, &still, err);
	if (r != -ENOENT)
		return r;
	snapshot_done(&l->newest);
	l->newest = (struct snapshot){ 0 };
	r = history_newest(s, &l->project->id, &l->newest, err);
	return r == -ENOENT ? 0 : r;
}

/* host->snapshots held for reading (forget-i.h) */
static int put_before(struct landing *l, struct batch *b, const struct landing_act *act,
		      struct puts *puts, struct catalog_id *ret, struct err *err)
{
	struct snapshot s = {
		.root = l->now.root,
		.project = l->project->id,
		.message = act->message,
		.created = engine_now(),
		.files = l->now.stats.files,
		.bytes = l->now.stats.bytes,
		.lacks = l->lacking,
		.made = SNAPSHOT_MADE_AUTOMATICALLY,
	};
	int r;

	r = find_newest_again(l, err);
	if (r < 0)
		return r;
	s.parent = l->newest.id;
	if (!catalog_id_is_zero(&l->newest.id) && object_id_equal(&l->newest.root, &l->now.root)) {
		*ret = l->newest.id;
		return 0;
	}
	if (s.created <= l->newest.created)
		s.created = l->newest.created + 1;
	r = catalog_id_new(&s.id, err);
	if (r < 0)
		return r;
	*ret = puts->before = s.id;
	return snapshot_put(b, &s, REF_NEW, err);
}

static int remember_locked(struct landing *l, struct err *err)
{
	CLEANUP(batch_end_p) struct batch *b = NULL;
	char no_message[] = "";
	const struct landing_act act = { .message = no_message };
	struct store *s = l->task->engine.store;
	struct catalog_id id;
	struct puts puts = { 0 };
	int r = batch_begin(s, &b, err);

	r = r < 0 ? r : put_before(l, b, &act, &puts, &id, err);
	r = r < 0 ? r : batch_commit(b, BATCH_SAFE, err);
	if (r < 0)
		return r;
	survey_keep(l->task, l->project, &l->now);
	if (catalog_id_is_zero(&puts.before))
		return 0;
	snapshot_done(&l->newest);
	l->newest = (struct snapshot){ 0 };
	return snapshot_get(s, &id, &l->newest, err);
}

int landing_remember(struct landing *l, struct err *err)
{
	struct host *h = l->task->host;
	int r;

	if (!l->now.signatures)
		return 0;
	pthread_rwlock_rdlock(&h->snapshots);
	r = remember_locked(l, err);
	pthread_rwlock_unlock(&h->snapshots);
	return r;
}

static int put_after(struct landing *l, struct batch *b, const struct landing_act *act,
		     const struct catalog_id *before, struct puts *puts, struct err *err)
{
	struct snapshot *after = act->after;
	const bool waited = !catalog_id_is_zero(&act->pending);
	int r = 0;

	if (!catalog_id_is_zero(&after->id) && !waited)
		return 0;
	after->parent = *before;
	after->project = l->project->id;
	after->created = engine_now() + 1; /* later than `before` */
	if (after->created <= l->newest.created)
		after->created = l->newest.created + 2;
	if (waited)
		r = take_out(b, &act->pending, err);
	else
		r = catalog_id_new(&after->id, err);
	if (!waited)
		puts->after = after->id;
	return r < 0 ? r : snapshot_put(b, after, waited ? REF_REPLACE : REF_NEW, err);
}

static int put_base(struct batch *b, const struct landing_act *act, struct puts *puts,
		    struct catalog_id *ret, struct err *err)
{
	struct snapshot *base = act->base;
	int r;

	if (!base)
		return 0;
	*ret = act->after->id;
	if (object_id_equal(&base->root, &act->after->root))
		return 0;
	r = catalog_id_new(&base->id, err);
	base->base = base->id; /* a rollback to it makes it the base again */
	*ret = puts->base = base->id;
	return r < 0 ? r : snapshot_put(b, base, REF_NEW, err);
}

static int put_records(struct landing *l, const struct landing_act *act, struct receipt *receipt,
		       struct puts *puts, struct err *err)
{
	CLEANUP(batch_end_p) struct batch *b = NULL;
	int r;

	if (catalog_id_is_zero(&receipt->project))
		receipt->project = l->project->id;
	r = batch_begin(l->task->engine.store, &b, err);
	if (r >= 0 && act->fresh) {
		puts->project = act->fresh->id;
		r = project_put(b, act->fresh, REF_NEW, err);
	}
	if (r < 0)
		return r;
	r = put_before(l, b, act, puts, &receipt->before, err);
	if (r < 0)
		return r;
	r = put_after(l, b, act, &receipt->before, puts, err);
	if (r < 0)
		return r;
	receipt->after = act->after->id;
	r = put_base(b, act, puts, &receipt->next_base, err);
	if (r < 0)
		return r;
	r = receipt_begin(b, receipt, err);
	puts->receipt = receipt->id;
	return r < 0 ? r : batch_commit(b, BATCH_DURABLE, err);
}

/* The turn is that of the directory, so its owner may be forgotten, and what nobody needs any more with it. */
static int check_owner(struct landing *l, const struct landing_act *act, struct err *err)
{
	struct store *s = l->task->engine.store;
	int r = act->owner ? project_still(s, act->owner, err) : 0;

	return r < 0 || !act->owner || act->fresh ? r : project_still(s, l->project, err);
}

/* Of a rollback: until there is a receipt, nothing keeps the snapshot that it goes back to. */
static int check_after(struct landing *l, const struct landing_act *act, struct err *err)
{
	CLEANUP(snapshot_done) struct snapshot still = { 0 };
	int r;

	if (catalog_id_is_zero(&act->after->id) || !catalog_id_is_zero(&act->pending))
		return 0;
	r = snapshot_get(l->task->engine.store, &act->after->id, &still, err);
	return r == -ENOENT ? err_set(err, r, "a snapshot that is needed was removed just now") : r;
}

/* Look again, while nothing can be removed. */
static int put_records_of_all(struct landing *l, const struct landing_act *act,
			      struct receipt *receipt, struct puts *puts, struct err *err)
{
	struct host *h = l->task->host;
	int r;

	pthread_rwlock_rdlock(&h->snapshots);
	r = check_owner(l, act, err);
	if (r >= 0)
		r = check_after(l, act, err);
	if (r >= 0)
		r = put_records(l, act, receipt, puts, err);
	pthread_rwlock_unlock(&h->snapshots);
	return r;
}

static int forget_puts(struct store *s, const struct puts *puts, struct err *err)
{
	const struct catalog_id *const ids[] = { &puts->after, &puts->base, &puts->before };
	CLEANUP(forget_done) struct forget f = { .ending = &puts->receipt };
	CLEANUP(batch_end_p) struct batch *b = NULL;
	char hex[CATALOG_HEX_SIZE];
	uint64_t unused;
	int r = batch_begin(s, &b, err);

	if (r < 0)
		return r;
	r = take_out(b, &puts->receipt, err);
	for (size_t i = 0; i < ARRAY_LEN(ids) && r >= 0; i++)
		if (!catalog_id_is_zero(ids[i]))
			r = forget_add_id(&f, s, ids[i], err);
	if (r < 0)
		return r;
	r = forget_settle(&f, s, NULL, err);
	if (r < 0)
		return r;
	r = forget_put(&f, b, &unused, err);
	if (r >= 0 && !catalog_id_is_zero(&puts->project))
		r = ref_delete(b, REF_PROJECT, catalog_id_hex(&puts->project, hex),
			       CATALOG_HEX_SIZE - 1, err);
	return r < 0 ? r : batch_commit(b, BATCH_SAFE, err);
}

/*
 * The project was not changed, so remove what was put for it, unless somebody has named it
 * meanwhile.  The newest snapshot is again the one from before.
 */
static void forget(struct landing *l, const struct landing_act *act, const struct puts *puts)
{
	struct host *h = l->task->host;
	struct err err = { 0 };
	int r;

	pthread_rwlock_wrlock(&h->snapshots);
	r = forget_puts(h->store, puts, &err);
	pthread_rwlock_unlock(&h->snapshots);
	if (r < 0)
		engine_warn(&l->task->engine, "removing what was saved of '%s': %s, continuing",
			    l->project->path, err.msg);
	else if (!catalog_id_is_zero(&puts->after))
		act->after->id = (struct catalog_id){ 0 };
}

/* --- acting ----------------------------------------------------------------------------- */

static void on_progress(uint64_t done, uint64_t total, void *ctx)
{
	const struct engine_watch *watch = ctx;
	const struct engine_progress p = { .doing = "writing", .done = done, .total = total };

	watch->fn(&p, watch->ctx);
}

static int add_conflicts(const struct apply_report *report, struct landed *ret, struct err *err)
{
	int r = 0;

	for (size_t i = 0; i < report->n && r >= 0; i++)
		r = landing_add_path(&ret->conflicts, &ret->n_conflicts, report->notes[i].path, '!',
				     report->notes[i].why);
	return r < 0 ? err_nomem(err) : 0;
}

static int write_plan(struct landing *l, struct plan *plan, const struct landing_act *act,
		      const struct puts *puts, struct landed *ret, struct err *err)
{
	CLEANUP(apply_report_done) struct apply_report report = { 0 };
	struct engine_watch watch = act->watch;
	struct receipt_landing landing = { .store = l->task->engine.store };
	const struct apply_options options = {
		.progress = watch.fn ? on_progress : NULL,
		.progress_ctx = &watch,
		.landed = receipt_landed,
		.landed_ctx = &landing,
		.place = act->place,
		.sums = act->receipt.kind != RECEIPT_ROLLBACK,
	};
	int r = apply_plan(l->task->engine.store, l->project->path, plan, &options, &report, err);

	if (report.unswept)
		l->task->host->unswept = true;
	if (r >= 0) {
		for (size_t i = 0; i < report.n; i++)
			engine_warn(&l->task->engine, "'%s' %s", report.notes[i].path,
				    report.notes[i].why);
		memcpy(ret->sha256, landing.sha256, sizeof(ret->sha256));
		return 0;
	}
	if (report.astray)
		engine_warn(
		    &l->task->engine,
		    "not all could be taken back, as somebody has changed it meanwhile; what "
		    "was there is snapshot %s",
		    ret->before);
	else if (!report.unfinished) {
		forget(l, act, puts);
		ret->before[0] = ret->receipt[0] = '\0';
	}
	return r == -ESTALE && report.n > 0 ? add_conflicts(&report, ret, err) : r;
}

static int warn_of_group(const struct plan_step *s, void *ctx)
{
	struct landing *l = ctx;

	engine_warn(&l->task->engine, "'%s': you are not in group %u, so it gets another one",
		    s->path, s->after.gid);
	return 0;
}

int landing_act(struct landing *l, struct plan *plan, const struct landing_act *act,
		struct landed *ret, struct err *err)
{
	struct receipt receipt = act->receipt;
	struct puts puts = { 0 };
	int r = task_wanted(l->task, err);

	if (r < 0)
		return r;
	r = plan_fit_groups(plan, l->project->path, warn_of_group, l, err);
	if (r < 0)
		return r;
	r = put_records_of_all(l, act, &receipt, &puts, err);
	free(receipt.who);
	if (r < 0)
		return r;
	catalog_id_hex(&receipt.id, ret->receipt);
	catalog_id_hex(&receipt.before, ret->before);
	return write_plan(l, plan, act, &puts, ret, err);
}

void landing_recover_all(struct host *h)
{
	CLEANUP(apply_report_done) struct apply_report report = { 0 };
	struct receipt_landing landing = { .store = h->store };
	const struct apply_options options = { .landed = receipt_landed, .landed_ctx = &landing };
	struct err err = { 0 };
	int r = apply_recover(h->store, NULL, &options, &report, &err);

	if (r < 0)
		log_error("%s", err.msg);
	if (r > 0)
		log_warn("%d interrupted %s of a project ended", r, r == 1 ? "change" : "changes");
	for (size_t i = 0; i < report.n; i++)
		log_warn("'%s' %s", report.notes[i].path, report.notes[i].why);
	if (r < 0)
		return;
	receipt_sweep(h);
	clone_base_settle(h);
}
