#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "engine/experiment/compare-i.h"
#include "engine/find/conflicts-i.h"
#include "engine/find/gitdir-i.h"
#include "snapshot/patch/patch.h"

#define CONTEXT   3
#define PATCH_MAX ((size_t)256 << 10) /* bytes of one change */

/* --- rows ------------------------------------------------------------------------------- */

static int grow(struct comparing *c, struct err *err)
{
	const size_t n = c->result.n_files;
	size_t cap = c->cap;
	void *more = vec_more(c->file, n, &cap, c->n * sizeof(struct delta_file *));

	if (!more)
		return err_nomem(err);
	c->file = more;
	cap = c->cap;
	more = vec_more(c->note, n, &cap, c->n * sizeof(struct delta_note *));
	if (!more)
		return err_nomem(err);
	c->note = more;
	c->cap = cap;
	return 0;
}

static int add_row(struct comparing *c, const char *path, size_t *ret, struct err *err)
{
	struct engine_compare *res = &c->result;
	const size_t row = res->n_files;
	struct engine_compare_file *f;
	void *existing;
	int r = grow(c, err);

	if (r < 0)
		return r;
	if (!VEC_ROOM(res->files, res->n_files, res->cap_files))
		return err_nomem(err);
	f = &res->files[res->n_files++];
	*f = (struct engine_compare_file){
		.path = strdup(path),
		.changes = calloc(c->n, sizeof(*f->changes)),
	};
	if (!f->path || !f->changes ||
	    map_add(&c->rows, f->path, (void *)(uintptr_t)(row + 1), &existing) < 0)
		return err_nomem(err);
	for (size_t i = 0; i < c->n; i++) {
		c->file[row * c->n + i] = NULL;
		c->note[row * c->n + i] = NULL;
	}
	*ret = row;
	return 0;
}

static int find_row(struct comparing *c, const char *path, size_t *ret, struct err *err)
{
	const uintptr_t found = (uintptr_t)map_get(&c->rows, path);

	if (found == 0)
		return add_row(c, path, ret, err);
	*ret = found - 1;
	return 0;
}

/* --- one file --------------------------------------------------------------------------- */

struct reading {
	struct comparing *c;
	struct engine_compare_change *change;
	bool test, skips;
};

static int on_text(enum patch_part part, const char *text, size_t len, void *ctx, struct err *err)
{
	struct reading *r = ctx;
	struct engine_compare_change *change = r->change;

	if (part == PATCH_ADDED && r->test)
		r->skips |= warn_skips(text, len);
	if (!r->c->options->patches || part == PATCH_HEADER || part == PATCH_BINARY || change->cut)
		return 0;
	if (change->patch.len + len > PATCH_MAX || len > r->c->patch_left) {
		change->cut = true;
		return 0;
	}
	r->c->patch_left -= len;
	return buf_append(&change->patch, text, len) < 0 ? err_nomem(err) : 0;
}

static void count(struct engine_compare_side *side, const struct engine_compare_change *change)
{
	side->added += change->status == 'A';
	side->deleted += change->status == 'D';
	side->modified += change->status != 'A' && change->status != 'D';
	side->lines_added += change->added;
	side->lines_removed += change->removed;
}

static int add_file(struct comparing *c, size_t side, const struct delta_file *f, struct err *err)
{
	struct reading reading = { .c = c, .test = warn_is_test(f->path) };
	struct patch_counts counts = { 0 };
	size_t row;
	int r = find_row(c, f->path, &row, err);

	if (r < 0)
		return r;
	reading.change = &c->result.files[row].changes[side];
	r = patch_file(c->store, f, CONTEXT, on_text, &reading, &counts, err);
	if (r < 0)
		return r;
	c->file[row * c->n + side] = f;
	reading.change->status = (char)f->status;
	reading.change->added = counts.added;
	reading.change->removed = counts.removed;
	reading.change->binary = counts.binary;
	count(&c->result.sides[side], reading.change);
	r = warn_of_change(c, side, f->path, f->after.mode, (char)f->status, err);
	if (r < 0 || !reading.skips)
		return r;
	return warn_add(c, side, f->path, "test-skipped", "a line that skips a test was added",
			err);
}

static int add_note(struct comparing *c, size_t side, const struct delta_note *n, struct err *err)
{
	struct engine_compare_change *change;
	const char *path = *n->path != '\0' ? n->path : ".";
	size_t row;
	int r = find_row(c, path, &row, err);

	if (r < 0)
		return r;
	change = &c->result.files[row].changes[side];
	c->note[row * c->n + side] = n;
	if (change->status != '\0')
		return 0;
	change->status = n->status == DELTA_MODIFIED ? 'm' : (char)n->status;
	count(&c->result.sides[side], change);
	return warn_of_change(c, side, path, n->mode, (char)n->status, err);
}

/* --- one side --------------------------------------------------------------------------- */

struct pair {
	struct store *store;
	const struct object_id *from, *to;
};

static bool is_link(const char *path, const void *ctx)
{
	const struct pair *p = ctx;

	return gitdir_is_link(p->store, p->from, p->to, path) > 0;
}

static int find_delta(struct comparing *c, size_t from, size_t to, struct delta *ret,
		      struct err *err)
{
	const struct pair pair = { c->store, &c->hold.held[from].root, &c->hold.held[to].root };
	const bool links = gitdir_has_links(c->store, &c->hold.states[from], &c->hold.states[to]);
	const struct delta_options options = { .leaves_out = links ? is_link : NULL,
					       .leaves_out_ctx = &pair };

	return delta_find(c->store, pair.from, pair.to, &options, ret, err);
}

/* The paths that a side changed since its own base; borrowed from `delta`. */
struct own_paths {
	struct delta delta;
	struct map paths;
	bool all; /* it has no other base */
};

static void own_paths_done(struct own_paths *o)
{
	map_done(&o->paths);
	delta_done(&o->delta);
}

static int find_own(struct comparing *c, size_t side, struct own_paths *ret, struct err *err)
{
	void *existing;
	int r;

	ret->all = c->own[side] == 0;
	if (ret->all)
		return 0;
	r = find_delta(c, c->own[side], side, &ret->delta, err);
	for (size_t i = 0; i < ret->delta.n_files && r >= 0; i++) {
		char *path = ret->delta.files[i].path;

		r = map_add(&ret->paths, path, path, &existing) < 0 ? err_nomem(err) : 0;
	}
	for (size_t i = 0; i < ret->delta.n_notes && r >= 0; i++) {
		char *path = ret->delta.notes[i].path;

		r = map_add(&ret->paths, path, path, &existing) < 0 ? err_nomem(err) : 0;
	}
	return r;
}

/* 1 if the side changed it: it is not git's, and not only the project's doing. */
static int takes_part(struct comparing *c, size_t side, const struct own_paths *own,
		      const char *path, struct err *err)
{
	AUTO_FREE char *copy = NULL;
	void *existing;
	size_t len;
	int r;

	if (conflicts_is_git(path, &len)) {
		c->result.sides[side].git++;
		return 0;
	}
	if (own->all || map_get(&own->paths, path))
		return 1;
	copy = strdup(path);
	r = copy ? map_add(&c->inherited[side], copy, copy, &existing) : -ENOMEM;
	if (r == 0)
		copy = NULL;
	return r < 0 ? err_nomem(err) : 0;
}

int comparing_add_side(struct comparing *c, size_t side, struct err *err)
{
	CLEANUP(own_paths_done)
	struct own_paths own = { .paths = MAP_INIT(map_hash_str, map_equal_str) };
	struct delta *d = &c->deltas[side];
	int r = find_own(c, side, &own, err);

	if (r < 0)
		return r;
	r = find_delta(c, comparing_base(c), side, d, err);
	for (size_t i = 0; i < d->n_files && r >= 0; i++) {
		r = takes_part(c, side, &own, d->files[i].path, err);
		if (r > 0)
			r = add_file(c, side, &d->files[i], err);
	}
	for (size_t i = 0; i < d->n_notes && r >= 0; i++) {
		r = takes_part(c, side, &own, d->notes[i].path, err);
		if (r > 0)
			r = add_note(c, side, &d->notes[i], err);
	}
	return r;
}

/* --- which are the same ----------------------------------------------------------------- */

static bool same_side(const struct delta_side *a, const struct delta_side *b)
{
	if (a->mode != b->mode)
		return false;
	if (a->target || b->target)
		return a->target && b->target && strcmp(a->target, b->target) == 0;
	return a->mode == 0 || content_equal(&a->content, &b->content);
}

/* Of metadata only the mode is known here; all else counts as another version. */
static bool same_note(const struct delta_note *a, const struct delta_note *b)
{
	const unsigned known = DELTA_MODE | DELTA_DIRECTORY;

	if (!a || !b)
		return a == b;
	return a->status == b->status && a->mode == b->mode && !((a->what | b->what) & ~known);
}

static bool same_change(const struct comparing *c, size_t a, size_t b)
{
	if (!c->file[a] || !c->file[b])
		return c->file[a] == c->file[b] && same_note(c->note[a], c->note[b]);
	return same_side(&c->file[a]->after, &c->file[b]->after) &&
	       same_note(c->note[a], c->note[b]);
}

void comparing_set_versions(struct comparing *c, size_t row)
{
	struct engine_compare_change *changes = c->result.files[row].changes;
	unsigned last = 0;

	for (size_t i = 0; i < c->n; i++) {
		if (changes[i].status == '\0')
			continue;
		for (size_t k = 0; k < i && changes[i].version == 0; k++)
			if (changes[k].status != '\0' &&
			    same_change(c, row * c->n + i, row * c->n + k))
				changes[i].version = changes[k].version;
		if (changes[i].version == 0)
			changes[i].version = ++last;
	}
}
