/*
 * experiment-i.h - shared by the files of engine/experiment/: the state of an experiment on disk,
 * and the steps of one in progress.
 */
#pragma once

#include "engine/api/experiment.h"
#include "engine/find/engine-i.h"
#include "engine/verb/docket-i.h"

/* --- state.c ------------------------------------------------------------------------------- */

#define EXPERIMENTS_DIR "experiments" /* in the store's directory: NAME/state.json of each */

/* Where it is, or (NULL) all of them; owned. */
char *experiment_path(struct engine *e, const char *name);

/* Make the directory for a new one.  -EEXIST if there is one of that name. */
NODISCARD int experiment_create(struct engine *e, const char *name, struct docket_lock *ret,
				struct err *err);

/* Take one that is there.  -ENOENT, or -EBUSY if another process works on it. */
NODISCARD int experiment_take(struct engine *e, const char *name, struct docket_lock *ret,
			      struct err *err);

/* Write the state; it survives power loss once this returns 0. */
NODISCARD int experiment_save(const struct docket_lock *l, const struct engine_experiment *x,
			      struct err *err);

/* Send a signal to the process that works on it.  -ESRCH: none does. */
NODISCARD int experiment_signal(struct engine *e, const struct engine_experiment *x, int sig,
				struct err *err);

/* Of one that was taken, whatever has its name by now. */
NODISCARD int experiment_read_taken(struct engine *e, const struct docket_lock *l, const char *name,
				    struct engine_experiment *ret, struct err *err);

/* Remove the state with its directory. */
NODISCARD int experiment_forget(struct engine *e, const char *name, struct docket_lock *l,
				struct err *err);

/* --- experiment.c -------------------------------------------------------------------------- */

/* Can name[0..len) be the name of one more arm?  -EINVAL with a sentence. */
NODISCARD int experiment_check_name(const struct engine_experiment *x, const char *name, size_t len,
				    struct err *err);

/* An arm of that name, which has no command yet. */
NODISCARD int experiment_add_arm(struct engine_experiment *x, const char *name, size_t len,
				 struct engine_arm **ret, struct err *err);

/* Give an arm an experiment with nothing in it. */
NODISCARD int inner_add(struct engine_arm *arm, struct err *err);

/* --- arm-plan.c ---------------------------------------------------------------------------- */

/* Give a new arm what was planned for another one, but for the name. */
NODISCARD int arm_copy_plan(struct engine_arm *arm, const struct engine_arm *of, struct err *err);

/* NAME=VALUE; a later one of the same name counts. */
NODISCARD int arm_add_env(struct engine_arm *arm, const char *assignment, struct err *err);

/* --- plan.c ------------------------------------------------------------------------------- */

/* Complete what the caller asked for.  -EINVAL, -EEXIST or -ENOENT with a sentence. */
NODISCARD int plan_complete(struct engine *e, struct engine_experiment *x, struct err *err);

/* --- work-state.c -------------------------------------------------------------------------- */

/* An experiment that this process works on, or one inside of an arm of it, which shares the state and the time. */
struct work {
	struct engine *engine;
	struct engine_experiment *x;
	const struct engine_experiment_options *options;
	struct work *whole;              /* NULL: this is it, and only then what follows counts */
	char path[ENGINE_ARM_PATH_SIZE]; /* else of the arm around it */
	struct docket_lock lock;
	struct engine_promotion *promotion;
	int stop_fd;      /* can be read when a signal asked for the end */
	uint64_t started; /* engine_clock_ms() */
	bool is_new;      /* and no arm of it has begun yet */
	struct err stuck; /* why a clone of it could not be removed, the first one; code 0: none */
	/* Once, when the first arm runs; NULL: nobody waits for that.  < 0 ends the work. */
	int (*began)(struct work *w, struct err *err);
};

/* The whole that it is a part of, or itself. */
struct work *work_whole(struct work *w);

/* Save the state of the whole and tell the caller what changed. */
NODISCARD int work_save(struct work *w, const struct engine_arm *arm, struct err *err);
void work_tell(struct work *w, const struct engine_arm *arm);

/* Write down that it happened; `arm` NULL: to all of them. */
void work_log_event(struct work *w, const char *kind, const struct engine_arm *arm);

/* Its runs went on after the death of the process that worked on it: that counts for the whole. */
void work_count_unwatched(struct work *w);

/* The work on what is inside of that arm. */
struct work inner_work(struct work *w, struct engine_arm *arm);

/* Milliseconds that are left for the whole; ENGINE_UNSAID: any number. */
uint64_t work_left(struct work *w);

/* End the runs of all arms at once; each arm then finds its own ended. */
void work_cancel_runs(struct work *w);

/* --- work.c -------------------------------------------------------------------------------- */

/* Of one on which nobody works: what its arms still run ends, and they begin again when it is resumed. */
NODISCARD int work_interrupt(struct engine *e, const char *name, struct err *err);

/* Bring the arms of an interrupted one back to states from which they go on. */
NODISCARD int work_recover_arms(struct work *w, struct err *err);

/* --- schedule.c ---------------------------------------------------------------------------- */

/* Does something run of it? */
bool schedule_is_active(const struct engine_arm *arm);

/* Until all arms are over. */
NODISCARD int schedule_arms(struct work *w, struct err *err);

/* Stop all that are not over. */
NODISCARD int schedule_stop(struct work *w, const char *why, struct err *err);

/* --- inner.c ------------------------------------------------------------------------------- */

/* What its command left is known, and the experiment inside of it is not decided. */
bool inner_is_under_way(const struct engine_arm *arm);

/* The command of the arm has ended well, or there is none. */
NODISCARD int inner_begin(struct work *w, struct engine_arm *arm, struct err *err);

/*
 * All arms inside are over: decide, and let the arm go on with what the best one left.  Scores that are measured are
 * taken only if nothing else runs (`idle`); else nothing is done.
 */
NODISCARD int inner_settle(struct work *w, struct engine_arm *arm, bool idle, struct err *err);

/* Of one that is under way in an interrupted experiment.  1: its clone is gone, and it must begin again. */
NODISCARD int inner_recover(struct work *w, struct engine_arm *arm, struct err *err);

/* Nothing inside has begun; clones are not touched. */
void inner_forget(struct engine_arm *arm);

/* Cancel what runs inside; those that are not over are stopped. */
void inner_interrupt(struct work *w, struct engine_arm *arm);
NODISCARD int inner_stop(struct work *w, struct engine_arm *arm, const char *why, struct err *err);

/* --- inner-plan.c -------------------------------------------------------------------------- */

/* Can it be tried as planned?  -EINVAL with a sentence. */
NODISCARD int inner_check(const struct engine_experiment *x, struct err *err);

/* What is inside of arms gets limits, profile and all else from the whole, which is complete. */
NODISCARD int inner_complete(struct engine_experiment *x, struct err *err);

/* Are there too many?  Asked whenever some were added, so that a small plan cannot become a huge one. */
NODISCARD int inner_check_count(const struct engine_experiment *x, struct err *err);

/* --- detach.c ------------------------------------------------------------------------------ */

typedef int (*work_fn)(struct work *w, struct err *err);

/* Do the rest in a process of its own; 0 when the first arm runs there.  The lock goes with it. */
NODISCARD int work_detach(struct work *w, work_fn rest, struct err *err);

/* --- arm.c --------------------------------------------------------------------------------- */

NODISCARD int arm_begin(struct work *w, struct engine_arm *arm, struct err *err);

/* Of one whose checks are to run, and do not. */
NODISCARD int arm_begin_checks(struct work *w, struct engine_arm *arm, struct err *err);

/* The run of its present step has ended. */
NODISCARD int arm_advance(struct work *w, struct engine_arm *arm, const struct engine_run *run,
			  struct err *err);

/* Begin again after something of ours died; not for ever. */
NODISCARD int arm_try_again(struct work *w, struct engine_arm *arm, const char *why,
			    struct err *err);

/* Keep what is in its clone as what it left, so that it survives whatever happens next. */
NODISCARD int arm_keep(struct work *w, struct engine_arm *arm, struct err *err);

/* It is over, in that state, for the reason that it names. */
NODISCARD int arm_fail(struct work *w, struct engine_arm *arm, enum engine_arm_state state,
		       struct err *err);

/* Bring an arm of an interrupted experiment back to a state from which it goes on. */
NODISCARD int arm_recover(struct work *w, struct engine_arm *arm, struct err *err);

/*
 * The clone that checks and scores run on is gone or may lack something: it is made again, and has its checks first.
 * The arm no longer passes until they did.
 */
NODISCARD int arm_check_again(struct work *w, struct engine_arm *arm, struct err *err);

/* May what a run left, or said, be owed to a death of ours? */
bool arm_is_doubtful(struct work *w, const struct engine_arm *arm, const struct engine_run *run);

/* It is over, by our decision. */
NODISCARD int arm_stop(struct work *w, struct engine_arm *arm, const char *why, struct err *err);

/* Cancel what runs of it, so that it can begin again. */
void arm_interrupt(struct work *w, struct engine_arm *arm);

/*
 * Start a command on a clone (NULL: a new one of `from`) with the limits of the experiment.  Its run gets the id in
 * `arm->now`, if there is one, and else puts its own there.
 */
NODISCARD int arm_start_run(struct work *w, struct engine_arm *arm, const char *clone,
			    const char *from, const char *command, struct err *err);

/* --- after.c ------------------------------------------------------------------------------- */

/* Can the arms go on from each other as planned?  -EINVAL with a sentence. */
NODISCARD int after_check(const struct engine_experiment *x, struct err *err);

/* Has the one that it goes on from not passed yet? */
bool after_waits(const struct engine_experiment *x, const struct engine_arm *arm);

/* Is that one over, and did not pass? */
bool after_failed(const struct engine_experiment *x, const struct engine_arm *arm);

/* Let it start from what the other one left. */
NODISCARD int after_start(struct work *w, struct engine_arm *arm, struct err *err);

/* The first of those that it goes on from; or itself. */
const struct engine_arm *after_first(const struct engine_experiment *x,
				     const struct engine_arm *arm);

/* --- arm-clone.c --------------------------------------------------------------------------- */

#define JUDGE_SUFFIX ".check"

/* Its clone; -EEXIST if somebody has one of that name, which stays theirs. */
NODISCARD int arm_make_clone(struct work *w, struct engine_arm *arm, char ret_base[ENGINE_ID_SIZE],
			     struct err *err);

/* Likewise of another state, in place of the clone that it has. */
NODISCARD int arm_remake_clone(struct work *w, struct engine_arm *arm, const char *from,
			       struct err *err);

/* The clone that checks and scores run on; likewise. */
NODISCARD int arm_make_judge(struct work *w, struct engine_arm *arm, struct err *err);

/* Remove its clones, and those inside of it; `judge`: only that of checks and scores. */
void arm_release(struct work *w, struct engine_arm *arm, bool judge);

/* Only those inside. */
void inner_release(struct work *w, struct engine_arm *arm);

/* Does that mean that cowfsd died? */
bool arm_is_death(int r);

/* From here on, this cowfsd has what is written for it. */
void arm_note_daemon(struct work *w, struct engine_arm *arm);

/* Has cowfsd died since? */
bool arm_lost_daemon(struct work *w, const struct engine_arm *arm);

/* The state that the arm started from. */
const char *arm_start(const struct work *w, const struct engine_arm *arm);

/* The state that it left, which checks and scores see. */
const char *arm_left(const struct work *w, const struct engine_arm *arm);

/* --- arm-on.c ------------------------------------------------------------------------------ */

/* Does its command, which is the step at hand, run on another machine? */
bool arm_is_elsewhere(const struct work *w, const struct engine_arm *arm);

/* Check what the plan says of workers, and complete it. */
NODISCARD int arm_on_check(struct engine *e, struct engine_experiment *x, struct err *err);

/* Send what its clone starts from.  1: that is to be saved before a worker hears of it; 0: it was sent before. */
NODISCARD int arm_on_send(struct work *w, const struct engine_arm *arm, struct err *err);

/* Let a worker run its command. */
NODISCARD int arm_on_start(struct work *w, struct engine_arm *arm,
			   const struct engine_run_options *options, struct engine_run *ret,
			   struct err *err);

/* Which machine it is on. */
NODISCARD int arm_on_take(struct engine_arm *arm, const struct engine_run *run, struct err *err);

/* --- look.c -------------------------------------------------------------------------------- */

/* Count the lines that it changed, name the paths, and note what a person should know. */
NODISCARD int arm_look(struct work *w, struct engine_arm *arm, struct err *err);

/* The same of one that did not pass and left no snapshot, as long as its clone is there. */
void arm_look_at_failed(struct work *w, struct engine_arm *arm);

/* Note something that a person should know; `path` NULL: of the arm as a whole.  Beyond a number, no more are kept. */
NODISCARD int arm_warn(struct engine_arm *arm, const char *kind, const char *path,
		       const char *detail, struct err *err);
void arm_forget_warning(struct engine_arm *arm, const char *kind);

/* --- score-kind.c -------------------------------------------------------------------------- */

/* Do checks or scores need the judge of an arm that passed? */
bool score_needs_judge(const struct engine_experiment *x);

/* Is something run to know the score? */
bool score_is_run(const struct engine_experiment *x);

/* How often each score is taken if nobody says. */
uint64_t score_rounds(const struct engine_experiment *x);

/* Is it a time? */
bool score_is_timed(const struct engine_experiment *x);

/* Is it taken on the result?  Else what is measured is the arm's own command, on a new clone each time. */
bool score_is_on_result(const struct engine_experiment *x);

/* --- score.c ------------------------------------------------------------------------------- */

/* Take all rounds of all arms that passed.  1: something died meanwhile, and what is missing can be done again. */
NODISCARD int score_take(struct work *w, struct err *err);

/* The last line of the text, which is taken apart, that begins with a number; false: none does. */
bool score_last_number(char *text, double *ret);

/* From its rounds: the median, and half of what lies between the quartiles; of less than 5, of the whole range. */
NODISCARD int score_sum_up(struct engine_arm *arm, struct err *err);

/* --- losers.c ------------------------------------------------------------------------------ */

/* An arm that passed, and against which this one cannot win any more; NULL: none, or nobody asked. */
const struct engine_arm *losers_beaten_by(const struct engine_experiment *x,
					  const struct engine_arm *arm);

/* End the checks of arms that are beaten. */
NODISCARD int losers_stop(struct work *w, struct err *err);

/* --- verdict.c ----------------------------------------------------------------------------- */

/* Find the winner or the tie, and say why. */
NODISCARD int verdict_find(struct engine_experiment *x, struct err *err);
void verdict_forget(struct engine_experiment *x);

/* --- choose.c ------------------------------------------------------------------------------ */

/* Promote what the experiment says, at most once. */
NODISCARD int choose_arms(struct work *w, struct err *err);
NODISCARD int choose_arm(struct work *w, struct engine_arm *arm, struct err *err);

/* Did the one that was being promoted reach the project? Settle it. */
NODISCARD int choose_recover(struct work *w, struct err *err);
