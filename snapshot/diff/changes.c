#include "snapshot/diff/changes.h"

#include <string.h>

#include "base/buf.h"
#include "snapshot/diff/diff.h"

static uint64_t names(const struct tree_entry *e)
{
	return e->form == TREE_DIR && e->below.files > 0 ? e->below.files : 1;
}

struct counting {
	struct changes counts;
	changes_leaves_out leaves_out; /* or NULL */
	const void *ctx;
};

static int count(const struct diff_entry *e, void *ctx, struct err *err)
{
	struct counting *n = ctx;
	struct changes *c = &n->counts;

	if (n->leaves_out && n->leaves_out(e->path, n->ctx))
		return 0;
	if (!e->before) {
		c->added += names(e->after);
	} else if (!e->after) {
		c->deleted += names(e->before);
	} else if (e->what == DIFF_TYPE &&
		   (e->before->form == TREE_DIR || e->after->form == TREE_DIR)) {
		c->deleted += names(e->before);
		c->added += names(e->after);
	} else {
		c->modified++;
	}
	return 0;
}

static int count_all(struct store *s, const struct object_id *from, const struct object_id *to,
		     const struct diff_options *options, struct counting *n, struct changes *ret,
		     struct err *err)
{
	int r = diff_walk(s, from, to, options, count, n, err);

	if (r < 0)
		return r;
	*ret = n->counts;
	return r;
}

int changes_count_without(struct store *s, const struct object_id *from, const struct object_id *to,
			  changes_leaves_out leaves_out, const void *ctx, struct changes *ret,
			  struct err *err)
{
	struct counting n = { .leaves_out = leaves_out, .ctx = ctx };

	return count_all(s, from, to, &(struct diff_options){ 0 }, &n, ret, err);
}

int changes_count(struct store *s, const struct object_id *from, const struct object_id *to,
		  struct changes *ret, struct err *err)
{
	return changes_count_without(s, from, to, NULL, NULL, ret, err);
}

int changes_count_kept(struct store *s, const struct object_id *from, const struct object_id *to,
		       diff_kept_fn kept, void *kept_ctx, struct changes *ret, struct err *err)
{
	const struct diff_options options = { .kept = kept, .kept_ctx = kept_ctx };

	return count_all(s, from, to, &options, &(struct counting){ 0 }, ret, err);
}

int changes_count_twins(struct store *s, const struct object_id *from, const struct object_id *to,
			struct twins *twins, struct changes *ret, struct err *err)
{
	const struct diff_options options = { .twins = twins };

	return count_all(s, from, to, &options, &(struct counting){ 0 }, ret, err);
}

/* --- names ------------------------------------------------------------------------------ */

struct each {
	changes_fn fn;
	void *ctx;
	struct buf within; /* a directory that came or went: below it only files count */
	bool inside;
};

static void each_done(struct each *w)
{
	buf_done(&w->within);
}

static bool is_within(const struct each *w, const char *path)
{
	return w->inside && strncmp(path, (const char *)w->within.data, w->within.len) == 0 &&
	       path[w->within.len] == '/';
}

/* One side of a name that is on that side alone, or is a directory on one of them. */
static int report_side(struct each *w, const char *path, const struct tree_entry *e, char status,
		       struct err *err)
{
	if (e->form != TREE_DIR)
		return w->fn(path, status, w->ctx, err);
	if (is_within(w, path))
		return 0;
	buf_reset(&w->within);
	if (buf_append_str(&w->within, path) < 0)
		return err_nomem(err);
	w->inside = true;
	return e->below.files > 0 ? 0 : w->fn(path, status, w->ctx, err);
}

static int report_change(const struct diff_entry *e, void *ctx, struct err *err)
{
	struct each *w = ctx;
	int r = 0;

	if (e->before && e->after &&
	    (e->what != DIFF_TYPE || (e->before->form != TREE_DIR && e->after->form != TREE_DIR)))
		return w->fn(e->path, 'M', w->ctx, err);
	if (e->before)
		r = report_side(w, e->path, e->before, 'D', err);
	return r == 0 && e->after ? report_side(w, e->path, e->after, 'A', err) : r;
}

int changes_each_kept(struct store *s, const struct object_id *from, const struct object_id *to,
		      diff_kept_fn kept, void *kept_ctx, changes_fn fn, void *ctx, struct err *err)
{
	CLEANUP(each_done) struct each w = { .fn = fn, .ctx = ctx };
	const struct diff_options options = { .deep = true, .kept = kept, .kept_ctx = kept_ctx };

	return diff_walk(s, from, to, &options, report_change, &w, err);
}

int changes_each(struct store *s, const struct object_id *from, const struct object_id *to,
		 changes_fn fn, void *ctx, struct err *err)
{
	return changes_each_kept(s, from, to, NULL, NULL, fn, ctx, err);
}
