#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cquote.h"
#include "snapshot/patch/patch-i.h"
#include "snapshot/text/git-i.h"
#include "snapshot/text/lines-i.h"
#include "snapshot/text/text-i.h"

/* One file on its way into a patch; what changed its type is two, one that goes and one that comes. */
struct writing {
	struct patch_out to;
	const char *path, *old_path;
	const struct delta_side *before, *after;
	bool content;
	unsigned similarity; /* 0: not renamed */
	unsigned context;
	struct buf text[2]; /* before, after */
	struct buf line;
	struct patch_counts counts;
	int r; /* what stopped the comparison */
	struct err *err;
};

static void writing_done(struct writing *w)
{
	buf_done(&w->text[0]);
	buf_done(&w->text[1]);
	buf_done(&w->line);
}

/*
 * One side of a file, a symlink's text being where it points; a side that is not there is empty.  1 if
 * it is text, 0 if not: too long or with a NUL in it; `out` is then not to be used.
 */
static int text_of_side(struct store *s, const struct delta_side *side, struct buf *out,
			struct err *err)
{
	int r;

	buf_reset(out);
	if (S_ISLNK(side->mode))
		return buf_append_str(out, side->target) < 0 ? err_nomem(err) : 1;
	if (side->content.size > TEXT_MAX)
		return 0;
	r = text_load(s, &side->content, out, err);
	if (r < 0)
		return r;
	return out->len == 0 || !memchr(out->data, '\0', out->len);
}

/* --- headers ---------------------------------------------------------------------------- */

static const struct delta_side nothing;

static int add_modes(struct writing *w)
{
	const uint32_t old = delta_git_mode(w->before->mode), new = delta_git_mode(w->after->mode);

	if (w->before->mode == 0)
		return buf_printf(&w->line, "new file mode %06o\n", new);
	if (w->after->mode == 0)
		return buf_printf(&w->line, "deleted file mode %06o\n", old);
	if (old == new)
		return 0;
	return buf_printf(&w->line, "old mode %06o\nnew mode %06o\n", old, new);
}

static int add_names(struct writing *w, const char *before, const char *a, const char *between,
		     const char *b, const char *end)
{
	struct buf *to = &w->line;

	if (buf_append_str(to, before) < 0 || cquote_append(to, a, w->old_path) < 0 ||
	    buf_append_str(to, between) < 0 || cquote_append(to, b, w->path) < 0)
		return -ENOMEM;
	return buf_append_str(to, end);
}

/* "index OLD..NEW MODE": both in full, without which git takes no binary file. */
static int add_index(struct writing *w)
{
	char old[SHA1_HEX_SIZE], new[SHA1_HEX_SIZE];
	int r = patch_blob_id(w->to.store, w->before, &w->text[0], old, w->err);

	if (r < 0)
		return r;
	r = patch_blob_id(w->to.store, w->after, &w->text[1], new, w->err);
	if (r < 0)
		return r;
	r = buf_printf(&w->line, "index %s..%s", old, new);
	if (r < 0)
		return r;
	if (w->before->mode != 0 && w->after->mode != 0 &&
	    delta_git_mode(w->before->mode) == delta_git_mode(w->after->mode))
		r = buf_printf(&w->line, " %06o", delta_git_mode(w->after->mode));
	return r < 0 ? r : buf_append_u8(&w->line, '\n');
}

/* "--- a/PATH", or /dev/null; a name with a blank ends in a tab, or it would end at the blank. */
static int add_side(struct writing *w, const char *mark, const struct delta_side *side,
		    const char *prefix, const char *path)
{
	if (buf_append_str(&w->line, mark) < 0)
		return -ENOMEM;
	if (side->mode == 0)
		return buf_append_str(&w->line, "/dev/null\n");
	if (cquote_append(&w->line, prefix, path) < 0)
		return -ENOMEM;
	return buf_append_str(&w->line, strchr(path, ' ') ? "\t\n" : "\n");
}

static int say_line(struct writing *w, enum patch_part part)
{
	return patch_say(&w->to, part, (const char *)w->line.data, w->line.len, w->err);
}

static bool is_empty(const struct writing *w)
{
	return w->text[0].len == 0 && w->text[1].len == 0;
}

static int add_header(struct writing *w)
{
	int r = add_names(w, "diff --git ", "a/", " ", "b/", "\n");

	if (r < 0)
		return r;
	r = add_modes(w);
	if (r < 0)
		return r;
	if (w->similarity > 0) {
		r = buf_printf(&w->line, "similarity index %u%%\n", w->similarity);
		if (r < 0)
			return r;
		r = add_names(w, "rename from ", "", "\nrename to ", "", "\n");
	}
	if (r < 0 || !w->content)
		return r;
	r = add_index(w);
	if (r < 0 || w->counts.binary || is_empty(w))
		return r;
	r = add_side(w, "--- ", w->before, "a/", w->old_path);
	return r < 0 ? r : add_side(w, "+++ ", w->after, "b/", w->path);
}

static int say_header(struct writing *w)
{
	int r;

	buf_reset(&w->line);
	r = add_header(w);
	if (r < 0)
		return r == -ENOMEM ? err_nomem(w->err) : r;
	return say_line(w, PATCH_HEADER);
}

/* --- hunks ------------------------------------------------------------------------------ */

static int on_hunk(const git_diff_delta *delta, const git_diff_hunk *hunk, void *ctx)
{
	struct writing *w = ctx;

	w->r = patch_say(&w->to, PATCH_HUNK, hunk->header, hunk->header_len, w->err);
	return w->r;
}

/* A line that has no end gets one, and the next says that it had none. */
static int say_content(struct writing *w, enum patch_part part, const char *text, size_t len)
{
	static const char sign[] = {
		[PATCH_SAME] = ' ', [PATCH_ADDED] = '+', [PATCH_REMOVED] = '-'
	};
	static const char mark[] = "\\ No newline at end of file\n";
	const bool ends = len > 0 && text[len - 1] == '\n';
	int r;

	w->counts.added += part == PATCH_ADDED;
	w->counts.removed += part == PATCH_REMOVED;
	if (!w->to.fn)
		return 0;
	buf_reset(&w->line);
	if (buf_append_u8(&w->line, (uint8_t)sign[part]) < 0 ||
	    buf_append(&w->line, text, len) < 0 || (!ends && buf_append_u8(&w->line, '\n') < 0))
		return err_nomem(w->err);
	r = say_line(w, part);
	return r < 0 || ends ? r : patch_say(&w->to, PATCH_MARK, mark, strlen(mark), w->err);
}

/* Ignore libgit2's report of missing newlines; the lines show them. */
static int on_line(const git_diff_delta *delta, const git_diff_hunk *hunk, const git_diff_line *l,
		   void *ctx)
{
	struct writing *w = ctx;

	w->r = 0;
	if (l->origin == GIT_DIFF_LINE_ADDITION)
		w->r = say_content(w, PATCH_ADDED, l->content, l->content_len);
	else if (l->origin == GIT_DIFF_LINE_DELETION)
		w->r = say_content(w, PATCH_REMOVED, l->content, l->content_len);
	else if (l->origin == GIT_DIFF_LINE_CONTEXT)
		w->r = say_content(w, PATCH_SAME, l->content, l->content_len);
	return w->r;
}

static int say_hunks_of_git(struct writing *w)
{
	const char *before = w->text[0].len > 0 ? (const char *)w->text[0].data : "";
	const char *after = w->text[1].len > 0 ? (const char *)w->text[1].data : "";
	const struct git *g;
	git_diff_options o;
	int rc, r;

	r = git_load(&g, w->err);
	if (r < 0)
		return r;
	if (g->diff_options_init(&o, GIT_DIFF_OPTIONS_VERSION) < 0)
		return git_failed(g, -1, "preparing a comparison", w->err);
	o.flags |= GIT_DIFF_FORCE_TEXT | GIT_DIFF_INDENT_HEURISTIC;
	o.context_lines = w->context;
	rc = g->diff_buffers(before, w->text[0].len, NULL, after, w->text[1].len, NULL, &o, NULL,
			     NULL, on_hunk, on_line, w);
	if (w->r < 0)
		return w->r;
	return rc < 0 ? git_failed(g, rc, "comparing", w->err) : 0;
}

/* --- hunks of a small difference -------------------------------------------------------- */

/* "-3,7"; an empty range names the line before it. */
static int add_range(struct writing *w, char sign, size_t first, size_t n)
{
	const size_t shown = n > 0 ? first + 1 : first;

	return n == 1 ? buf_printf(&w->line, "%c%zu", sign, shown)
		      : buf_printf(&w->line, "%c%zu,%zu", sign, shown, n);
}

static int say_lines(struct writing *w, enum patch_part part, const struct line *list, size_t n)
{
	int r = 0;

	for (size_t i = 0; i < n && r >= 0; i++)
		r = say_content(w, part, list[i].text, list[i].len);
	return r;
}

/* Blocks [first, last] with the lines around them. */
static int say_hunk(struct writing *w, const struct lines *l, size_t first, size_t last)
{
	const struct lines_block *from = &l->blocks[first], *to = &l->blocks[last];
	const size_t before = from->a < w->context ? from->a : w->context;
	const size_t rest = l->n_a - to->a - to->n_a;
	const size_t after = rest < w->context ? rest : w->context;
	size_t at = from->a - before;
	int r;

	buf_reset(&w->line);
	if (buf_append_str(&w->line, "@@ ") < 0 ||
	    add_range(w, '-', at, to->a + to->n_a + after - at) < 0 ||
	    buf_append_u8(&w->line, ' ') < 0 ||
	    add_range(w, '+', from->b - before, to->b + to->n_b + after - (from->b - before)) < 0 ||
	    buf_append_str(&w->line, " @@\n") < 0)
		return err_nomem(w->err);
	r = say_line(w, PATCH_HUNK);
	for (size_t i = first; i <= last && r >= 0; i++) {
		const struct lines_block *b = &l->blocks[i];

		r = say_lines(w, PATCH_SAME, l->a + at, b->a - at);
		if (r < 0)
			return r;
		r = say_lines(w, PATCH_REMOVED, l->a + b->a, b->n_a);
		if (r < 0)
			return r;
		r = say_lines(w, PATCH_ADDED, l->b + b->b, b->n_b);
		at = b->a + b->n_a;
	}
	return r < 0 ? r : say_lines(w, PATCH_SAME, l->a + at, after);
}

static int say_hunks(struct writing *w)
{
	CLEANUP(lines_done) struct lines l = { 0 };
	int r = lines_compare(&w->text[0], &w->text[1], &l, w->err);

	if (r <= 0)
		return r < 0 ? r : say_hunks_of_git(w);
	for (size_t i = 0, last; i < l.n && r >= 0; i = last + 1) {
		/* Blocks whose surroundings meet stand in one hunk. */
		for (last = i; last + 1 < l.n; last++)
			if (l.blocks[last + 1].a - l.blocks[last].a - l.blocks[last].n_a >
			    2 * (size_t)w->context)
				break;
		r = say_hunk(w, &l, i, last);
	}
	return r < 0 ? r : 0;
}

/* --- files ------------------------------------------------------------------------------ */

static int load_texts(struct writing *w)
{
	int a, b;

	if (!w->content)
		return 0;
	a = text_of_side(w->to.store, w->before, &w->text[0], w->err);
	b = a < 0 ? a : text_of_side(w->to.store, w->after, &w->text[1], w->err);
	if (b < 0)
		return b;
	w->counts.binary = a == 0 || b == 0;
	return 0;
}

static int write_one(struct writing *w)
{
	int r = load_texts(w);

	if (r < 0)
		return r;
	if (w->to.fn)
		r = say_header(w);
	if (r < 0 || !w->content)
		return r;
	if (w->counts.binary)
		return w->to.fn ? patch_binary(&w->to, w->before, w->after, w->err) : 0;
	return is_empty(w) ? 0 : say_hunks(w);
}

static int patch_sides(struct store *s, const struct delta_file *f, const struct delta_side *before,
		       const struct delta_side *after, unsigned context, patch_fn fn, void *ctx,
		       struct patch_counts *sum, struct err *err)
{
	CLEANUP(writing_done) struct writing w = {
		.to = { .store = s,
			.fn = f->refused || (f->sparse && f->content) ? NULL : fn,
			.ctx = ctx },
		.path = f->path,
		.old_path = f->old_path ? f->old_path : f->path,
		.before = before,
		.after = after,
		.content = f->content,
		.similarity = f->status == DELTA_RENAMED ? f->similarity : 0,
		.context = context,
		.err = err,
	};
	int r = write_one(&w);

	if (r < 0)
		return r == -EBADMSG ? err_wrap(err, r, "'%s'", f->path) : r;
	sum->added += w.counts.added;
	sum->removed += w.counts.removed;
	sum->binary |= w.counts.binary;
	return 0;
}

int patch_file(struct store *s, const struct delta_file *f, unsigned context, patch_fn fn,
	       void *ctx, struct patch_counts *ret, struct err *err)
{
	struct patch_counts sum = { 0 };
	int r;

	if (f->status == DELTA_TYPE) {
		r = patch_sides(s, f, &f->before, &nothing, context, fn, ctx, &sum, err);
		if (r < 0)
			return r;
		r = patch_sides(s, f, &nothing, &f->after, context, fn, ctx, &sum, err);
	} else {
		r = patch_sides(s, f, &f->before, &f->after, context, fn, ctx, &sum, err);
	}
	if (r < 0)
		return r;
	*ret = sum;
	return r;
}
