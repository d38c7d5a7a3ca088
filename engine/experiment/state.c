/*
 * The state of an experiment, kept in a docket (docket-i.h).
 */
#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "base/sys.h"
#include "base/vec.h"
#include "engine/experiment/experiment-i.h"
#include "engine/find/run-record-i.h"
#include "engine/wire/wire-i.h"

/* --- as JSON ------------------------------------------------------------------------------- */

#define W(kind, member) FIELD(FIELD_##kind, struct engine_arm_warning, member)
static const struct field warning_list[] = { W(TEXT, kind), W(NAME_OR_NULL, path),
					     W(TEXT, detail) };
static const struct fields warning_fields = FIELDS(struct engine_arm_warning, warning_list);
#undef W

#define R(kind, member) FIELD(FIELD_##kind, struct engine_round, member)
static const struct field round_list[] = { R(DOUBLE, value), R(UINT, runs), R(UINT, tasks) };
static const struct fields round_fields = FIELDS(struct engine_round, round_list);
#undef R

#define S(kind, member) FIELD(FIELD_##kind, struct engine_sent, member)
static const struct field sent_list[] = { S(NAME, snapshot), S(NAME, name), S(ID, manifest),
					  S(UINT, sent), S(UINT, skipped) };
static const struct fields sent_fields = FIELDS(struct engine_sent, sent_list);
#undef S

#define F(kind, member) FIELD(FIELD_##kind, struct engine_fleet, member)
static const struct field fleet_list[] = {
	F(NAME_OR_NULL, queue),
	F(NAME_OR_NULL, creds),
	F(NAME_OR_NULL, remote),
	F(BOOL, insecure),
	F(BOOL, signed_only),
	F(NAME_OR_NULL, signers),
	F(NAME_OR_NULL, sign),
	FIELD_LIST_OF(FIELD_NAMES, struct engine_fleet, "labels", labels, n_labels, NULL),
	F(UINT | FIELD_LATER, deadline_ms),
	FIELD_LIST_OF(FIELD_LIST, struct engine_fleet, "sent", sent, n_sent, &sent_fields),
};
static const struct fields fleet_fields = FIELDS(struct engine_fleet, fleet_list);
#undef F

static const struct fields experiment_fields;

#define A(kind, member) FIELD(FIELD_##kind, struct engine_arm, member)
#define A_LIST(member, count, of) \
	FIELD_LIST_OF(FIELD_LIST, struct engine_arm, #member, member, count, of)
static const struct field arm_list[] = {
	A(NAME, name),
	A(NAME_OR_NULL, command),
	A(NAME_OR_NULL, group),
	A(NAME_OR_NULL, profile),
	A(NAME_OR_NULL, from),
	A(NAME_OR_NULL, after),
	FIELD_LIST_OF(FIELD_NAMES, struct engine_arm, "env", env, n_env, NULL),
	A_LIST(inner, n_inner, &experiment_fields),
	A(NAME_OR_NULL, clone),
	A(BOOL, has_clone),
	A(NAME_OR_NULL, judge),
	A(UINT, state),
	A(UINT, attempts),
	A(INT, cowfsd),
	A(INT, begun),
	A(ID, now),
	FIELD_OF(struct engine_arm, "machine", machine, &run_machine_fields),
	A(ID, run),
	A(INT, exit_code),
	A(ID, limit),
	A(TEXT_OR_NULL, why),
	A(UINT, duration_ms),
	A(UINT, cpu_ms),
	A(UINT, max_mem),
	A(ID, result),
	A(UINT, added),
	A(UINT, modified),
	A(UINT, deleted),
	A(UINT, lines_added),
	A(UINT, lines_removed),
	FIELD_BY(struct engine_arm, "changed", changed, &wire_paths),
	A_LIST(checks, n_checks, &docket_checked),
	A_LIST(rounds, n_rounds, &round_fields),
	A(BOOL, warmed),
	A(BOOL, scored),
	A(DOUBLE, score),
	A(DOUBLE, spread),
	A_LIST(warnings, n_warnings, &warning_fields),
	A(ID, promotion),
};
static const struct fields arm_fields = FIELDS(struct engine_arm, arm_list);
#undef A
#undef A_LIST

#define X(kind, member) FIELD(FIELD_##kind, struct engine_experiment, member)
#define X_NAMES(member) \
	FIELD_LIST_OF(FIELD_NAMES, struct engine_experiment, #member, member, n_##member, NULL)
static const struct field experiment_list[] = {
	X(NAME, name),
	X(NAME_OR_NULL, file),
	X(NAME, project),
	X(NAME, cwd),
	X(NAME_OR_NULL, from),
	X(ID, base),
	X(INT, created),
	X(INT, ended),
	X(INT, saved),
	X(UINT, owner),
	X(UINT, state),
	FIELD_LIST_OF(FIELD_LIST, struct engine_experiment, "arms", arms, n_arms, &arm_fields),
	X_NAMES(checks),
	X(UINT, score),
	X(NAME_OR_NULL, score_of),
	X(BOOL, higher),
	X(UINT, repeat),
	X(UINT, rounds),
	X(UINT, jobs),
	X(UINT, stop_after),
	X(BOOL, stop_losers),
	FIELD_OF(struct engine_experiment, "on", on, &fleet_fields),
	FIELD_OF(struct engine_experiment, "limits", limits, &run_limits_fields),
	X(NAME_OR_NULL, profile),
	X(NAME_OR_NULL, net),
	X_NAMES(env),
	X_NAMES(pass_env),
	X_NAMES(ro),
	X_NAMES(within),
	X_NAMES(allow),
	X_NAMES(allow_missing),
	X(UINT, all_time_ms),
	X(UINT, all_mem),
	X(UINT, all_disk),
	X(UINT, spent_ms),
	X(UINT, keep),
	X(UINT, promote),
	X(NAME_OR_NULL, winner),
	X_NAMES(tie),
	X(NAME_OR_NULL, promoting),
	X(ID, receipt),
	X_NAMES(promoted),
	X(UINT, outcome),
	X(INT, pid),
	X(TEXT_OR_NULL, problem),
	X(NAME_OR_NULL, waits_for),
	X(TEXT_OR_NULL, verdict),
};
static const struct fields experiment_fields = FIELDS(struct engine_experiment, experiment_list);
#undef X
#undef X_NAMES

DEFINE_FIELDS_DONE(engine_experiment_done, struct engine_experiment, experiment_fields)

DEFINE_LIST_DONE(engine_experiments_done, struct engine_experiments, engine_experiment_done)

/* --- places -------------------------------------------------------------------------------- */

/* Until version 3 nobody looked what else was at work. */
static void upgrade_rounds(struct json arm)
{
	const struct json rounds = json_get_array(arm, "rounds");

	for (size_t i = 0; i < json_length(rounds); i++) {
		const struct json one = json_at_object(rounds, i);

		json_set_uint(one, "runs", 0);
		json_set_uint(one, "tasks", 0);
	}
}

/* Until version 4 nobody asked for signatures. */
static void upgrade_fleet(struct json on)
{
	json_set_bool(on, "signed_only", false);
	json_set_null(on, "signers");
	json_set_null(on, "sign");
}

/*
 * Version 1 knew no other machines, until version 2 no arm had others inside, and until version 5 nobody knew when it
 * was saved.  Depth: ENGINE_LEVELS_MAX.
 */
static void upgrade_level(struct json j, uint64_t version, size_t level)
{
	static const struct engine_machine here;
	static const struct engine_fleet none;
	const struct json arms = json_get_array(j, "arms");

	json_set_int(j, "saved", 0);
	if (version < 4)
		json_set_null(j, "waits_for");
	if (version < 2)
		fields_set(json_set_object(j, "on"), &fleet_fields, &none);
	if (version < 5)
		upgrade_fleet(json_get_object(j, "on"));
	for (size_t i = 0; i < json_length(arms); i++) {
		const struct json arm = json_at_object(arms, i);
		struct json inner;

		if (version < 2)
			fields_set(json_set_object(arm, "machine"), &run_machine_fields, &here);
		inner = version < 3 ? json_set_array(arm, "inner") : json_get_array(arm, "inner");
		if (version < 4)
			upgrade_rounds(arm);
		for (size_t k = 0; level + 1 < ENGINE_LEVELS_MAX && k < json_length(inner); k++)
			upgrade_level(json_at_object(inner, k), version, level + 1);
	}
}

static void upgrade(struct json j)
{
	upgrade_level(j, json_get_uint(j, "version"), 0);
}

static const struct docket_kind kind = {
	.dir = EXPERIMENTS_DIR,
	.noun = "experiment",
	.version = 6,
	.fields = &experiment_fields,
	.upgrade = upgrade,
};

/* Other names cannot be: they come from a person, and lead to clones of these names. */
static int check_name(const char *name, struct err *err)
{
	if (clone_check_name(name, NULL) >= 0)
		return 0;
	return err_set(err, -ENOENT, "there is no experiment '%.100s'", name);
}

char *experiment_path(struct engine *e, const char *name)
{
	return docket_path(e, &kind, name);
}

int experiment_take(struct engine *e, const char *name, struct docket_lock *ret, struct err *err)
{
	int r = check_name(name, err);

	return r < 0 ? r : docket_take(e, &kind, name, ret, err);
}

int experiment_create(struct engine *e, const char *name, struct docket_lock *ret, struct err *err)
{
	int r = check_name(name, err);

	return r < 0 ? r : docket_create(e, &kind, name, ret, err);
}

int experiment_forget(struct engine *e, const char *name, struct docket_lock *l, struct err *err)
{
	return docket_forget(e, &kind, name, l, err);
}

/* --- reading and writing ------------------------------------------------------------------- */

int experiment_save(const struct docket_lock *l, const struct engine_experiment *x, struct err *err)
{
	return docket_save(l, &kind, x->name, x, err);
}

static bool has_sane_enums(const struct engine_experiment *x, size_t level)
{
	bool ok = x->state <= ENGINE_EXPERIMENT_ENDED && x->score <= ENGINE_SCORE_SIZE &&
		  x->keep <= ENGINE_KEEP_NONE && x->promote <= ENGINE_PROMOTE_COMPATIBLE &&
		  x->outcome <= ENGINE_MOVED && x->owner != 0 && level < ENGINE_LEVELS_MAX;

	for (size_t i = 0; i < x->n_arms && ok; i++) {
		const struct engine_arm *arm = &x->arms[i];

		ok = arm->state <= ENGINE_ARM_LOST && arm->clone && arm->n_inner <= 1 &&
		     (arm->command || arm->n_inner > 0) &&
		     (arm->n_inner == 0 || has_sane_enums(arm->inner, level + 1));
	}
	return ok;
}

static int load(struct engine *e, const char *name, const struct docket_lock *l,
		struct engine_experiment *ret, struct err *err)
{
	CLEANUP(engine_experiment_done) struct engine_experiment x = { 0 };
	bool alive;
	int r = check_name(name, err);

	if (r < 0)
		return r;
	r = docket_read(e, &kind, name, l, &x, &alive, err);
	if (r < 0)
		return r;
	if (!has_sane_enums(&x, 0))
		return err_set(err, -EBADMSG, "the state of experiment '%s' is damaged", name);
	*ret = x;
	ret->alive = alive;
	x = (struct engine_experiment){ 0 };
	return 0;
}

int experiment_read_taken(struct engine *e, const struct docket_lock *l, const char *name,
			  struct engine_experiment *ret, struct err *err)
{
	return load(e, name, l, ret, err);
}

int engine_experiment_load(struct engine *e, const char *name, struct engine_experiment *ret,
			   struct err *err)
{
	return load(e, name, NULL, ret, err);
}

int experiment_signal(struct engine *e, const struct engine_experiment *x, int sig, struct err *err)
{
	AUTO_CLOSE int fd = -1;
	int r = docket_open(e, &kind, x->name, &fd, err);

	if (r < 0)
		return r;
	r = sys_signal_holder((pid_t)x->pid, fd, sig);
	if (r == -ESRCH)
		return err_set(err, r,
			       "process %d, which works on it, is not to be found here: was "
			       "experiment '%s' started in a container?",
			       (int)x->pid, x->name);
	return r < 0 ? err_set(err, r, "experiment '%s' cannot be ended", x->name) : 0;
}

/* --- listing ------------------------------------------------------------------------------- */

static int by_age(const void *a, const void *b)
{
	const struct engine_experiment *x = a, *y = b;

	return (x->created < y->created) - (x->created > y->created);
}

struct listing {
	struct engine *engine;
	const char *project; /* NULL: of all */
	struct engine_experiments *into;
};

static int list_one(const char *name, void *ctx, struct err *err)
{
	struct listing *of = ctx;
	struct engine_experiments *l = of->into;
	struct engine_experiment *x;
	struct err why = { 0 };
	int r;

	if (!VEC_ONE_MORE(l->list, l->n))
		return err_nomem(err);
	x = &l->list[l->n];
	*x = (struct engine_experiment){ 0 };
	r = engine_experiment_load(of->engine, name, x, &why);
	if (r == -ENOMEM)
		return err_nomem(err);
	if (r < 0 && r != -ENOENT)
		log_warn("%s, continuing", why.msg);
	if (r < 0)
		return 0;
	if (of->project && strcmp(of->project, x->project) != 0)
		engine_experiment_done(x);
	else
		l->n++;
	return 0;
}

int engine_experiments(struct engine *e, bool all, struct engine_experiments *ret, struct err *err)
{
	CLEANUP(engine_experiments_done) struct engine_experiments l = { 0 };
	CLEANUP(project_done) struct project project = { 0 };
	struct listing of = { .engine = e, .into = &l };
	struct store *s;
	int r = 0;

	if (!all)
		r = engine_project(e, &s, &project, err);
	/* Without a store there are no experiments. */
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	of.project = project.path;
	r = docket_each(e, &kind, list_one, &of, err);
	if (r < 0)
		return r;
	VEC_SORT(l.list, l.n, by_age);
	*ret = TAKE_STRUCT(l);
	return 0;
}
