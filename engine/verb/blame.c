/*
 * Versions are examined newest first. A line that is also in a predecessor of the version is older
 * and passes on to it; a line in none of them came with this version.
 */
#include "engine/api/blame.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/vec.h"
#include "engine/verb/trace-i.h"

void engine_blame_done(struct engine_blame *b)
{
	engine_versions_done(&b->versions);
	free(b->lines);
	buf_done(&b->text);
	*b = (struct engine_blame){ 0 };
}

static void spans_done(struct spans *s)
{
	free(s->list);
}

/* --- lines ------------------------------------------------------------------------------ */

/*
 * Part `rest` by w->hunks: what is outside of them goes to `older`, with its place in the older text.
 * `rest` keeps the others.
 */
static int part(const struct hunks *hunks, struct spans *rest, struct spans *older, struct err *err)
{
	CLEANUP(spans_done) struct spans kept = { 0 };
	int r = 0;

	for (size_t i = 0; i < rest->n; i++) {
		struct span s = rest->list[i];

		for (size_t h = 0; h <= hunks->n && s.n > 0 && r >= 0; h++) {
			const struct hunk *k = h < hunks->n ? &hunks->list[h] : NULL;
			const struct hunk *last = h > 0 ? &hunks->list[h - 1] : NULL;
			const size_t shift_a = last ? last->a + last->n_a : 0;
			const size_t shift_b = last ? last->b + last->n_b : 0;
			size_t n = k && k->b <= s.here ? 0 : s.n;

			if (k && k->b > s.here && k->b - s.here < s.n)
				n = k->b - s.here;
			r = spans_add(older,
				      (struct span){ .final = s.final,
						     .here = s.here - shift_b + shift_a,
						     .n = n },
				      err);
			s = (struct span){ s.final + n, s.here + n, s.n - n };
			if (r < 0 || s.n == 0 || !k || s.here >= k->b + k->n_b)
				continue;
			n = k->b + k->n_b - s.here;
			n = n < s.n ? n : s.n;
			r = spans_add(&kept, (struct span){ s.final, s.here, n }, err);
			s = (struct span){ s.final + n, s.here + n, s.n - n };
		}
		if (r < 0)
			return r;
	}
	free(rest->list);
	*rest = TAKE_STRUCT(kept);
	return 0;
}

struct blaming {
	struct trace walk;
	struct engine_blame result;
	size_t first; /* line of the file that the result begins with, from 0 */
};

static void blaming_done(struct blaming *b)
{
	trace_done(&b->walk);
	engine_blame_done(&b->result);
}

/* What is left of the version's lines came with it. */
static int take_blame(struct blaming *b, const struct node *n, const struct earliers *before,
		      struct err *err)
{
	struct engine_versions *v = &b->result.versions;
	int r;

	if (n->spans.n == 0)
		return 0;
	if (!VEC_ROOM(v->list, v->n, v->cap))
		return err_nomem(err);
	v->list[v->n] = (struct engine_version){ 0 };
	r = version_fill(&b->walk, n, before, &v->list[v->n++], err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < n->spans.n; i++) {
		const struct span *s = &n->spans.list[i];

		for (size_t k = 0; k < s->n; k++) {
			struct engine_blame_line *line = &b->result.lines[s->final + k - b->first];

			line->version = v->n - 1;
			line->line = s->here + k + 1;
		}
		v->list[v->n - 1].added += s->n;
	}
	return 0;
}

static int hand_on(struct blaming *b, struct node *n, const struct earlier *before, struct err *err)
{
	CLEANUP(spans_done) struct spans older = { 0 };
	struct trace *w = &b->walk;
	int r = 0;

	if (n->spans.n == 0 || !S_ISREG(before->file.mode))
		return 0;
	if (n->at != TRAIL_NONE && content_equal(&n->file.content, &before->file.content))
		w->hunks.n = 0;
	else
		r = trace_compare(w, n, before, err);
	if (r < 0)
		return r;
	r = part(&w->hunks, &n->spans, &older, err);
	if (r < 0 || older.n == 0)
		return r;
	return trace_add(w, before->at, before->path, &before->file, &older, false, err);
}

static int visit(struct blaming *b, struct node *n, struct err *err)
{
	CLEANUP(earliers_done) struct earliers before = { 0 };
	int r = trace_earlier(&b->walk, n, &before, err);

	for (size_t i = 0; i < before.n && r >= 0; i++)
		r = hand_on(b, n, &before.list[i], err);
	return r < 0 ? r : take_blame(b, n, &before, err);
}

/* --- beginning and end ------------------------------------------------------------------ */

static int not_there(const struct trace *w, struct err *err)
{
	return err_set(err, -ENOENT, "there is no file '%s'", w->path);
}

/* The version that the question is about. */
static int begin(struct blaming *b, struct trail_file *file, struct err *err)
{
	struct trace *w = &b->walk;
	const struct buf *text;
	struct node n = { .at = TRAIL_NONE };
	int r;

	if (w->on_disk && w->disk_lacks)
		return not_there(w, err);
	if (!w->on_disk) {
		if (w->start == TRAIL_NONE)
			return not_there(w, err);
		r = trail_find(&w->trail, w->start, w->path, file, err);
		if (r == -ENOENT)
			return not_there(w, err);
		if (r < 0)
			return r;
		if (!S_ISREG(file->mode))
			return err_set(err, -EINVAL, "'%s' has no lines: it is no regular file",
				       w->path);
		n = (struct node){ .at = w->start, .file = *file };
	}
	r = trace_text(w, &n, &text, err);
	if (r < 0)
		return r;
	return buf_append(&b->result.text, text->data, text->len) < 0 ? err_nomem(err) : 0;
}

/* The lines that are asked for, without knowing where they came from. */
static int list_lines(struct blaming *b, const struct engine_blame_options *o, struct err *err)
{
	struct engine_blame *res = &b->result;
	const size_t total = hunks_count_lines(&res->text);
	const char *p = (const char *)res->text.data, *end = p + res->text.len, *q;

	if (o->from > total || (o->from == 0 && o->to > 0) || (o->to > 0 && o->to < o->from))
		return err_set(err, -EINVAL, "'%s' has %zu lines, and no lines %llu to %llu",
			       b->walk.path, total, (unsigned long long)o->from,
			       (unsigned long long)o->to);
	b->first = o->from > 0 ? o->from - 1 : 0;
	res->n = (o->to > 0 && o->to < total ? o->to : total) - b->first;
	res->lines = calloc(res->n + 1, sizeof(*res->lines));
	if (!res->lines)
		return err_nomem(err);
	for (size_t i = 0; i < b->first + res->n; i++, p = q) {
		q = memchr(p, '\n', (size_t)(end - p));
		if (i >= b->first)
			res->lines[i - b->first] = (struct engine_blame_line){
				.number = i + 1,
				.text = p,
				.len = (size_t)((q ? q : end) - p),
			};
		q = q ? q + 1 : end;
	}
	return 0;
}

static int run(struct blaming *b, const struct trail_file *file, struct err *err)
{
	CLEANUP(spans_done) struct spans all = { 0 };
	CLEANUP(node_done) struct node n = { 0 };
	struct trace *w = &b->walk;
	int r = spans_add(&all, (struct span){ b->first, b->first, b->result.n }, err);

	if (r < 0)
		return r;
	if (w->on_disk) {
		n = (struct node){ .at = TRAIL_NONE, .path = strdup(w->path), .spans = all };
		all = (struct spans){ 0 };
		r = n.path ? visit(b, &n, err) : err_nomem(err);
	} else {
		r = trace_add(w, w->start, w->path, file, &all, false, err);
	}
	while (r >= 0) {
		node_done(&n);
		if (!trace_take(w, &n))
			break;
		r = visit(b, &n, err);
	}
	return r;
}

int engine_blame(struct engine *e, const struct engine_blame_options *options,
		 struct engine_blame *ret, struct err *err)
{
	CLEANUP(blaming_done) struct blaming b = { .walk = TRACE_INIT };
	struct trail_file file = { 0 };
	int r;

	b.walk.engine = e;
	r = trace_open(&b.walk, options, err);
	if (r < 0)
		return r;
	r = begin(&b, &file, err);
	if (r < 0)
		return r;
	r = list_lines(&b, options, err);
	if (r < 0)
		return r;
	r = run(&b, &file, err);
	if (r < 0)
		return r;
	b.result.versions.path = TAKE_PTR(b.walk.path);
	b.result.versions.project = TAKE_PTR(b.walk.trail.project.path);
	*ret = TAKE_STRUCT(b.result);
	return 0;
}
