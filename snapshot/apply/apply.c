/*
 * The sequence, with its reasons in docs/design/apply.md:
 *
 *   look     everything the plan expects is there, else nothing begins
 *   journal  STAGING, durable
 *   stage    new files, whole, with all attributes, beside their places; durable
 *   journal  ACTING with the numbers of all files, old and new; durable
 *   act      names change, each looked at before and after; durable
 *   journal  DONE: from here on there is no way back, and none is needed
 *   clear    the stage goes, then the journal
 *
 * A process that finds a journal takes the act back unless it says DONE, and clears.
 */
#include "snapshot/apply/apply.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/sys.h"
#include "snapshot/apply/apply-i.h"

#define SYNC_EACH_MAX 64 /* beyond this many files, one sync of the file system is faster */

static int open_top(struct acting *a, struct err *err)
{
	const char *path = a->journal.project;
	struct stat st;

	if (a->options && a->options->place) {
		a->top_fd = sys_open_place(path, a->options->place);
		if (a->top_fd == -ESTALE || a->top_fd == -ELOOP)
			return err_set(err, -EBUSY, "'%s' became another directory just now", path);
		errno = a->top_fd < 0 ? -a->top_fd : 0;
	} else {
		a->top_fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	}
	if (a->top_fd < 0 || fstat(a->top_fd, &st) < 0)
		return err_sys(err, "opening '%s'", path);
	a->dev = st.st_dev;
	if (a->journal.ino != 0 && a->journal.ino != st.st_ino)
		return err_set(err, -ESTALE, "'%s' is another directory now", path);
	a->journal.ino = st.st_ino;
	journal_stage(&a->journal, a->stage);
	return 0;
}

/* --- ending ----------------------------------------------------------------------------- */

/* Remove every trace of the act but its result. */
static int clear(struct acting *a, bool wanted, struct err *err)
{
	int r;

	dir_forget(a);
	r = stage_clear(a, err);
	if (r < 0)
		return r;
	r = step_settle(a, 0, wanted, err);
	if (r < 0)
		return r;
	if (fsync(a->top_fd) < 0)
		return err_sys(err, "syncing '%s'", a->journal.project);
	return journal_remove(a->store, &a->journal, err);
}

/* Tell the caller that it is done before the journal forgets. */
static int settle(struct acting *a, struct err *err)
{
	const struct apply_options *o = a->options;
	int r = 0;

	if (o && o->landed)
		r = o->landed(a->journal.project, a->plan, o->landed_ctx, err);
	return r < 0 ? r : clear(a, true, err);
}

static int take_back(struct acting *a, struct err *err)
{
	int r = a->journal.state == JOURNAL_ACTING ? step_back_all(a, err) : 0;

	return r < 0 ? r : clear(a, false, err);
}

/* --- the act ---------------------------------------------------------------------------- */

/*
 * If DONE could not be made durable it may be on disk or not.  Going back while the journal says
 * DONE would leave a state that a crash makes permanent, so the journal must first say ACTING
 * again.  If that fails too, everything stays in place: it is complete, and recovery handles either
 * state.
 */
static int decide(struct acting *a, bool *ret_stay, struct err *err)
{
	struct err ignored = { 0 };
	int r = journal_set_state(a->store, &a->journal, JOURNAL_DONE, err);

	if (r >= 0)
		return 0;
	a->journal.state = JOURNAL_ACTING;
	*ret_stay = journal_put(a->store, &a->journal, &ignored) < 0;
	return r;
}

/* Everything up to the point of no return. */
static int act(struct acting *a, bool *ret_stay, struct err *err)
{
	int r = stage_make(a, err);

	if (r < 0)
		return r;
	a->journal.state = JOURNAL_ACTING;
	r = journal_put(a->store, &a->journal, err);
	if (r < 0)
		return r;
	r = step_all(a, err);
	return r < 0 ? r : decide(a, ret_stay, err);
}

/* Report the first conflict, and how many more there are. */
static int report_conflicts(const struct acting *a, struct err *err)
{
	const struct apply_report *r = a->report;

	if (r->n == 0)
		return err_set(err, -ESTALE, "'%s' changed meanwhile", a->journal.project);
	if (r->n == 1)
		return err_set(err, -ESTALE, "'%s' %s", r->notes[0].path, r->notes[0].why);
	return err_set(err, -ESTALE, "'%s' %s, and %zu more", r->notes[0].path, r->notes[0].why,
		       r->n - 1);
}

/* Brings the act to one of its two ends: done, or taken back. */
static int run(struct acting *a, struct err *err)
{
	struct err why = { 0 };
	bool stay = false;
	size_t told;
	int r = act(a, &stay, err);

	if (r >= 0) {
		/* It is done.  The next command finds by the journal what is left to tidy up. */
		if (settle(a, &why) < 0)
			acting_note(a, a->stage, "is left for the next command to clear away");
		return 0;
	}
	a->report->unfinished = stay;
	if (stay)
		return err_wrap(err, r, "all is done, but could not be made durable");
	if (r == -ESTALE)
		report_conflicts(a, err);
	told = a->report->n;
	a->report->unfinished = take_back(a, &why) < 0;
	a->report->astray = a->report->n > told || told == NOTES_MAX;
	if (a->report->unfinished)
		return err_set(
		    err, r == -ESTALE ? -EIO : r,
		    "%.100s; taking it back failed, and the next command tries again: %s", err->msg,
		    why.msg);
	return a->report->astray || (r != -ENOSPC && r != -EDQUOT)
		   ? r
		   : err_wrap(err, r, "'%s' is as it was, for lack of room for the change",
			      a->journal.project);
}

static int begin_and_run(struct acting *a, struct err *err)
{
	int r = open_top(a, err);

	if (r < 0)
		return r == -ESTALE ? report_conflicts(a, err) : r;
	r = sign_check_all(a, err);
	if (r < 0)
		return r == -ESTALE ? report_conflicts(a, err) : r;
	a->journal.state = JOURNAL_STAGING;
	r = journal_put(a->store, &a->journal, err);
	if (r >= 0)
		return run(a, err);
	IGNORE_RESULT(journal_remove(a->store, &a->journal, NULL), "nothing was begun");
	return r;
}

int apply_plan(struct store *s, const char *path, struct plan *plan,
	       const struct apply_options *options, struct apply_report *ret, struct err *err)
{
	CLEANUP(acting_done) struct acting a = {
		.store = s,
		.options = options,
		.report = ret,
		.top_fd = -1,
		.stage_fd = -1,
		.fd = -1,
		.dir = PLAN_NONE,
	};
	int r;

	*ret = (struct apply_report){ 0 };
	if (plan_is_empty(plan))
		return 0;
	assert(plan->n_dirs > 0 && plan->dirs[0].path[0] == '\0');
	a.journal.project = strdup(path);
	if (!a.journal.project)
		return err_nomem(err);
	r = journal_name(&a.journal, err);
	if (r < 0)
		return r;
	a.total = 2 * plan->n_files;
	a.sync_each = plan->n_files + plan->n_dirs <= SYNC_EACH_MAX;
	a.journal.plan = *plan; /* lent */
	a.plan = &a.journal.plan;
	r = begin_and_run(&a, err);
	a.journal.plan = (struct plan){ 0 };
	return r;
}

/* --- afterwards ------------------------------------------------------------------------- */

struct recovery {
	struct store *store;
	const struct apply_options *options;
	struct apply_report *report;
	int n;
	bool all;         /* all directories: trouble with one must not affect another */
	struct err first; /* the first failure among them */
};

static int finish_or_take_back(struct acting *a, struct err *err)
{
	int r = open_top(a, err);

	if (r < 0)
		return r;
	trash_give_back(a);
	r = stage_open(a, err);
	if (r < 0)
		return r;
	return a->journal.state == JOURNAL_DONE ? settle(a, err) : take_back(a, err);
}

static int recover_one(struct journal *j, void *ctx, struct err *err)
{
	struct recovery *rec = ctx;
	CLEANUP(acting_done) struct acting a = {
		.store = rec->store,
		.options = rec->options,
		.report = rec->report,
		.journal = *j,
		.top_fd = -1,
		.stage_fd = -1,
		.fd = -1,
		.dir = PLAN_NONE,
		.sync_each = true,
	};
	int r;

	*j = (struct journal){ 0 }; /* taken */
	a.plan = &a.journal.plan;
	r = finish_or_take_back(&a, err);
	if (r < 0) {
		r = err_wrap(err, r,
			     "'%s' was left half changed, and journal '%s' cannot be taken back",
			     a.journal.project, a.journal.id);
		if (!rec->all)
			return r;
		if (rec->first.code == 0)
			rec->first = *err;
		return 0;
	}
	rec->n++;
	return 0;
}

int apply_recover(struct store *s, const char *path, const struct apply_options *options,
		  struct apply_report *ret, struct err *err)
{
	struct recovery rec = { .store = s, .options = options, .report = ret, .all = !path };
	int r;

	*ret = (struct apply_report){ 0 };
	if (!path)
		journal_sweep(s);
	r = journal_each(s, path, recover_one, &rec, err);
	if (r < 0)
		return r;
	if (rec.first.code == 0)
		return rec.n;
	*err = rec.first;
	return err->code;
}
