/*
 * The differences are read here, from states that cowfsd holds; each two sides are merged by cowfsd,
 * as only it may write, and the result is dropped.
 */
#include "engine/api/compare.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "engine/ask/ask-i.h"
#include "engine/experiment/compare-i.h"
#include "engine/find/rules-i.h"

#define PATCHES_MAX ((size_t)16 << 20) /* bytes of all */

static void comparing_done(struct comparing *c)
{
	char *path;

	for (size_t i = 0; i < c->n; i++) {
		delta_done(&c->deltas[i]);
		for (size_t pos = 0; (path = map_next(&c->inherited[i], &pos));)
			free(path);
		map_done(&c->inherited[i]);
	}
	map_done(&c->rows);
	free(c->file);
	free(c->note);
	guard_free(c->guard);
	engine_rules_done(&c->rules);
	engine_compare_done(&c->result);
	hold_done(&c->hold);
}

/* --- each two --------------------------------------------------------------------------- */

static bool changed_nothing(const struct engine_compare_side *s)
{
	return s->added + s->modified + s->deleted == 0;
}

/* The project's own doing before a side began is no conflict of that side's. */
static int drop_inherited(const struct comparing *c, struct engine_compare_pair *p, struct err *err)
{
	struct engine_conflict *kept, *dropped;
	size_t n_kept = 0, n_dropped = 0;

	if (c->inherited[p->a].n + c->inherited[p->b].n == 0)
		return 0;
	kept = calloc(p->n_conflicts + 1, sizeof(*kept));
	dropped = calloc(p->n_conflicts + 1, sizeof(*dropped));
	if (!kept || !dropped) {
		free(kept);
		free(dropped);
		return err_nomem(err);
	}
	for (size_t i = 0; i < p->n_conflicts; i++) {
		const char *path = p->conflicts[i].path;

		if (map_get(&c->inherited[p->a], path) || map_get(&c->inherited[p->b], path))
			dropped[n_dropped++] = p->conflicts[i];
		else
			kept[n_kept++] = p->conflicts[i];
	}
	engine_conflicts_free(dropped, n_dropped);
	free(p->conflicts);
	p->conflicts = kept;
	p->n_conflicts = n_kept;
	return 0;
}

static int merge_pair(struct comparing *c, struct engine_compare_pair *p, struct err *err)
{
	CLEANUP(ask_done) struct ask a = { 0 };
	const struct merge_ask asked = {
		.base = c->hold.held[comparing_base(c)],
		.ours = c->hold.held[p->a],
		.theirs = c->hold.held[p->b],
		.base_name = c->result.base_name,
		.our_name = c->result.sides[p->a].name,
		.their_name = c->result.sides[p->b].name,
	};
	struct merge_told told = { 0 };
	struct json answer;
	int r;

	if (changed_nothing(&c->result.sides[p->a]) || changed_nothing(&c->result.sides[p->b]))
		return 0;
	ask_begin(&a, c->engine, VERB_MERGE);
	wire_set_merge(a.options, &asked);
	r = ask_daemon(&a, c->engine, ASK_STORE, &c->options->watch, &answer, err);
	if (r < 0)
		return r;
	r = ask_take(&a, answer, &wire_merge_told, &told, err);
	if (r < 0)
		return r;
	p->merged = told.merged;
	p->conflicts = told.conflicts;
	p->n_conflicts = told.n_conflicts;
	return drop_inherited(c, p, err);
}

static int merge_pairs(struct comparing *c, struct err *err)
{
	struct engine_compare *res = &c->result;
	int r = 0;

	res->pairs = calloc(c->n * (c->n - 1) / 2, sizeof(*res->pairs));
	if (!res->pairs)
		return err_nomem(err);
	res->clean = true;
	for (size_t a = 0; a < c->n && r >= 0; a++)
		for (size_t b = a + 1; b < c->n && r >= 0; b++) {
			struct engine_compare_pair *p = &res->pairs[res->n_pairs++];

			*p = (struct engine_compare_pair){ .a = a, .b = b };
			r = merge_pair(c, p, err);
			res->clean &= p->n_conflicts == 0;
		}
	return r;
}

/* --- how changes of one file meet ------------------------------------------------------- */

static void mark_conflicts(struct comparing *c)
{
	for (size_t i = 0; i < c->result.n_pairs; i++)
		for (size_t k = 0; k < c->result.pairs[i].n_conflicts; k++) {
			const char *path = c->result.pairs[i].conflicts[k].path;
			const uintptr_t row = (uintptr_t)map_get(&c->rows, path);

			if (row > 0)
				c->result.files[row - 1].overlap = ENGINE_COMPARE_CONFLICT;
		}
}

static void judge_file(struct comparing *c, struct engine_compare_file *f)
{
	unsigned last = 0;
	size_t changed = 0;

	for (size_t i = 0; i < c->n; i++) {
		changed += f->changes[i].status != '\0';
		if (f->changes[i].version > last)
			last = f->changes[i].version;
	}
	if (f->overlap != ENGINE_COMPARE_CONFLICT && changed > 1)
		f->overlap = last == 1 ? ENGINE_COMPARE_SAME : ENGINE_COMPARE_MERGES;
}

static int by_path(const void *a, const void *b)
{
	const struct engine_compare_file *x = a, *y = b;

	return strcmp(x->path, y->path);
}

static void judge_files(struct comparing *c)
{
	struct engine_compare *res = &c->result;

	mark_conflicts(c);
	for (size_t i = 0; i < res->n_files; i++) {
		comparing_set_versions(c, i);
		judge_file(c, &res->files[i]);
	}
	VEC_SORT(res->files, res->n_files, by_path);
}

/* --- the whole -------------------------------------------------------------------------- */

static int begin(struct comparing *c, struct err *err)
{
	CLEANUP(project_done) struct project none = { 0 };
	int r;

	if (c->n < 2)
		return err_set(err, -EINVAL, "a comparison needs two states at least");
	if (c->n > ENGINE_COMPARE_MAX)
		return err_set(err, -EINVAL, "at most %d states can be compared at once",
			       ENGINE_COMPARE_MAX);
	c->result.sides = calloc(c->n, sizeof(*c->result.sides));
	if (!c->result.sides)
		return err_nomem(err);
	c->result.n = c->n;
	r = engine_store(c->engine, STORE_READ, &c->store, err);
	/* Without a store, "no project here" is the better message. */
	return r == -ENOENT ? engine_project(c->engine, &c->store, &none, err) : r;
}

static int compare(struct comparing *c, struct err *err)
{
	AUTO_FREE char *user = rules_of_user(c->engine);
	int r = begin(c, err);

	if (r < 0)
		return r;
	r = comparing_open(c, err);
	if (r < 0)
		return r;
	r = rules_guard(user, c->hold.states[0].project.path, &c->rules, &c->guard, err);
	for (size_t i = 0; i < c->n && r >= 0; i++)
		r = comparing_add_side(c, i, err);
	if (r < 0)
		return r;
	r = merge_pairs(c, err);
	if (r < 0)
		return r;
	judge_files(c);
	return 0;
}

int engine_compare(struct engine *e, const struct engine_compare_options *options,
		   struct engine_compare *ret, struct err *err)
{
	CLEANUP(comparing_done)
	struct comparing c = {
		.engine = e,
		.options = options,
		.n = options->n,
		.hold = HOLD_INIT,
		.rows = MAP_INIT(map_hash_str, map_equal_str),
		.patch_left = PATCHES_MAX,
	};
	int r;

	for (size_t i = 0; i < ENGINE_COMPARE_MAX; i++)
		c.inherited[i] = MAP_INIT(map_hash_str, map_equal_str);
	r = compare(&c, err);
	if (r < 0)
		return r;
	*ret = TAKE_STRUCT(c.result);
	return 0;
}
