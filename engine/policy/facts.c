#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/attr.h"
#include "base/map.h"
#include "base/vec.h"
#include "engine/api/clone.h"
#include "engine/api/diff.h"
#include "engine/api/experiment.h"
#include "engine/find/conflicts-i.h"
#include "engine/find/patterns-i.h"
#include "engine/find/rules-i.h"
#include "engine/policy/risk-i.h"
#include "snapshot/text/guard.h"
#include "snapshot/text/kind.h"

#define COUNTED_MAX (20 * VERY_LARGE_FILES) /* directories count, too */

struct counting {
	struct engine_facts *facts;
	struct kinds *kinds;    /* owned */
	struct ignore *subject; /* owned; NULL: any path */
	/* Built-in rules and the user's.  The project's may let pass what a clone of it then lands. */
	struct guard *guard;       /* owned */
	struct engine_rules rules; /* owned; for the guard */
	struct map held;           /* paths that this guard holds, which it owns */
	unsigned seen;             /* a bit for each enum kind */
};

static void counting_done(struct counting *c)
{
	char *path;

	for (size_t pos = 0; (path = map_next(&c->held, &pos));)
		free(path);
	map_done(&c->held);
	kinds_free(c->kinds);
	ignore_free(c->subject);
	guard_free(c->guard);
	engine_rules_done(&c->rules);
}

void engine_facts_done(struct engine_facts *f)
{
	for (size_t i = 0; i < f->n_reasons; i++) {
		free(f->reasons[i].rule);
		free(f->reasons[i].why);
		free(f->reasons[i].path);
	}
	free(f->reasons);
	free(f->project);
	*f = (struct engine_facts){ 0 };
}

/* What git keeps for itself never lands by a merge. */
static bool is_of_git(const char *path)
{
	size_t len;

	return conflicts_is_git(path, &len);
}

/* What one file of the change adds to the totals. */
static void count(struct counting *c, const struct delta_file *f, const struct patch_counts *n,
		  enum kind kind)
{
	struct engine_facts *x = c->facts;
	const bool program = S_ISREG(f->after.mode) && (f->after.mode & 0111) != 0;

	x->files++;
	x->added += f->status == DELTA_ADDED;
	x->deleted += f->status == DELTA_DELETED;
	x->lines_added += n->added;
	x->lines_removed += n->removed;
	x->bytes += f->after.content.size;
	x->binaries += n->binary;
	x->executables += program && (f->before.mode & 0111) == 0;
	x->tests_deleted += f->status == DELTA_DELETED && kind == KIND_TEST;
	c->seen |= 1U << kind;
}

static int judge_by_guard(struct counting *c, const struct delta_file *f, struct err *err)
{
	const bool gone = f->status == DELTA_DELETED;
	AUTO_FREE char *path = NULL;
	void *existing;
	const struct guard_rule *rule =
	    guard_match(c->guard, f->path, gone ? f->before.mode : f->after.mode, gone ? 'D' : 'M');
	int r;

	if (!rule || rule->level != GUARD_HOLD)
		return 0;
	path = strdup(f->path);
	r = path ? map_add(&c->held, path, path, &existing) : -ENOMEM;
	if (r < 0)
		return err_nomem(err);
	if (r == 0)
		path = NULL; /* the map has it */
	return risk_add(c->facts, RISK_HELD, rule->name, rule->why, f->path, err);
}

static int judge_file(const struct delta_file *f, const struct patch_counts *n, void *ctx,
		      struct err *err)
{
	struct counting *c = ctx;
	const enum kind kind = kinds_of(c->kinds, f->path);
	const bool program = S_ISREG(f->after.mode) && (f->after.mode & 0111) != 0;
	const struct {
		bool is;
		enum risk_rule rule;
	} reasons[] = {
		{ kind == KIND_SECRET, RISK_SECRET },
		{ kind == KIND_LOCK, RISK_DEPENDENCIES },
		{ kind == KIND_TEST && f->status == DELTA_DELETED, RISK_TESTS_DELETED },
		{ n->binary && f->status != DELTA_DELETED, RISK_BINARY },
		{ program && (f->before.mode & 0111) == 0, RISK_EXECUTABLE },
		{ c->subject && !ignore_covers(c->subject, f->path), RISK_FAR },
	};
	int r = 0;

	if (is_of_git(f->path))
		return 0;
	count(c, f, n, kind);
	for (size_t i = 0; i < ARRAY_LEN(reasons) && r >= 0; i++)
		if (reasons[i].is)
			r = risk_add(c->facts, reasons[i].rule, NULL, NULL, f->path, err);
	return r < 0 ? r : judge_by_guard(c, f, err);
}

static bool has_file(const struct delta *d, const char *path)
{
	return VEC_HAS(it, d->files, d->n_files, strcmp(it->path, path) == 0);
}

/* Modes, owners, attributes and empty directories: nobody reads those in a diff. */
static int count_notes(struct counting *c, const struct delta *d, struct err *err)
{
	int r = 0;

	for (size_t i = 0; i < d->n_notes && r >= 0; i++) {
		const struct delta_note *note = &d->notes[i];

		if (is_of_git(note->path) || note->path[0] == '\0')
			continue;
		if (!has_file(d, note->path)) {
			c->facts->files++;
			c->seen |= 1U << kinds_of(c->kinds, note->path);
		}
		if (note->status == DELTA_MODIFIED)
			r = risk_add(c->facts, RISK_METADATA, NULL, NULL, note->path, err);
	}
	return r;
}

static int begin(const struct engine_state *from, const struct engine_state *to,
		 const struct delta *delta, void *ctx, struct err *err)
{
	return count_notes(ctx, delta, err);
}

/* Of a promotion that landed the clone's base has moved, and the project's states tell. */
static int count_files(struct engine *e, const char *clone, struct counting *c,
		       const struct engine_facts_options *o, struct err *err)
{
	const struct engine_diff_sink sink = { .begin = begin, .file = judge_file, .ctx = c };
	const struct engine_diff_options options = {
		.a = o->landed ? o->promotion->before : clone,
		.b = o->landed ? o->promotion->after : NULL,
		.no_renames = true,
		/* So many that the risk is high, whatever is in them, and a person waits for the answer. */
		.count = !o->landed || o->promotion->changed <= COUNTED_MAX,
		.watch = o->watch,
	};

	return engine_diff(e, &options, &sink, err);
}

/* --- what the guard and the merge say --------------------------------------------------- */

static const char *why_of(const struct engine_rolled_path *p)
{
	size_t n;
	const struct guard_rule *rules = guard_rules(&n);

	for (size_t i = 0; i < n; i++)
		if (strcmp(rules[i].name, p->why) == 0)
			return rules[i].why;
	return "a rule of your own names it";
}

/* Each path counts once, whichever guard holds it. */
static int add_guarded(struct counting *c, enum risk_rule rule,
		       const struct engine_rolled_path *list, size_t n, struct err *err)
{
	int r = 0;

	for (size_t i = 0; i < n && r >= 0; i++)
		if (rule != RISK_HELD || !map_get(&c->held, list[i].path))
			r = risk_add(c->facts, rule, list[i].why, why_of(&list[i]), list[i].path,
				     err);
	return r;
}

static uint64_t count_held(const struct counting *c, const struct engine_promotion *p)
{
	uint64_t n = c->held.n;

	for (size_t i = 0; i < p->n_held; i++)
		n += !map_get(&c->held, p->held[i].path);
	return n;
}

static int take_promotion(struct counting *c, const struct engine_promotion *p, struct err *err)
{
	struct engine_facts *f = c->facts;
	int r;

	f->project = strdup(p->project);
	if (!f->project)
		return err_nomem(err);
	f->held = count_held(c, p);
	f->warned = p->n_warned;
	f->conflicts = p->n_conflicts;
	r = add_guarded(c, RISK_HELD, p->held, p->n_held, err);
	return r < 0 ? r : add_guarded(c, RISK_WARNED, p->warned, p->n_warned, err);
}

static int ask_guard(struct engine *e, const char *clone, const struct engine_facts_options *o,
		     struct counting *c, struct err *err)
{
	CLEANUP(engine_promotion_done) struct engine_promotion p = { 0 };
	int r;

	if (o->promotion)
		return take_promotion(c, o->promotion, err);
	r = engine_promote(
	    e,
	    &(struct engine_promote_options){ .clone = clone, .dry_run = true, .watch = o->watch },
	    &p, err);
	return r < 0 ? r : take_promotion(c, &p, err);
}

static int count_refusals(struct engine *e, const char *clone, struct engine_facts *f,
			  struct err *err)
{
	CLEANUP(engine_runs_done) struct engine_runs runs = { 0 };
	int r = engine_runs(e, &(struct engine_runs_options){ .clone = clone }, &runs, err);

	for (size_t i = 0; r >= 0 && i < runs.n; i++)
		f->refusals += runs.list[i].refusals.n + runs.list[i].refusals.more;
	return r;
}

static int find_standing(struct engine *e, const char *clone, const char *state,
			 struct engine_facts *f, struct err *err)
{
	struct engine_standing s;
	int r = engine_experiment_standing(e, clone, state, &s, err);

	if (r < 0)
		return r;
	f->experiment = s.standing;
	f->scored = s.scored;
	f->score = s.score;
	return 0;
}

/* --- the verb --------------------------------------------------------------------------- */

static const char *kind_of_all(unsigned seen)
{
	if (seen == 0)
		return "none";
	for (enum kind kind = 0; kind < KINDS; kind++)
		if (seen == 1U << kind)
			return kind_name(kind);
	return "mixed";
}

static int find_guard(struct engine *e, struct counting *c, struct err *err)
{
	AUTO_FREE char *user = rules_of_user(e);
	int r = user ? rules_read(&c->rules, user, err) : 0;

	return r < 0 ? r : guard_new(c->rules.list, c->rules.n, &c->guard, err);
}

static int find_facts(struct engine *e, const char *clone, const struct engine_facts_options *o,
		      struct engine_facts *f, struct err *err)
{
	CLEANUP(counting_done) struct counting c = {
		.facts = f,
		.held = MAP_INIT(map_hash_str, map_equal_str),
	};
	int r = kinds_new(&c.kinds, err);

	if (r < 0)
		return r;
	r = patterns_parse(&o->subject, &c.subject, err);
	if (r < 0)
		return r;
	r = find_guard(e, &c, err);
	if (r < 0)
		return r;
	r = count_files(e, clone, &c, o, err);
	if (r < 0)
		return r;
	f->kind = kind_of_all(c.seen);
	r = ask_guard(e, clone, o, &c, err);
	if (r < 0)
		return r;
	r = find_standing(e, o->ran_in ? o->ran_in : clone, o->ran_state, f, err);
	if (r < 0)
		return r;
	r = count_refusals(e, o->ran_in ? o->ran_in : clone, f, err);
	return r < 0 ? r : risk_conclude(f, err);
}

int engine_facts(struct engine *e, const struct engine_facts_options *options,
		 struct engine_facts *ret, struct err *err)
{
	CLEANUP(engine_facts_done) struct engine_facts f = { 0 };
	AUTO_FREE char *here = options->clone ? NULL : engine_clone_here(e);
	const char *clone = options->clone ? options->clone : here;
	int r;

	if (!clone)
		return err_set(err, -EDESTADDRREQ,
			       "name the clone: the current directory is in none");
	r = find_facts(e, clone, options, &f, err);
	if (r < 0)
		return r;
	*ret = TAKE_STRUCT(f);
	return 0;
}
