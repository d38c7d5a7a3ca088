#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/size.h"
#include "base/text.h"
#include "base/vec.h"
#include "engine/experiment/experiment-i.h"

const char *engine_experiment_value(const struct engine_experiment *x, double value,
				    char text[ENGINE_VALUE_MAX])
{
	char size[SIZE_TEXT_MAX], duration[DURATION_TEXT_MAX];

	switch (x->score) {
	case ENGINE_SCORE_TIME:
	case ENGINE_SCORE_CPU:
		snprintf(text, ENGINE_VALUE_MAX, "%s",
			 duration_format((uint64_t)(value + 0.5), duration));
		return text;
	case ENGINE_SCORE_MEM:
	case ENGINE_SCORE_SIZE:
		snprintf(text, ENGINE_VALUE_MAX, "%s", size_format((uint64_t)(value + 0.5), size));
		return text;
	case ENGINE_SCORE_NONE:
	case ENGINE_SCORE_COMMAND:
	case ENGINE_SCORE_LINES:
		break;
	}
	snprintf(text, ENGINE_VALUE_MAX, "%.6g", value);
	return text;
}

/* What a sentence calls the score. */
static const char *noun_of(enum engine_score score)
{
	static const char *const nouns[] = {
		[ENGINE_SCORE_NONE] = "score", [ENGINE_SCORE_COMMAND] = "score",
		[ENGINE_SCORE_TIME] = "time",  [ENGINE_SCORE_CPU] = "processor time",
		[ENGINE_SCORE_MEM] = "memory", [ENGINE_SCORE_LINES] = "number of lines",
		[ENGINE_SCORE_SIZE] = "size",
	};

	return nouns[score];
}

static int set_winner(struct engine_experiment *x, const struct engine_arm *arm, struct err *err)
{
	free(x->winner);
	x->winner = strdup(arm->name);
	return x->winner ? 0 : err_nomem(err);
}

void verdict_forget(struct engine_experiment *x)
{
	for (size_t i = 0; i < x->n_tie; i++)
		free(x->tie[i]);
	x->n_tie = 0;
	free(x->winner);
	free(x->verdict);
	x->winner = x->verdict = NULL;
}

static int add_tie(struct engine_experiment *x, const struct engine_arm *arm, struct err *err)
{
	if (!VEC_ONE_MORE(x->tie, x->n_tie))
		return err_nomem(err);
	x->tie[x->n_tie] = strdup(arm->name);
	return x->tie[x->n_tie++] ? 0 : err_nomem(err);
}

static bool is_better(const struct engine_experiment *x, const struct engine_arm *a,
		      const struct engine_arm *b)
{
	return x->higher ? a->score > b->score : a->score < b->score;
}

/* The difference is no larger than what two measurements of the same would show. */
static bool is_tie(const struct engine_arm *a, const struct engine_arm *b)
{
	return fabs(a->score - b->score) <= a->spread + b->spread;
}

static int compare_scores(struct engine_experiment *x, const struct engine_arm *best,
			  struct err *err)
{
	char ours[ENGINE_VALUE_MAX], theirs[ENGINE_VALUE_MAX], spread[ENGINE_VALUE_MAX];
	const struct engine_arm *second = NULL, *rival = NULL; /* the best that ties, if any does */
	int r = 0;

	for (size_t i = 0; i < x->n_arms && r >= 0; i++) {
		const struct engine_arm *arm = &x->arms[i];

		if (arm == best || arm->state != ENGINE_ARM_PASSED || !arm->scored)
			continue;
		if (!second || is_better(x, arm, second))
			second = arm;
		if (!is_tie(best, arm))
			continue;
		if (!rival || is_better(x, arm, rival))
			rival = arm;
		r = x->n_tie == 0 ? add_tie(x, best, err) : 0;
		if (r >= 0)
			r = add_tie(x, arm, err);
	}
	if (r < 0)
		return r;
	if (!second) {
		r = set_winner(x, best, err);
		return r < 0 ? r
			     : text_set(&x->verdict, err,
					"'%s' wins: it is the only arm with a score", best->name);
	}
	engine_experiment_value(x, best->score, ours);
	engine_experiment_value(x, rival ? rival->score : second->score, theirs);
	if (rival)
		return text_set(
		    &x->verdict, err,
		    "a tie of %zu arms: '%s' has %s and '%s' %s, which is within the spread of "
		    "%s",
		    x->n_tie, best->name, ours, rival->name, theirs,
		    engine_experiment_value(x, best->spread + rival->spread, spread));
	r = set_winner(x, best, err);
	return r < 0 ? r
		     : text_set(&x->verdict, err,
				"'%s' wins: its %s is %s; the next best, '%s', has %s", best->name,
				noun_of(x->score), ours, second->name, theirs);
}

static int tie_all(struct engine_experiment *x, struct err *err)
{
	int r = 0;

	for (size_t i = 0; i < x->n_arms && r >= 0; i++)
		if (x->arms[i].state == ENGINE_ARM_PASSED)
			r = add_tie(x, &x->arms[i], err);
	return r < 0 ? r
		     : text_set(&x->verdict, err, "%zu arms passed, and no score tells them apart",
				x->n_tie);
}

int verdict_find(struct engine_experiment *x, struct err *err)
{
	const struct engine_arm *best = NULL, *first = NULL;
	size_t passed = 0;
	int r;

	verdict_forget(x);
	for (size_t i = 0; i < x->n_arms; i++) {
		const struct engine_arm *arm = &x->arms[i];

		if (arm->state != ENGINE_ARM_PASSED)
			continue;
		passed++;
		first = first ? first : arm;
		if (arm->scored && (!best || is_better(x, arm, best)))
			best = arm;
	}
	if (passed == 0)
		return text_set(&x->verdict, err, "no arm passed");
	if (x->repeat > 1)
		return text_set(&x->verdict, err, "%zu of %zu repetitions passed", passed,
				x->n_arms);
	if (passed == 1) {
		r = set_winner(x, first, err);
		return r < 0 ? r
			     : text_set(&x->verdict, err, "'%s' wins: it is the %s arm that passed",
					first->name, x->stop_after == 1 ? "first" : "only");
	}
	return best ? compare_scores(x, best, err) : tie_all(x, err);
}
