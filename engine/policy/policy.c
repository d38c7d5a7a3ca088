#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/path.h"
#include "base/size.h"
#include "base/vec.h"
#include "engine/api/clone.h"
#include "engine/api/diff.h"
#include "engine/api/receipts.h"
#include "engine/find/config-i.h"
#include "engine/find/engine-i.h"
#include "engine/policy/rule-i.h"

#define USER_FILE    "policy.yaml"
#define PROJECT_FILE ".snap/policy.yaml"

#define BECAUSE_MAX 200

const char *engine_authority_name(enum engine_authority a)
{
	static const char *const names[] = { "land", "approve", "refuse" };

	return names[a];
}

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
	char *outside; /* owned; the first path that they do not name */
};

static int see_delta(const struct engine_state *from, const struct engine_state *to,
		     const struct delta *delta, void *ctx, struct err *err)
{
	struct finding *f = ctx;

	(void)from, (void)to, (void)err;
	for (size_t i = 0; i < delta->n_files && !f->outside; i++)
		if (!ignore_covers(f->paths, delta->files[i].path))
			f->outside = strdup(delta->files[i].path);
	for (size_t i = 0; i < delta->n_notes && !f->outside; i++)
		if (!ignore_covers(f->paths, delta->notes[i].path))
			f->outside = strdup(delta->notes[i].path);
	return 0;
}

static int see_file(const struct delta_file *f, const struct patch_counts *n, void *ctx,
		    struct err *err)
{
	(void)f, (void)n, (void)ctx, (void)err;
	return 0;
}

/* 1 if every path that changed is one of the rule's. */
static int paths_fit(const struct asked *a, const struct rule *r, char because[BECAUSE_MAX],
		     struct err *err)
{
	struct finding f = { .paths = r->paths };
	const struct engine_diff_sink sink = { .begin = see_delta, .file = see_file, .ctx = &f };
	int x =
	    r->paths
		? engine_diff(a->engine,
			      &(struct engine_diff_options){ .a = a->clone, .no_renames = true },
			      &sink, err)
		: 0;

	if (f.outside)
		snprintf(because, BECAUSE_MAX, "'%.150s' is none of its paths", f.outside);
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

static bool number_fits(const struct asked *a, const struct rule *r)
{
	const int64_t since = a->now - (int64_t)(r->span_ms * 1000000);
	uint64_t n = 0;

	for (size_t i = 0; i < a->receipts.n; i++)
		n += a->receipts.list[i].kind == ENGINE_RECEIPT_PROMOTION &&
		     a->receipts.list[i].created > since && a->receipts.list[i].created <= a->now;
	return r->most == 0 || n < r->most;
}

static int fits(const struct asked *a, const struct rule *r, char because[BECAUSE_MAX],
		struct err *err)
{
	int x;

	because[0] = '\0';
	if (!who_fits(a, r))
		snprintf(because, BECAUSE_MAX, "'%.60s' is not one who may ask by it", a->who);
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

/* The stricter of what was found so far and this one; of two that ask, the later names the persons. */
static int narrow(struct engine_verdict *v, const struct rule *r, enum engine_authority then,
		  struct err *err)
{
	if (then < v->then || (then == v->then && (!r || r->approvers.n == 0)))
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
static int judge(const struct asked *a, const char *path, enum engine_authority otherwise,
		 const char *none, struct engine_verdict *v, struct err *err)
{
	CLEANUP(rule_file_done) struct rule_file file = { 0 };
	char because[BECAUSE_MAX];
	int r = rule_file_read(path, &file, err);

	if (r < 0)
		return r;
	for (size_t i = 0; i < file.n; i++) {
		const struct rule *rule = &file.list[i];
		int x = fits(a, rule, because, err);

		if (x < 0)
			return x;
		r = add_step(v, &file, rule, x > 0, rule->then, because, err);
		if (r < 0)
			return r;
		if (x > 0)
			return narrow(v, rule, rule->then, err);
	}
	r = add_step(v, &file, NULL, true, otherwise, none, err);
	return r < 0 ? r : narrow(v, NULL, otherwise, err);
}

/* --- the verb --------------------------------------------------------------------------- */

/* Paths that conflict or are held never land by themselves, whatever rules say. */
static int judge_all(const struct asked *a, const char *project, struct engine_verdict *v,
		     struct err *err)
{
	AUTO_FREE char *user = config_file(a->engine->home, USER_FILE);
	AUTO_FREE char *own = path_join(project, PROJECT_FILE);
	int r;

	if (!own)
		return err_nomem(err);
	r = judge(a, user ? user : USER_FILE, ENGINE_MUST_ASK,
		  "no rule fits: a person must approve", v, err);
	if (r < 0)
		return r;
	r = judge(a, own, ENGINE_MAY_LAND, "no rule narrows it", v, err);
	if (r < 0)
		return r;
	if ((v->facts.held > 0 || v->facts.conflicts > 0) && v->then == ENGINE_MAY_LAND)
		return narrow(v, NULL, ENGINE_MUST_ASK, err);
	return 0;
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
	r = engine_receipts(e, &receipts, err);
	if (r < 0)
		return r;
	a.receipts = receipts;
	return judge_all(&a, v->facts.project, v, err);
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
		return err_set(err, -EINVAL, "which clone is to be judged?");
	r = explain(e, options, clone, &v, err);
	if (r < 0)
		return r;
	*ret = v;
	v = (struct engine_verdict){ 0 };
	return 0;
}
