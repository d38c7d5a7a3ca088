/*
 * Signatures belong to a root. They are used only while a snapshot of the project has that root,
 * and the root is pinned meanwhile, so that a gc cannot sweep objects that the capture takes over
 * before the batch names them.
 */
#include "engine/act/survey-i.h"
#include "engine/host/promises-i.h"
#include "engine/host/signing-i.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fdio.h"
#include "base/log.h"
#include "base/path.h"
#include "engine/act/receipt-i.h"
#include "engine/act/system-i.h"
#include "snapshot/apply/apply.h"
#include "snapshot/capture/count.h"

#define WARNINGS_MAX 100 /* about unreadable files; answers name more */

/* --- signatures ------------------------------------------------------------------------- */

/* What the last capture left. */
struct known {
	const struct signatures *use;  /* NULL: read everything */
	struct signatures *signatures; /* owned; NULL: they are lent */
	struct stat file;              /* of the signatures' file */
};

static void known_done(struct known *k)
{
	signatures_free(k->signatures);
}

struct holder {
	const struct catalog_id *project;
	const struct object_id *root;
};

static int find_holder(const struct snapshot *s, void *ctx, struct err *err)
{
	const struct holder *h = ctx;

	return catalog_id_same(&s->project, h->project) && object_id_equal(&s->root, h->root);
}

/* 1 if a snapshot of the project holds that root. */
static int is_held(struct store *s, const struct project *p, const struct object_id *root,
		   struct err *err)
{
	struct holder h = { .project = &p->id, .root = root };

	return snapshot_each(s, find_holder, &h, err);
}

/* A root that is held before and after was held when it was pinned. */
static int pin(struct batch *b, const struct project *p, const struct object_id *root,
	       struct err *err)
{
	struct store *s = batch_store(b);
	int r = is_held(s, p, root, err);

	if (r > 0) {
		r = batch_pin(b, root, err);
		if (r < 0)
			return r;
		r = is_held(s, p, root, err);
	}
	return r == 0 ? err_set(err, -ESTALE, "no snapshot has their root any more") : r;
}

static struct known find_known(struct task *task, const struct project *p, struct batch *b,
			       const struct signatures *lent)
{
	struct known known = { .use = lent };
	struct err err = { 0 };
	int r = 0;

	if (catalog_id_is_zero(&p->id))
		return known;
	if (!lent)
		r = signing_read(task->host, &p->id, &known.file, &known.signatures, &err);
	if (!lent)
		known.use = known.signatures;
	r = r < 0 ? r : pin(b, p, &known.use->root, &err);
	if (r >= 0)
		return known;
	log_debug("'%s': all of it is read, without signatures: %s", p->path, err.msg);
	known.use = NULL;
	signatures_free(TAKE_PTR(known.signatures));
	return known;
}

void survey_keep(struct task *task, const struct project *p, const struct captured *c)
{
	if (c->signatures)
		signing_write(task->host, &p->id, p->path, c->signatures);
}

int survey_forget(struct task *task, const struct project *p, struct err *err)
{
	int r = signing_remove(task->host, &p->id, err);

	return r < 0 ? err_wrap(err, r, "'%s'", p->path) : 0;
}

/* --- surveys ---------------------------------------------------------------------------- */

struct teller {
	struct engine_watch watch;
	uint64_t total;    /* names at the last capture; 0: unknown, so they are counted */
	const char *path;  /* what is captured */
	const char *store; /* and left out */
	struct count *count;
	bool uncounted; /* the names in `path` are not what there is to do */
};

static void teller_done(struct teller *t)
{
	count_end(t->count);
}

static void on_capture(const struct capture_stats *so_far, void *ctx)
{
	struct teller *t = ctx;
	const uint64_t done = so_far->files + so_far->dirs;
	struct engine_progress p = {
		.doing = "reading",
		.files = so_far->files,
		.bytes = so_far->bytes,
	};

	/* A capture that ends before its first report needs no count, and one that reads no file neither. */
	if (t->total == 0 && !t->count && !t->uncounted && !system_is(t->path))
		t->count = count_begin(t->path, t->store);
	if (t->total == 0 && t->count)
		t->total = count_total(t->count);
	if (t->total > 0) {
		p.total = done > t->total ? done : t->total;
		p.done = done;
	}
	t->watch.fn(&p, t->watch.ctx);
}

/* A half-changed project must not be captured. */
static int end_interrupted(struct task *task, const struct project *p, struct err *err)
{
	CLEANUP(apply_report_done) struct apply_report report = { 0 };
	struct receipt_landing landing = { .store = task->host->store };
	const struct apply_options options = {
		.landed = receipt_landed,
		.landed_ctx = &landing,
	};
	int r = apply_recover(task->host->store, p->path, &options, &report, err);

	if (r > 0)
		engine_warn(&task->engine, "an interrupted change of '%s' was ended", p->path);
	for (size_t i = 0; i < report.n; i++)
		engine_warn(&task->engine, "'%s' %s", report.notes[i].path, report.notes[i].why);
	return r;
}

/* What of a machine is in no clone of it, and the store. */
static int leave_out(struct task *task, const struct project *p,
		     const struct survey_options *options, struct strlist *ret, struct err *err)
{
	int r = system_left_out(p->path, task->host->dir, options->include, ret, err);

	if (r < 0)
		return r;
	system_tell(task, ret);
	for (size_t i = 0; options->left_out && i < ret->n; i++)
		if (strlist_add(options->left_out, ret->list[i]) < 0)
			return err_nomem(err);
	return strlist_add(ret, task->host->dir) < 0 ? err_nomem(err) : 0;
}

int survey_capture(struct task *task, const struct project *p, struct batch *b,
		   const struct survey_options *options, struct captured *ret, struct err *err)
{
	const struct strlist *only = options->only;
	CLEANUP(known_done) struct known known =
	    only ? (struct known){ 0 } : find_known(task, p, b, options->lent);
	const struct signatures *s = known.use;
	CLEANUP(strlist_done) struct strlist exclude = { 0 };
	CLEANUP(teller_done) struct teller teller = {
		.watch = options->watch,
		.total = s && !options->part ? s->names : 0,
		.path = p->path,
		.store = task->host->dir,
		.uncounted = (options->lazy && !options->unasked) || options->part,
	};
	struct capture_options o = {
		.only = only ? (const char *const *)only->list : NULL,
		.n_only = only ? only->n : 0,
		.part = options->part,
		.known = s,
		.place = options->place,
		.skip_unreadable = options->skip_unreadable,
		.lazy = options->lazy,
		.unasked = options->unasked,
		.lease = promises_lease,
		.hold = promises_hold,
		.hold_ctx = task->host->promises,
		.apart = p->hidden == PROJECT_OF_GIT,
		.progress = options->watch.fn ? on_capture : NULL,
		.progress_ctx = &teller,
		.stop = task->left,
		.stop_ctx = task->left_ctx,
	};
	int r = end_interrupted(task, p, err);

	r = r < 0 ? r : leave_out(task, p, options, &exclude, err);
	if (r < 0)
		return r;
	o.exclude = (const char *const *)exclude.list;
	o.n_exclude = exclude.n;
	r = capture_directory(b, p->path, &o, ret, err);
	if (r < 0)
		return r;
	/* Those that were lent name promises, so what was made of them may not stay either. */
	if (options->part || options->lent)
		signatures_free(TAKE_PTR(ret->signatures));
	/* The old signatures are still the best there are. */
	if (!ret->signatures)
		recall_give(&task->host->recall, TAKE_PTR(known.signatures), &known.file);
	return r;
}

int survey_project(struct task *task, const struct project *p, struct batch *b,
		   const struct engine_watch *watch, struct survey *ret, struct err *err)
{
	const struct survey_options options = { .watch = *watch };
	CLEANUP(captured_done) struct captured c = { 0 };
	int r = survey_capture(task, p, b, &options, &c, err);

	if (r < 0)
		return r;
	*ret = (struct survey){
		.root = c.root,
		.files = c.stats.files,
		.dirs = c.stats.dirs,
		.bytes = c.stats.bytes,
	};
	return 0;
}

/* --- what could not be read ------------------------------------------------------------- */

void survey_tell_unread(struct task *task, const struct captured *c, int r)
{
	const struct capture_report *unread = &c->unread;

	for (size_t i = r < 0; i < unread->n && i < WARNINGS_MAX; i++)
		engine_warn(&task->engine, "'%s': %s%s", unread->list[i].path, unread->list[i].why,
			    r < 0 ? "" : ", left out");
}

const char *survey_unread_at(const struct captured *c, const char *path)
{
	for (size_t i = 0; i < c->unread.n; i++)
		if (path_is_within(path, c->unread.list[i].path))
			return c->unread.list[i].path;
	return NULL;
}

/* Publish the list, or that it is too long. */
static int end_lacks(bool all, struct buf *hold, char **ret, struct err *err)
{
	if (!all) {
		buf_reset(hold);
		if (buf_append_str(hold, SNAPSHOT_LACKS_MORE) < 0)
			return err_nomem(err);
	}
	if (!buf_str(hold))
		return err_nomem(err);
	*ret = hold->len > 0 ? (char *)hold->data : NULL;
	return 0;
}

int survey_lacks(const struct captured *c, struct buf *hold, char **ret, struct err *err)
{
	const struct capture_report *unread = &c->unread;
	bool all = unread->more == 0;

	for (size_t i = 0; i < unread->n && all; i++) {
		if (buf_append_str(hold, i > 0 ? "//" : "") < 0 ||
		    buf_append_str(hold, unread->list[i].path) < 0)
			return err_nomem(err);
		all = hold->len <= SNAPSHOT_LACKS_MAX;
	}
	return end_lacks(all, hold, ret, err);
}

static size_t len_of_first(const char *list)
{
	const char *end = strstr(list, "//");

	return end ? (size_t)(end - list) : strlen(list);
}

const char *survey_lacks_at(const char *lacks, const char *path, size_t *ret_len)
{
	for (const char *p = lacks; p; p = strstr(p, "//"), p = p ? p + 2 : NULL) {
		const size_t len = len_of_first(p);

		if (strncmp(path, p, len) == 0 && (path[len] == '\0' || path[len] == '/')) {
			*ret_len = len;
			return p;
		}
	}
	return NULL;
}

static bool has_path(const char *list, const char *path, size_t len)
{
	while (len_of_first(list) != len || memcmp(list, path, len) != 0) {
		list = strstr(list, "//");
		if (!list)
			return false;
		list += 2;
	}
	return true;
}

int survey_join_lacks(const char *more, struct buf *hold, char **ret, struct err *err)
{
	const char *had = buf_str(hold);
	bool all;

	if (!had)
		return err_nomem(err);
	all = strcmp(had, SNAPSHOT_LACKS_MORE) != 0 &&
	      (!more || strcmp(more, SNAPSHOT_LACKS_MORE) != 0);
	for (const char *p = more; p && all; p = strstr(p, "//"), p = p ? p + 2 : NULL) {
		const size_t len = len_of_first(p);

		had = buf_str(hold);
		if (!had)
			return err_nomem(err);
		if (has_path(had, p, len))
			continue;
		if (buf_append_str(hold, hold->len > 0 ? "//" : "") < 0 ||
		    buf_append(hold, p, len) < 0)
			return err_nomem(err);
		all = hold->len <= SNAPSHOT_LACKS_MAX;
	}
	return end_lacks(all, hold, ret, err);
}
