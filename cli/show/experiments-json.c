#include "cli/show/experiments.h"
#include "cli/show/machines.h"
#include "cli/show/standings.h"

static void set_changed(struct json j, const struct engine_arm *arm)
{
	const struct json c = json_set_object(j, "changed");
	const struct json paths = json_set_array(c, "paths");

	json_set_uint(c, "added", arm->added);
	json_set_uint(c, "modified", arm->modified);
	json_set_uint(c, "deleted", arm->deleted);
	json_set_uint(c, "lines_added", arm->lines_added);
	json_set_uint(c, "lines_removed", arm->lines_removed);
	for (size_t i = 0; i < arm->changed.n; i++) {
		const struct json one = json_add_object(paths);

		json_set_name(one, "path", arm->changed.list[i].path);
		json_set_text(one, "status", out_status(arm->changed.list[i].status));
	}
	json_set_bool(c, "truncated", arm->changed.truncated);
}

static void set_score(struct json j, const struct engine_arm *arm)
{
	const struct json rounds = json_set_array(j, "rounds");

	if (arm->scored) {
		json_set_double(j, "score", arm->score, 3);
		json_set_double(j, "spread", arm->spread, 3);
	} else {
		json_set_null(j, "score");
		json_set_null(j, "spread");
	}
	for (size_t i = 0; i < arm->n_rounds; i++) {
		const struct json one = json_add_object(rounds);

		json_set_double(one, "value", arm->rounds[i].value, 3);
		json_set_uint(one, "other_runs", arm->rounds[i].runs);
		json_set_uint(one, "other_tasks", arm->rounds[i].tasks);
	}
}

void experiments_set_arm(struct json j, const struct engine_arm *arm)
{
	struct json warnings;

	fields_set_list(j, "checks", &engine_checked_fields, arm->checks, arm->n_checks);
	warnings = json_set_array(j, "warnings");
	json_set_name(j, "arm", arm->name);
	json_set_name(j, "repeats", arm->group);
	json_set_name(j, "command", arm->command);
	json_set_name(j, "profile", arm->profile);
	json_set_name(j, "from", arm->from);
	json_set_name(j, "after", arm->after);
	json_set_names(j, "env", arm->env, arm->n_env);
	json_set_name(j, "clone", arm->has_clone ? arm->clone : NULL);
	json_set_text(j, "state", engine_arm_state_name(arm->state));
	json_set_text(j, "why", arm->why);
	machines_set_json(j, arm);
	out_json_id(j, "run", arm->run);
	json_set_int_if(j, "exit_code", *arm->run != '\0', arm->exit_code);
	out_json_id(j, "limit", arm->limit);
	json_set_uint(j, "duration_ms", arm->duration_ms);
	json_set_uint(j, "cpu_ms", arm->cpu_ms);
	json_set_uint(j, "max_mem", arm->max_mem);
	out_json_id(j, "result", arm->result);
	set_changed(j, arm);
	set_score(j, arm);
	for (size_t i = 0; i < arm->n_warnings; i++) {
		const struct json one = json_add_object(warnings);

		json_set_text(one, "kind", arm->warnings[i].kind);
		json_set_name(one, "path", arm->warnings[i].path);
		json_set_text(one, "detail", arm->warnings[i].detail);
	}
	out_json_id(j, "promotion", arm->promotion);
}

const char *experiments_state(const struct engine_experiment *x)
{
	return x->state != ENGINE_EXPERIMENT_ENDED && !x->alive
		   ? "interrupted"
		   : engine_experiment_state_name(x->state);
}

const char *experiments_waits_for(const struct engine_experiment *x)
{
	return x->alive ? x->waits_for : NULL;
}

void experiments_set_summary(struct json j, const struct engine_experiment *x)
{
	size_t passed = 0;

	for (size_t i = 0; i < x->n_arms; i++)
		passed += x->arms[i].state == ENGINE_ARM_PASSED;
	json_set_name(j, "experiment", x->name);
	json_set_name(j, "file", x->file);
	json_set_name(j, "project", x->project);
	json_set_text(j, "state", experiments_state(x));
	json_set_name(j, "waits_for", experiments_waits_for(x));
	out_json_time(j, "created", x->created);
	json_set_uint(j, "count", x->n_arms);
	json_set_uint(j, "passed", passed);
	json_set_name(j, "winner", x->winner);
	json_set_names(j, "tie", x->tie, x->n_tie);
	json_set_names(j, "promoted", x->promoted, x->n_promoted);
}

/* How it judges its arms. */
static void set_judging(struct json j, const struct engine_experiment *x)
{
	struct json score;

	json_set_names(j, "checks", x->checks, x->n_checks);
	score = json_set_object(j, "score");
	json_set_text(score, "kind", engine_score_name(x->score));
	json_set_name(score, "of", x->score_of);
	json_set_text(score, "better", x->higher ? "higher" : "lower");
	json_set_uint(score, "rounds", x->rounds);
}

/* The experiment inside of an arm; "waiting" until that arm has come so far. */
static void set_inner(struct json j, const struct engine_experiment *x, const char *path)
{
	json_set_name(j, "arm", path);
	json_set_name(j, "file", x->file);
	json_set_text(j, "state",
		      x->created == 0 ? "waiting" : engine_experiment_state_name(x->state));
	out_json_id(j, "base", x->base);
	set_judging(j, x);
	JSON_SET_LIST(j, "arms", x->arms, x->n_arms, experiments_set_arm);
	json_set_name(j, "winner", x->winner);
	json_set_names(j, "tie", x->tie, x->n_tie);
	json_set_text(j, "verdict", x->verdict);
}

static void set_inside(struct json list, const struct engine_experiment *x)
{
	struct engine_arms_walk walk = engine_arms_walk(x);
	const struct engine_arm *arm;
	char path[ENGINE_ARM_PATH_SIZE];

	while ((arm = engine_arms_next(&walk)))
		if (arm->n_inner > 0)
			set_inner(json_add_object(list), arm->inner, engine_arms_path(&walk, path));
}

void experiments_set_json(struct json j, const struct engine_experiment *x,
			  const struct standings *s)
{
	struct engine_rate rate;
	struct json list, one;

	experiments_set_summary(j, x);
	out_json_id(j, "base", x->base);
	out_json_time_or_null(j, "ended", x->ended);
	set_judging(j, x);
	json_set_uint(j, "jobs", x->jobs);
	machines_set_fleet(j, x);
	list = json_set_array(j, "arms");
	for (size_t i = 0; i < x->n_arms; i++) {
		one = json_add_object(list);
		experiments_set_arm(one, &x->arms[i]);
		if (s)
			standings_set_json(one, s, i);
	}
	set_inside(json_set_array(j, "inner"), x);
	list = json_set_array(j, "rates");
	for (size_t i = 0; engine_experiment_rate(x, i, &rate); i++) {
		one = json_add_object(list);
		json_set_name(one, "arm", rate.arm);
		json_set_uint(one, "runs", rate.runs);
		json_set_uint(one, "passed", rate.passed);
		json_set_double(one, "rate", rate.rate, 4);
		json_set_double(one, "low", rate.low, 4);
		json_set_double(one, "high", rate.high, 4);
	}
	json_set_text(j, "verdict", x->verdict);
	json_set_text(j, "problem", x->problem);
}
