#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/vec.h"
#include "engine/api/clone.h"
#include "engine/api/diff.h"
#include "engine/api/receipts.h"
#include "engine/find/config-i.h"
#include "engine/find/conflicts-i.h"
#include "engine/find/engine-i.h"
#include "engine/policy/rule-i.h"

#define BECAUSE_MAX 200

void engine_verdict_done(struct engine_verdict *v)
{
	for (size_t i = 0; i < v->n_steps; i++) {
		free(v->steps[i].file);
		free(v->steps[i].rule);
		free(v->steps[i].because);
	}
	free(v->steps);
	for (size_t i = 0; v->approvers && v->approvers[i]; i++)
		free(v->approvers[i]);
	free(v->approvers);
	engine_facts_done(&v->facts);
	*v = (struct engine_verdict){ 0 };
}

const struct engine_policy_step *engine_verdict_step(const struct engine_verdict *v)
{
	return VEC_FIND(it, v->steps, v->n_steps, it->fits && it->rule && it->then == v->then);
}

/* All that rules are held against. */
struct asked {
	struct engine *engine;
	const char *clone, *who;
	struct gate_facts facts;
	struct engine_receipts receipts;
	int64_t now;
};

/* --- does a rule fit? ------------------------------------------------------------------- */

struct finding {
	const struct ignore *paths;
	bool any;      /* of the paths that changed is named */
	char *outside; /* owned; the first that is not */
	bool no_memory;
};

/* What lies below .git never lands by a merge, so it is no reason for or against a rule. */
static void see_path(struct finding *f, const char *path)
{
	size_t len;

	if (conflicts_is_git(path, &len))
		return;
	if (ignore_covers(f->paths, path)) {
		f->any = true;
		return;
	}
	if (f->outside)
		return;
	f->outside = strdup(path);
	f->no_memory |= !f->outside;
}

static int see_delta(const struct engine_state *from, const struct engine_state *to,
		     const struct delta *delta, void *ctx, struct err *err)
{
	struct finding *f = ctx;

	for (size_t i = 0; i < delta->n_files; i++)
		see_path(f, delta->files[i].path);
	for (size_t i = 0; i < delta->n_notes; i++)
		see_path(f, delta->notes[i].path);
	return f->no_memory ? err_nomem(err) : 0;
}

/*
 * 1 if the rule is for what changed: all of it, if it lets that land; any of it, if it stops that, or
 * one more file would be a way around the rule.
 */
static int paths_fit(const struct asked *a, const struct rule *r, char because[BECAUSE_MAX],
		     struct err *err)
{
	struct finding f = { .paths = r->paths };
	const struct engine_diff_sink sink = { .begin = see_delta, .ctx = &f };
	int x;

	if (!r->paths)
		return 1;
	x = engine_diff(a->engine,
			&(struct engine_diff_options){ .a = a->clone, .no_renames = true }, &sink,
			err);
	if (x >= 0 && f.outside && r->then == ENGINE_MAY_LAND)
		snprintf(because, BECAUSE_MAX, "'%.150s' is none of its paths", f.outside);
	else if (x >= 0 && !f.any)
		snprintf(because, BECAUSE_MAX, "none of its paths changed");
	free(f.outside);
	return x < 0 ? x : because[0] == '\0';
}

static int gates_fit(const struct asked *a, const struct rule *r, char because[BECAUSE_MAX],
		     struct err *err)
{
	for (size_t i = 0; i < r->when.n; i++) {
		char value[GATE_TEXT_MAX];
		int x = gate_holds(r->when.list[i], &a->facts, err);

		if (x < 0)
			return x;
		if (x == 0) {
			gate_tell(r->when.list[i], &a->facts, value);
			snprintf(because, BECAUSE_MAX, "it needs %.60s, and %s", r->when.list[i],
				 value);
			return 0;
		}
	}
	return 1;
}

/* "agent" stands for every "agent:NAME". */
static bool who_fits(const struct asked *a, const struct rule *r)
{
	for (size_t i = 0; i < r->who.n; i++) {
		const size_t len = strlen(r->who.list[i]);

		if (strncmp(a->who, r->who.list[i], len) == 0 &&
		    (a->who[len] == '\0' || a->who[len] == ':'))
			return true;
	}
	return r->who.n == 0;
}

static bool time_fits(const struct asked *a, const struct rule *r)
{
	const time_t s = (time_t)(a->now / 1000000000);
	struct tm tm;
	int minute;

	if (r->from == r->until)
		return true;
	if (!localtime_r(&s, &tm))
		return false;
	minute = tm.tm_hour * 60 + tm.tm_min;
	return r->from < r->until ? minute >= r->from && minute < r->until
				  : minute >= r->from || minute < r->until;
}

/* One that the clock puts in the future landed before somebody set it back: it counts. */
static bool number_fits(const struct asked *a, const struct rule *r)
{
	const int64_t since = a->now - (int64_t)(r->span_ms * 1000000);
	uint64_t n = 0;

	for (size_t i = 0; i < a->receipts.n; i++)
		n += a->receipts.list[i].kind == ENGINE_RECEIPT_PROMOTION &&
		     a->receipts.list[i].created > since;
	return r->most == 0 || n < r->most;
}

static int fits(const struct asked *a, const struct rule *r, char because[BECAUSE_MAX],
		struct err *err)
{
	int x;

	because[0] = '\0';
	if (!who_fits(a, r))
		snprintf(because, BECAUSE_MAX, "its 'who' does not name '%.60s'", a->who);
	else if (!time_fits(a, r))
		snprintf(because, BECAUSE_MAX, "it is for %02d:%02d to %02d:%02d", r->from / 60,
			 r->from % 60, r->until / 60, r->until % 60);
	else if (!number_fits(a, r))
		snprintf(because, BECAUSE_MAX, "%" PRIu64 " promotions landed lately, its limit",
			 r->most);
	if (because[0] != '\0')
		return 0;
	x = gates_fit(a, r, because, err);
	return x <= 0 ? x : paths_fit(a, r, because, err);
}

/* --- files ------------------------------------------------------------------------------ */

static int add_step(struct engine_verdict *v, const struct rule_file *f, const struct rule *r,
		    bool fits, enum engine_authority then, const char *because, struct err *err)
{
	struct engine_policy_step *s;

	if (!VEC_ONE_MORE(v->steps, v->n_steps))
		return err_nomem(err);
	s = &v->steps[v->n_steps++];
	*s = (struct engine_policy_step){
		.file = strdup(f->name),
		.line = r ? r->line : 0,
		.rule = r ? strdup(r->name) : NULL,
		.then = then,
		.fits = fits,
		.because = *because != '\0' ? strdup(because) : NULL,
	};
	return s->file && (s->rule || !r) && (s->because || *because == '\0') ? 0 : err_nomem(err);
}

/* The stricter of what was found so far and this one; approvers whom the user named stay the only ones. */
static int narrow(struct engine_verdict *v, const struct rule *r, enum engine_authority then,
		  struct err *err)
{
	if (then < v->then || (then == v->then && (v->approvers || !r || r->approvers.n == 0)))
		return 0;
	v->then = then;
	for (size_t i = 0; v->approvers && v->approvers[i]; i++)
		free(v->approvers[i]);
	free(v->approvers);
	v->approvers = NULL;
	if (!r || r->approvers.n == 0)
		return 0;
	v->approvers = calloc(r->approvers.n + 1, sizeof(*v->approvers));
	for (size_t i = 0; v->approvers && i < r->approvers.n; i++) {
		v->approvers[i] = strdup(r->approvers.list[i]);
		if (!v->approvers[i])
			return err_nomem(err);
	}
	return v->approvers ? 0 : err_nomem(err);
}

/* Look at the rules of one file up to the first that fits; none: `otherwise`. */
static int judge(const struct asked *a, const struct rule_file *file,
		 enum engine_authority otherwise, const char *none, struct engine_verdict *v,
		 struct err *err)
{
	char because[BECAUSE_MAX];
	int r;

	for (size_t i = 0; i < file->n; i++) {
		const struct rule *rule = &file->list[i];
		int x = fits(a, rule, because, err);

		if (x < 0)
			return x;
		r = add_step(v, file, rule, x > 0, rule->then, because, err);
		if (r < 0)
			return r;
		if (x > 0)
			return narrow(v, rule, rule->then, err);
	}
	r = add_step(v, file, NULL, true, otherwise, none, err);
	return r < 0 ? r : narrow(v, NULL, otherwise, err);
}

/* --- the verb --------------------------------------------------------------------------- */

static int judge_user(const struct asked *a, struct engine_verdict *v, struct err *err)
{
	CLEANUP(rule_file_done) struct rule_file file = { 0 };
	AUTO_FREE char *path = config_file(a->engine->home, RULE_FILE);
	int r;

	/* Without a home there is no file of the user's: none in the current directory either. */
	if (path)
		r = rule_file_read_user(path, &file, err);
	else
		r = (file.name = strdup(RULE_FILE)) ? 0 : err_nomem(err);
	if (r < 0)
		return r;
	return judge(a, &file, ENGINE_MUST_ASK, "no rule fits: a person must approve", v, err);
}

static int judge_project(const struct asked *a, struct engine_verdict *v, struct err *err)
{
	CLEANUP(rule_file_done) struct rule_file file = { 0 };
	int r = rule_file_read_project(v->facts.project, &file, err);

	return r < 0 ? r : judge(a, &file, ENGINE_MAY_LAND, "no rule narrows it", v, err);
}

/* Paths that conflict or are held never land by themselves, whatever rules say. */
static int judge_all(const struct asked *a, struct engine_verdict *v, struct err *err)
{
	int r = judge_user(a, v, err);

	if (r < 0)
		return r;
	r = judge_project(a, v, err);
	if (r < 0)
		return r;
	if ((v->facts.held > 0 || v->facts.conflicts > 0) && v->then == ENGINE_MAY_LAND)
		return narrow(v, NULL, ENGINE_MUST_ASK, err);
	return 0;
}

/* Those of the clone's project, wherever the command was given. */
static int load_receipts(const struct engine *e, const char *project, struct engine_receipts *ret,
			 struct err *err)
{
	const struct engine_options options = { .dir = project, .store = e->store_path };
	CLEANUP(engine_close_p) struct engine *there = NULL;
	int r = engine_open(&options, &there, err);

	return r < 0 ? r : engine_receipts(there, ret, err);
}

static int explain(struct engine *e, const struct engine_policy_options *o, const char *clone,
		   struct engine_verdict *v, struct err *err)
{
	CLEANUP(engine_receipts_done) struct engine_receipts receipts = { 0 };
	struct engine_facts_options options = o->facts;
	struct asked a = {
		.engine = e,
		.clone = clone,
		.who = o->who ? o->who : "watch",
		.now = o->now ? o->now : engine_now(),
		.facts = { .facts = &v->facts, .tests = o->tests ? o->tests : "unknown" },
	};
	int r;

	options.clone = clone;
	r = engine_facts(e, &options, &v->facts, err);
	if (r < 0)
		return r;
	r = load_receipts(e, v->facts.project, &receipts, err);
	if (r < 0)
		return r;
	a.receipts = receipts;
	return judge_all(&a, v, err);
}

int engine_policy_explain(struct engine *e, const struct engine_policy_options *options,
			  struct engine_verdict *ret, struct err *err)
{
	CLEANUP(engine_verdict_done) struct engine_verdict v = { .then = ENGINE_MAY_LAND };
	AUTO_FREE char *here = options->facts.clone ? NULL : engine_clone_here(e);
	const char *clone = options->facts.clone ? options->facts.clone : here;
	int r;

	if (options->tests && strcmp(options->tests, "pass") != 0 &&
	    strcmp(options->tests, "fail") != 0)
		return err_set(err, -EINVAL, "tests: '%s' is neither pass nor fail",
			       options->tests);
	if (!clone)
		return err_set(err, -EDESTADDRREQ,
			       "name the clone: the current directory is in none");
	r = explain(e, options, clone, &v, err);
	if (r < 0)
		return r;
	*ret = TAKE_STRUCT(v);
	return 0;
}
