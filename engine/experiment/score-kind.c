/*
 * The kinds of measurements of an experiment, and their subjects.
 */
#include "engine/experiment/experiment-i.h"

bool score_is_timed(const struct engine_experiment *x)
{
	return x->score == ENGINE_SCORE_TIME || x->score == ENGINE_SCORE_CPU;
}

static bool is_measured(const struct engine_experiment *x)
{
	return score_is_timed(x) || x->score == ENGINE_SCORE_MEM;
}

bool score_is_run(const struct engine_experiment *x)
{
	return is_measured(x) || x->score == ENGINE_SCORE_COMMAND || x->score == ENGINE_SCORE_SIZE;
}

bool score_is_on_result(const struct engine_experiment *x)
{
	return x->score_of || x->n_checks > 0;
}

bool score_needs_judge(const struct engine_experiment *x)
{
	return score_is_run(x) && score_is_on_result(x);
}

uint64_t score_rounds(const struct engine_experiment *x)
{
	return score_is_timed(x) ? 5 : 1;
}
