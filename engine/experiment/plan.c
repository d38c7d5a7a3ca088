/*
 * A plan is completed before anything is done: names, states that cannot move, repetitions, and
 * limits of the whole as limits of each arm.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/path.h"
#include "base/sys.h"
#include "base/text.h"
#include "engine/experiment/experiment-i.h"
#include "engine/experiment/file-i.h"
#include "engine/worker/on-clone-i.h"

#define ELSEWHERE_JOBS   32 /* a process here for each arm under way, which only waits */
#define ONE_MACHINE_JOBS 4  /* which runs as many at once, over a connection for each */
#define NAME_MAX_LEN     24 /* of an experiment: the names of its clones are made of it */

/* A clone goes on changing, so arms start from a snapshot of it; *text becomes the snapshot's id. */
static int fix_state(struct engine *e, char **text, struct err *err)
{
	CLEANUP(engine_taken_done) struct engine_taken taken = { 0 };
	CLEANUP(state_done) struct state state = { 0 };
	struct store *s;
	char *id;
	int r = *text ? engine_store(e, STORE_READ, &s, err) : 0;

	if (r < 0 || !*text)
		return r;
	r = state_find(e, s, *text, &state, err);
	if (r < 0)
		return r;
	if (state.kind == STATE_CLONE) {
		const struct engine_take_options options = { .clone = *text };

		r = engine_take(e, &options, &taken, err);
		if (r < 0)
			return r;
		id = strdup(taken.snapshot.id);
	} else if (state.kind == STATE_SNAPSHOT) {
		id = strdup(state.text);
	} else {
		free(*text);
		*text = NULL;
		return 0;
	}
	if (!id)
		return err_nomem(err);
	free(*text);
	*text = id;
	return 0;
}

static int repeat_arm(struct engine_experiment *x, const struct engine_arm *of,
		      struct engine_arm *list, struct err *err)
{
	int r = 0;

	for (uint64_t k = 0; k < x->repeat && r >= 0; k++) {
		struct engine_arm *arm = &list[k];

		arm->group = strdup(of->name);
		arm->name = text_format("%s.%llu", of->name, (unsigned long long)k + 1);
		r = arm->group && arm->name ? arm_copy_plan(arm, of, err) : err_nomem(err);
	}
	return r;
}

static int repeat_arms(struct engine_experiment *x, struct err *err)
{
	CLEANUP(engine_experiment_done) struct engine_experiment plain = { 0 };
	int r = 0;

	if (x->repeat <= 1)
		return 0;
	if (x->repeat > ENGINE_ARMS_MAX / x->n_arms)
		return err_set(err, -EINVAL, "with the repetitions there are more than %d arms",
			       ENGINE_ARMS_MAX);
	plain.arms = x->arms;
	plain.n_arms = x->n_arms;
	x->n_arms = 0;
	x->arms = calloc(plain.n_arms * x->repeat, sizeof(*x->arms));
	if (!x->arms)
		return err_nomem(err);
	for (size_t i = 0; i < plain.n_arms && r >= 0; i++) {
		x->n_arms += x->repeat;
		r = repeat_arm(x, &plain.arms[i], &x->arms[i * x->repeat], err);
	}
	return r;
}

/* Limits of the whole become limits of the arms, whose sum cannot exceed them. */
static int share_limits(struct engine_experiment *x, struct err *err)
{
	struct engine_run_limits *l = &x->limits;
	const size_t arms = engine_arms_count(x);
	uint64_t share;

	if (x->jobs == 0)
		x->jobs = !x->on.queue                       ? sys_processors()
			  : on_place_is_machine(x->on.queue) ? ONE_MACHINE_JOBS
							     : ELSEWHERE_JOBS;
	if (x->jobs > arms)
		x->jobs = arms;
	if (x->all_mem > 0) {
		share = l->mem == ENGINE_UNSAID || l->mem == 0 ? x->all_mem / x->jobs : l->mem;
		if (share > x->all_mem)
			return err_set(err, -EINVAL,
				       "an arm may use more memory than the whole experiment");
		if (share == 0)
			return err_set(err, -EINVAL,
				       "--all-mem is too little for %llu arms at once",
				       (unsigned long long)x->jobs);
		l->mem = share;
		if (x->jobs > x->all_mem / share)
			x->jobs = x->all_mem / share;
	}
	if (x->all_disk > 0) {
		/* Of each arm there are two clones: its own, and the one that is judged. */
		share = x->all_disk / arms / 2;
		if (share == 0)
			return err_set(err, -EINVAL, "--all-disk is too little for %zu arms", arms);
		if (l->disk == ENGINE_UNSAID || l->disk == 0 || l->disk > share)
			l->disk = share;
	}
	return 0;
}

static int check_free(struct engine *e, const char *clone, struct err *err)
{
	if (!engine_has_clone(e, clone))
		return 0;
	return err_set(err, -EEXIST, "there is a clone '%s', as an arm would have it", clone);
}

#define CLONE_PART_MAX \
	(ENGINE_ARM_NAME_MAX + 5) /* of an arm's name, with the number of a repetition */

/* What a clone may be called: other characters become '-'; a number (0: none) stands for what is cut off. */
static char *clone_name(const struct engine_experiment *x, const char *arm, size_t number)
{
	static const char chars[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789_.-";
	char *text = NULL;
	int n;

	if (number == 0)
		n = asprintf(&text, "%s-%.*s", x->name, CLONE_PART_MAX, arm);
	else
		n = asprintf(&text, "%s-%.*s.%zu", x->name, CLONE_PART_MAX - 10, arm, number);
	if (n < 0)
		return NULL;
	for (char *c = text + strlen(x->name) + 1; *c != '\0'; c++)
		if (!strchr(chars, *c))
			*c = '-';
	return text;
}

/* Has an arm at any level this clone already? */
static bool is_taken(const struct engine_experiment *x, const char *clone)
{
	struct engine_arms_walk walk = engine_arms_walk(x);
	const struct engine_arm *arm;

	while ((arm = engine_arms_next(&walk)))
		if (arm->clone && strcmp(arm->clone, clone) == 0)
			return true;
	return false;
}

static bool ends_as_judge(const char *name)
{
	const size_t len = strlen(name), tail = strlen(JUDGE_SUFFIX);

	return len >= tail && strcmp(name + len - tail, JUDGE_SUFFIX) == 0;
}

/* `i` of all arms, whose path is that. */
static int name_clone(const struct engine_experiment *x, struct engine_arm *arm, const char *path,
		      size_t i, struct err *err)
{
	const bool cut = strlen(path) > CLONE_PART_MAX || ends_as_judge(path);
	char *name = clone_name(x, path, cut ? i + 1 : 0);

	for (size_t k = 0; name && is_taken(x, name); k++) {
		free(name);
		name = clone_name(x, path, i + 1 + k * ENGINE_ARMS_MAX);
	}
	arm->clone = name;
	return name ? 0 : err_nomem(err);
}

static int name_clones(struct engine *e, struct engine_experiment *x, struct err *err)
{
	struct engine_arms_walk walk = engine_arms_walk(x);
	struct engine_arm *arm;

	for (size_t i = 0; (arm = engine_arms_next(&walk)); i++) {
		char path[ENGINE_ARM_PATH_SIZE];
		AUTO_FREE char *judge = NULL;
		int r = name_clone(x, arm, engine_arms_path(&walk, path), i, err);

		if (r < 0)
			return r;
		judge = text_format("%s" JUDGE_SUFFIX, arm->clone);
		if (!judge)
			return err_nomem(err);
		r = check_free(e, arm->clone, err);
		if (r < 0)
			return r;
		r = check_free(e, judge, err);
		if (r < 0)
			return r;
	}
	return 0;
}

static bool is_free(struct engine *e, const char *name)
{
	CLEANUP(engine_experiment_done) struct engine_experiment other = { 0 };

	return engine_experiment_load(e, name, &other, NULL) == -ENOENT;
}

static int check_name(const char *name, struct err *err)
{
	if (strlen(name) > NAME_MAX_LEN)
		return err_set(err, -EINVAL,
			       "the name '%.40s' is longer than %d bytes: --name gives another",
			       name, NAME_MAX_LEN);
	return clone_check_name(name, err);
}

/* The file's own name; the second time with a number. */
static int name_by_file(struct engine *e, struct engine_experiment *x, struct err *err)
{
	x->name = strdup(x->file);
	for (unsigned i = 2; x->name && !is_free(e, x->name); i++) {
		free(x->name);
		x->name = text_format("%s-%u", x->file, i);
	}
	return x->name ? check_name(x->name, err) : err_nomem(err);
}

static int pick_name(struct engine *e, struct engine_experiment *x, struct err *err)
{
	char name[CLONE_NAME_MAX + 1];
	int r = 0;

	if (x->name)
		return check_name(x->name, err);
	if (x->file)
		return name_by_file(e, x, err);
	for (int i = 0; i < 100 && !x->name && r >= 0; i++) {
		r = words_pick(name, err);
		if (r >= 0 && is_free(e, name))
			x->name = strdup(name);
	}
	return r < 0 || x->name ? r : err_nomem(err);
}

/* A number that no other experiment has, and no clone that was made by hand. */
static int pick_owner(struct engine_experiment *x, struct err *err)
{
	int r = sys_random(&x->owner, sizeof(x->owner));

	if (r < 0)
		return err_set(err, r, "no random bytes");
	x->owner = (x->owner & INT64_MAX) | 1;
	return 0;
}

int plan_complete(struct engine *e, struct engine_experiment *x, struct err *err)
{
	CLEANUP(project_done) struct project project = { 0 };
	struct store *s = NULL;
	int r;

	if (x->n_arms == 0)
		return err_set(err, -EINVAL, "an experiment needs an arm: --arm NAME=COMMAND");
	if (engine_has_store(e)) {
		r = engine_store(e, STORE_READ, &s, err);
		if (r < 0)
			return r;
	}
	r = project_choose(e, s, NULL, &project, err);
	if (r < 0)
		return r;
	x->cwd = strdup(path_is_below(e->dir, project.path) ? e->dir : project.path);
	x->project = TAKE_PTR(project.path);
	if (!x->cwd)
		return err_nomem(err);
	r = arm_on_check(e, x, err);
	if (r < 0)
		return r;
	r = pick_owner(x, err);
	if (r < 0)
		return r;
	r = file_read_inside(e, x, x->profile, err);
	if (r < 0)
		return r;
	r = fix_state(e, &x->from, err);
	if (r < 0)
		return r;
	r = after_check(x, err);
	if (r < 0)
		return r;
	r = inner_check(x, err);
	for (size_t i = 0; i < x->n_arms && r >= 0; i++)
		r = fix_state(e, &x->arms[i].from, err);
	if (r < 0)
		return r;
	r = repeat_arms(x, err);
	if (r < 0)
		return r;
	r = share_limits(x, err);
	if (r < 0)
		return r;
	r = pick_name(e, x, err);
	if (r < 0)
		return r;
	r = inner_complete(x, err);
	return r < 0 ? r : name_clones(e, x, err);
}
