/*
 * The fate of a change that a rule ships: stage by stage, by the pipeline and the policy as they
 * are now.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/vec.h"
#include "engine/pipeline/pipeline-i.h"
#include "engine/watch/action-i.h"

static void outlook_done(struct engine_outlook *o)
{
	free(o->stage);
	free(o->why);
	texts_free(o->approvers, o->n_approvers);
}

void engine_watch_test_done(struct engine_watch_test *t)
{
	engine_firing_done(&t->firing);
	engine_verdict_done(&t->verdict);
	VEC_FREE(it, t->stages, t->n_stages, outlook_done(it));
	free(t->problem);
	*t = (struct engine_watch_test){ 0 };
}

static int judge(struct action *a, const char *tests, struct engine_watch_test *t, struct err *err)
{
	AUTO_FREE char *who = firing_asker(a->rule->name);
	const struct engine_policy_options options = {
		.facts = { .clone = a->firing->clone,
			   .subject = { (const char *const *)a->rule->subject,
					a->rule->n_subject } },
		.who = who,
		.tests = tests,
		.now = pipeline_now(),
	};
	int r;

	engine_verdict_done(&t->verdict);
	t->verdict = (struct engine_verdict){ 0 };
	r = who ? engine_policy_explain(a->there, &options, &t->verdict, err) : err_nomem(err);
	t->judged = r >= 0;
	return r;
}

static int name_approvers(struct engine_outlook *o, const struct engine_stage *stage,
			  char *const *others, struct err *err)
{
	size_t n = 0;

	if (stage->n_approvers > 0)
		return texts_add_all(&o->approvers, &o->n_approvers, stage->approvers,
				     stage->n_approvers, err);
	while (others && others[n])
		n++;
	return texts_add_all(&o->approvers, &o->n_approvers, others, n, err);
}

static int waits(struct engine_outlook *o, const struct engine_stage *stage, char *const *others,
		 const char *why, struct err *err)
{
	int r = text_set(&o->why, err, "%s", why);

	o->then = "waits";
	return r < 0 ? r : name_approvers(o, stage, others, err);
}

static int by_verdict(struct engine_outlook *o, const struct engine_stage *stage,
		      const struct engine_verdict *v, struct err *err)
{
	const struct engine_policy_step *rule = engine_verdict_step(v);
	char text[300];

	if (v->facts.conflicts > 0) {
		o->then = "held";
		return text_set(&o->why, err, "paths conflict");
	}
	snprintf(text, sizeof(text), "the rule '%.200s' %s", rule ? rule->rule : "",
		 v->then == ENGINE_MAY_LAND   ? "lets it"
		 : v->then == ENGINE_MUST_ASK ? "asks for a person"
					      : "refuses it");
	if (v->then == ENGINE_MAY_NOT) {
		o->then = "held";
		return text_set(&o->why, err, "%s", text);
	}
	if (strcmp(stage->approve, "always") == 0)
		return waits(o, stage, v->approvers, "this stage always asks for a person", err);
	if (v->then == ENGINE_MAY_LAND) {
		o->then = "lands";
		return text_set(&o->why, err, "%s", text);
	}
	return waits(o, stage, v->approvers,
		     rule                ? text
		     : v->facts.held > 0 ? "the guard holds a path of it"
					 : "no rule of policy.yaml fits, and then a person decides",
		     err);
}

static int look_at_stage(struct action *a, const struct engine_stage *stage, bool tested,
			 struct engine_watch_test *t, struct engine_outlook *o, struct err *err)
{
	int r;

	o->elsewhere = stage->target && strcmp(stage->target, a->rule->project) != 0;
	if (!stage->target && strcmp(stage->approve, "always") == 0)
		return waits(o, stage, NULL, "this stage always asks for a person", err);
	if (!stage->target || strcmp(stage->approve, "never") == 0) {
		o->then = stage->target ? "lands" : "passes";
		return text_set(&o->why, err,
				stage->target ? "this stage asks nobody" : "it only checks");
	}
	r = judge(a, tested ? "pass" : NULL, t, err);
	return r < 0 ? r : by_verdict(o, stage, &t->verdict, err);
}

static int look_at_stages(struct action *a, const struct engine_pipeline *p,
			  struct engine_watch_test *t, struct err *err)
{
	bool tested = false;
	int r = 0;

	for (size_t i = 0; i < p->n && r >= 0; i++) {
		struct engine_outlook *o;

		if (!VEC_ONE_MORE(t->stages, t->n_stages))
			return err_nomem(err);
		o = &t->stages[t->n_stages++];
		*o = (struct engine_outlook){ .stage = strdup(p->list[i].name) };
		if (!o->stage)
			return err_nomem(err);
		tested |= p->list[i].n_checks > 0;
		o->checks = p->list[i].n_checks;
		r = look_at_stage(a, &p->list[i], tested, t, o, err);
		if (r >= 0 && (strcmp(o->then, "waits") == 0 || strcmp(o->then, "held") == 0 ||
			       (a->rule->to && strcmp(a->rule->to, o->stage) == 0)))
			break;
	}
	return r;
}

int foresee(struct action *a, struct engine_watch_test *t, struct err *err)
{
	CLEANUP(engine_pipeline_done) struct engine_pipeline p = { 0 };
	struct err problem = { 0 };
	int r;

	if (a->firing->then == ENGINE_THEN_SHIP) {
		r = pipeline_load(a->engine, a->rule->project, &p, &problem);
		if (r >= 0 && a->rule->to && !pipeline_stage(&p, a->rule->to))
			r = err_set(&problem, -EINVAL, "'%s' has no stage '%.60s'", p.file,
				    a->rule->to);
		if (r == -ENOMEM)
			return err_nomem(err);
		r = r < 0 ? text_set(&t->problem, err, "%s", problem.msg)
			  : look_at_stages(a, &p, t, err);
		if (r < 0 || t->judged)
			return r;
	}
	return judge(a, NULL, t, err);
}
