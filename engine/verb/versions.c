#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/vec.h"
#include "engine/verb/trace-i.h"

struct listing {
	struct trace walk;
	const struct engine_blame_options *options;
	struct engine_versions result;
	struct map seen; /* places of versions that were listed; keys are in `keys` */
	struct version_key **keys;
	size_t n_keys;
};

/* A version by its snapshot and path. */
struct version_key {
	size_t at;
	char path[];
};

static uint64_t hash_key(const void *key)
{
	const struct version_key *k = key;

	return map_hash_str(k->path) ^ (k->at * 0x9e3779b97f4a7c15u);
}

static bool equal_key(const void *a, const void *b)
{
	const struct version_key *x = a, *y = b;

	return x->at == y->at && strcmp(x->path, y->path) == 0;
}

static void listing_done(struct listing *l)
{
	trace_done(&l->walk);
	engine_versions_done(&l->result);
	map_done(&l->seen);
	VEC_FREE(it, l->keys, l->n_keys, free(*it));
}

static void spans_done(struct spans *s)
{
	free(s->list);
}

/* 1 the first time. */
static int is_first(struct listing *l, const struct node *n, struct err *err)
{
	struct version_key *k = malloc(sizeof(*k) + strlen(n->path) + 1);
	void *twin;
	int r;

	if (!k || !VEC_ONE_MORE(l->keys, l->n_keys)) {
		free(k);
		return err_nomem(err);
	}
	k->at = n->at;
	memcpy(k->path, n->path, strlen(n->path) + 1);
	l->keys[l->n_keys++] = k;
	r = map_add(&l->seen, k, k, &twin);
	return r < 0 ? err_nomem(err) : r == 0;
}

static bool has_range(const struct listing *l)
{
	return l->options->from > 0;
}

static bool is_full(const struct listing *l)
{
	return l->options->count > 0 && l->result.n >= l->options->count;
}

/* --- ranges ----------------------------------------------------------------------------- */

/* Does the hunk change one of the lines, or take some out from between them? */
static bool touches(const struct hunk *h, const struct span *s)
{
	if (h->n_b == 0)
		return h->b > s->here && h->b < s->here + s->n;
	return h->b < s->here + s->n && s->here < h->b + h->n_b;
}

/* Where line `at` was before; at the end of a range (`end`) behind all that stood in its place. */
static size_t line_before(const struct hunks *hunks, size_t at, bool end)
{
	size_t shift_a = 0, shift_b = 0;

	for (size_t i = 0; i < hunks->n; i++) {
		const struct hunk *h = &hunks->list[i];

		if (end ? at <= h->b : at < h->b)
			break;
		if (end ? at <= h->b + h->n_b && h->n_b > 0 : at < h->b + h->n_b)
			return end ? h->a + h->n_a : h->a;
		shift_a = h->a + h->n_a;
		shift_b = h->b + h->n_b;
	}
	return at - shift_b + shift_a;
}

/* The lines that stood in the place of these; true if they were others. */
static int map_range(const struct hunks *hunks, const struct spans *now, struct spans *ret,
		     bool *ret_changed, struct err *err)
{
	int r = 0;

	*ret_changed = false;
	for (size_t i = 0; i < now->n && r >= 0; i++) {
		const struct span *s = &now->list[i];
		const size_t from = line_before(hunks, s->here, false);
		const size_t to = line_before(hunks, s->here + s->n, true);

		for (size_t k = 0; k < hunks->n; k++)
			*ret_changed |= touches(&hunks->list[k], s);
		if (to > from)
			r = spans_add(ret, (struct span){ s->final, from, to - from }, err);
	}
	return r;
}

/* --- one version ------------------------------------------------------------------------ */

static int count_lines(struct listing *l, const struct node *n, const struct earliers *before,
		       struct engine_version *v, struct err *err)
{
	struct trace *w = &l->walk;
	const struct buf *text;
	int r;

	if (n->at != TRAIL_NONE && !S_ISREG(n->file.mode))
		return 0;
	if (before->n == 0 || !S_ISREG(before->list[0].file.mode)) {
		r = trace_text(w, n, &text, err);
		v->added = r < 0 ? 0 : hunks_count_lines(text);
		return r == -EFBIG ? 0 : r;
	}
	r = trace_compare(w, n, &before->list[0], err);
	for (size_t i = 0; r >= 0 && i < w->hunks.n; i++) {
		v->added += w->hunks.list[i].n_b;
		v->removed += w->hunks.list[i].n_a;
	}
	/* A file too large to compare has versions all the same. */
	return r == -EFBIG ? 0 : r;
}

static int list_one(struct listing *l, const struct node *n, const struct earliers *before,
		    struct err *err)
{
	struct engine_versions *v = &l->result;
	int r;

	if (!VEC_ROOM(v->list, v->n, v->cap))
		return err_nomem(err);
	v->list[v->n] = (struct engine_version){ 0 };
	r = version_fill(&l->walk, n, before, &v->list[v->n++], err);
	return r < 0 ? r : count_lines(l, n, before, &v->list[v->n - 1], err);
}

/* Of a range: 1 if the version changed it. */
static int follow_range(struct listing *l, const struct node *n, const struct earlier *before,
			struct err *err)
{
	CLEANUP(spans_done) struct spans older = { 0 };
	struct trace *w = &l->walk;
	bool changed;
	int r;

	if (!S_ISREG(before->file.mode))
		return 1;
	r = trace_compare(w, n, before, err);
	if (r < 0)
		return r;
	r = map_range(&w->hunks, &n->spans, &older, &changed, err);
	if (r >= 0 && older.n > 0)
		r = trace_add(w, before->at, before->path, &before->file, &older, true, err);
	return r < 0 ? r : changed;
}

static int visit_range(struct listing *l, const struct node *n, const struct earliers *before,
		       struct err *err)
{
	bool changed = true;
	int r;

	for (size_t i = 0; i < before->n; i++) {
		r = follow_range(l, n, &before->list[i], err);
		if (r < 0)
			return r;
		changed &= r > 0;
	}
	return changed ? list_one(l, n, before, err) : 0;
}

static int visit_all(struct listing *l, const struct node *n, const struct earliers *before,
		     struct err *err)
{
	struct spans none = { 0 };
	int r = list_one(l, n, before, err);

	for (size_t i = 0; i < before->n && r >= 0; i++)
		r = trace_add(&l->walk, before->list[i].at, before->list[i].path,
			      &before->list[i].file, &none, true, err);
	return r;
}

static int visit(struct listing *l, const struct node *n, struct err *err)
{
	CLEANUP(earliers_done) struct earliers before = { 0 };
	int r = is_first(l, n, err);

	if (r <= 0)
		return r;
	r = trace_earlier(&l->walk, n, &before, err);
	if (r < 0)
		return r;
	return has_range(l) ? visit_range(l, n, &before, err) : visit_all(l, n, &before, err);
}

/* --- where it begins -------------------------------------------------------------------- */

/* The file is gone, by the snapshot `at` or (TRAIL_NONE) since the newest. */
static int list_gone(struct listing *l, size_t at, struct err *err)
{
	const struct node n = { .at = at, .path = l->walk.path };
	int r = list_one(l, &n, &(struct earliers){ 0 }, err);
	struct engine_version *v = &l->result.list[l->result.n - 1];

	v->status = 'D';
	v->added = 0;
	return r;
}

/* Go back to the last snapshot that has the file; *ret_gone is the one that followed it. */
static int find_last(struct trace *w, size_t *at, size_t *ret_gone, struct trail_file *ret,
		     struct err *err)
{
	size_t before[TRAIL_BEFORE_MAX], n;
	int r;

	*ret_gone = TRAIL_NONE;
	while (*at != TRAIL_NONE) {
		r = trail_find(&w->trail, *at, w->path, ret, err);
		if (r != -ENOENT)
			return r;
		*ret_gone = *at;
		n = trail_before(&w->trail, *at, before);
		*at = n > 0 ? before[0] : TRAIL_NONE;
	}
	return err_set(err, -ENOENT, "no snapshot has a file '%s'", w->path);
}

static int range_of(struct listing *l, const struct node *n, struct spans *ret, struct err *err)
{
	const struct engine_blame_options *o = l->options;
	const struct buf *text;
	size_t total, to;
	int r = trace_text(&l->walk, n, &text, err);

	if (r < 0)
		return r;
	total = hunks_count_lines(text);
	to = o->to > 0 && o->to < total ? o->to : total;
	if (o->from > total || to < o->from)
		return err_set(err, -EINVAL, "'%s' has %zu lines, and no lines %llu to %llu",
			       l->walk.path, total, (unsigned long long)o->from,
			       (unsigned long long)o->to);
	return spans_add(ret, (struct span){ o->from - 1, o->from - 1, to - o->from + 1 }, err);
}

/* What is on disk, where it differs from the newest snapshot. */
static int begin_on_disk(struct listing *l, bool *ret_done, struct err *err)
{
	struct trace *w = &l->walk;
	CLEANUP(node_done) struct node n = { .at = TRAIL_NONE, .path = strdup(w->path) };
	CLEANUP(earliers_done) struct earliers before = { 0 };
	const struct buf *old;
	int r;

	*ret_done = false;
	if (!n.path)
		return err_nomem(err);
	r = trace_earlier(w, &n, &before, err);
	if (r < 0)
		return r;
	if (w->disk_lacks)
		return before.n > 0 && !has_range(l) ? list_gone(l, TRAIL_NONE, err) : 0;
	if (before.n > 0 && S_ISREG(before.list[0].file.mode)) {
		const struct node o = { .at = w->start, .file = before.list[0].file };

		r = trace_text(w, &o, &old, err);
		if (r < 0)
			return r;
		if (old->len == w->disk.len &&
		    memcmp(old->data ? old->data : w->disk.data, w->disk.data, old->len) == 0)
			return 0;
	}
	*ret_done = true;
	if (has_range(l))
		r = range_of(l, &n, &n.spans, err);
	if (r < 0)
		return r;
	/* A file that was gone and is there again: its history is what the snapshots have. */
	*ret_done = before.n > 0;
	return visit(l, &n, err);
}

static int begin(struct listing *l, struct err *err)
{
	CLEANUP(spans_done) struct spans range = { 0 };
	struct trace *w = &l->walk;
	struct trail_file file;
	size_t at = w->start, gone;
	bool done = false;
	int r = w->on_disk ? begin_on_disk(l, &done, err) : 0;

	if (r < 0 || done)
		return r;
	r = find_last(w, &at, &gone, &file, err);
	if (r == -ENOENT && l->result.n > 0) {
		*err = (struct err){ 0 };
		return 0;
	}
	if (r < 0)
		return r;
	if (gone != TRAIL_NONE && !has_range(l))
		r = list_gone(l, gone, err);
	if (r < 0)
		return r;
	if (has_range(l)) {
		const struct node n = { .at = at, .file = file };

		r = range_of(l, &n, &range, err);
	}
	return r < 0 ? r : trace_add(w, at, w->path, &file, &range, true, err);
}

int engine_log_path(struct engine *e, const struct engine_blame_options *options,
		    struct engine_versions *ret, struct err *err)
{
	CLEANUP(listing_done) struct listing l = { .walk = TRACE_INIT,
						   .options = options,
						   .seen = MAP_INIT(hash_key, equal_key) };
	int r;

	l.walk.engine = e;
	r = trace_open(&l.walk, options, err);
	if (r < 0)
		return r;
	r = begin(&l, err);
	while (r >= 0 && !is_full(&l)) {
		CLEANUP(node_done) struct node n = { 0 };

		if (!trace_take(&l.walk, &n))
			break;
		r = visit(&l, &n, err);
	}
	if (r < 0)
		return r;
	l.result.path = TAKE_PTR(l.walk.path);
	l.result.project = TAKE_PTR(l.walk.trail.project.path);
	*ret = TAKE_STRUCT(l.result);
	return 0;
}
