/*
 * experiment.h - several changes tried at once, judged by the same checks, and the best one
 * promoted.
 *
 * Every arm is a command on its own clone; all clones start from one state. An arm passes if its
 * command and all checks end with 0. Checks and scores run on another clone of the arm's result, so
 * they cannot change what would be promoted. Scores are taken when all work is done, one run at a
 * time, in rounds that go through all arms; an arm's score is its median.
 *
 * With `on`, commands of arms run on workers (worker.h), and the state that each left comes back
 * into its clone. Checks and scores still run here.
 *
 * An arm may have an experiment of its own: its arms start from the result of the arm's command,
 * and the result of the best becomes the result of the arm. Limits of the whole hold at all levels
 * together.
 *
 * The state of an experiment is in the store's directory. It is written before each act that must
 * not happen twice, so a killed experiment can be resumed; one process works on it at a time
 * (-EBUSY). Call from a process with one thread.
 */
#pragma once

#include "engine/api/promote.h"
#include "engine/api/remote.h"
#include "engine/api/run.h"

#define ENGINE_ARMS_MAX      1000
#define ENGINE_ARM_NAME_MAX  24
#define ENGINE_ARM_LABEL_MAX 128 /* the same with the values of a matrix (matrix.h) */
#define ENGINE_ROUNDS_MAX    1000
#define ENGINE_ARM_PATHS_MAX 200 /* changed paths that a record names */
#define ENGINE_LEVELS_MAX    3 /* of arms: those of an experiment, those inside of one, and so on */
#define ENGINE_ARM_PATH_SIZE \
	(ENGINE_LEVELS_MAX * \
	 (ENGINE_ARM_LABEL_MAX + 8)) /* "ARM/ARM", with numbers of repetitions */

enum engine_score {
	ENGINE_SCORE_NONE,
	ENGINE_SCORE_COMMAND, /* the last number that it prints */
	ENGINE_SCORE_TIME,    /* milliseconds of a command, which may be the checks */
	ENGINE_SCORE_CPU,
	ENGINE_SCORE_MEM,   /* bytes, at its peak */
	ENGINE_SCORE_LINES, /* that the arm added and removed */
	ENGINE_SCORE_SIZE,  /* bytes of a file */
};
const char *engine_score_name(enum engine_score score); /* "time" */

enum engine_arms_kept {
	ENGINE_KEEP_BEST, /* the winner, or those that tie */
	ENGINE_KEEP_PASSED,
	ENGINE_KEEP_ALL,
	ENGINE_KEEP_NONE,
};

enum engine_promote_arms { ENGINE_PROMOTE_NO_ARM, ENGINE_PROMOTE_BEST, ENGINE_PROMOTE_COMPATIBLE };

enum engine_arm_state {
	ENGINE_ARM_WAITING,
	ENGINE_ARM_RUNNING,
	ENGINE_ARM_CHECKING,
	ENGINE_ARM_PASSED,
	ENGINE_ARM_FAILED,       /* its command did not end with 0 */
	ENGINE_ARM_CHECK_FAILED, /* the last of its checks did not */
	ENGINE_ARM_LIMIT,        /* it met a limit of its own */
	ENGINE_ARM_UNSCORED,     /* the score could not be taken */
	ENGINE_ARM_STOPPED,      /* nobody waits for it any more, or a limit of the whole was met */
	ENGINE_ARM_LOST,         /* what ran it died, more than once */
};
const char *engine_arm_state_name(enum engine_arm_state state); /* "check-failed" */
bool engine_arm_is_over(enum engine_arm_state state);

/* Something about an arm that a person should know before it is promoted. */
struct engine_arm_warning {
	char *kind;   /* owned: "guard", "test-deleted", "test-skipped", "far", "company" */
	char *path;   /* owned; NULL: of the arm as a whole, as "company" is */
	char *detail; /* owned; a sentence */
};

struct engine_round {
	double value;
	/* Of times, what else was at work: other runs of the store, other tasks that were ready to run. */
	uint64_t runs, tasks;
};

struct engine_arm {
	/* What was asked for. */
	char *name;           /* owned, as is all else */
	char *command;        /* NULL: only what is inside of it is tried */
	char *group;          /* the arm that this is a repetition of; NULL: none */
	char *profile, *from; /* NULL: the experiment's */
	char *after;          /* the arm that it goes on from once that has passed; NULL: none */
	char **env;           /* NAME=VALUE */
	size_t n_env;
	/* The experiment inside of it, whose `created` is 0 until the command has ended; n_inner is 0 or 1. */
	struct engine_experiment *inner;
	size_t n_inner;
	/* How far it is. */
	char *clone;
	bool has_clone;
	char *judge; /* the clone that checks and scores run on; NULL: none */
	enum engine_arm_state state;
	uint64_t attempts;
	int64_t cowfsd; /* when the one that has made its last clone began; 0: not known */
	int64_t begun;  /* when the present step began, in nanoseconds since 1970 */
	char now[ENGINE_RUN_ID_SIZE];  /* the run of that step; "": none */
	struct engine_machine machine; /* that runs its command, or ran it, if it is another one */
	/* What came of it. */
	char run[ENGINE_RUN_ID_SIZE];
	int64_t exit_code;
	char limit[16];
	char *why; /* a sentence that says why it did not pass; NULL: it did */
	uint64_t duration_ms, cpu_ms, max_mem;
	char result[ENGINE_ID_SIZE]; /* snapshot of what it left; "": it changed nothing */
	uint64_t added, modified, deleted;
	uint64_t lines_added, lines_removed;
	struct engine_paths changed; /* no more than ENGINE_ARM_PATHS_MAX */
	struct engine_checked *checks;
	size_t n_checks;
	struct engine_round *rounds;
	size_t n_rounds;
	bool warmed; /* the round that does not count was taken */
	bool scored;
	double score; /* the median */
	double
	    spread; /* half of what lies between the quartiles; of less than 5 rounds, of the range */
	struct engine_arm_warning *warnings;
	size_t n_warnings;
	char promotion[ENGINE_ID_SIZE]; /* the receipt; "": it was not promoted */
};

enum engine_experiment_state {
	ENGINE_EXPERIMENT_RUNNING,
	ENGINE_EXPERIMENT_SCORING,
	ENGINE_EXPERIMENT_PROMOTING,
	ENGINE_EXPERIMENT_ENDED,
};
const char *engine_experiment_state_name(enum engine_experiment_state state);

/* A state that arms start from, as workers find it. */
struct engine_sent {
	char *snapshot, *name; /* owned; here, and the name there */
	char manifest[ENGINE_DIGEST_SIZE];
	uint64_t sent, skipped; /* packed bytes; skipped: that were there already */
	bool is_there; /* seen by this process: `remote gc` may have been there before it */
};

/* Where commands of arms run, if not here; checks and scores are always taken here. */
struct engine_fleet {
	char *queue;      /* owned, as is all else; NULL: here */
	char *creds;      /* a file; NULL: none */
	char *remote;     /* that states travel through; NULL: the only one that there is */
	bool insecure;    /* as of engine_on_options */
	bool signed_only; /* an allowed signer must have signed what comes back, */
	char *signers;    /* as this file lists them; NULL: config.yaml's, if it names one */
	char *sign;       /* a key that signs what is sent; NULL: none */
	char **labels;    /* that a worker must have */
	size_t n_labels;
	uint64_t deadline_ms; /* so long after the beginning no command starts there; 0: any time */
	struct engine_sent *sent;
	size_t n_sent;
};

/* The plan and all that came of it. */
struct engine_experiment {
	char *name; /* owned, as is all else; NULL before it begins: two words that are free */
	char *file; /* the name of the file that planned it; NULL: none did */
	char *project, *cwd;
	char *from; /* the state that all arms start from; NULL: the project as it is */
	char base[ENGINE_ID_SIZE];
	int64_t created, ended;
	int64_t saved;  /* when this state was; 0: by a version that did not say */
	uint64_t owner; /* by which its clones are known; never 0 */
	enum engine_experiment_state state;
	bool alive;    /* a process works on it now; not stored */
	int64_t pid;   /* the last that did */
	char *problem; /* a sentence: why that one gave up; NULL: it did not */
	/* The experiment that measures times now; this one does so next.  NULL: it waits for none. */
	char *waits_for;

	struct engine_arm *arms;
	size_t n_arms;
	char **checks;
	size_t n_checks;
	enum engine_score score;
	char *score_of; /* the command, or the file of SIZE; NULL: checks, or the arm itself */
	bool higher;    /* is better */
	uint64_t repeat, rounds, jobs;
	uint64_t stop_after; /* so many have passed; 0: never */
	bool stop_losers;    /* waste no more time on arms that another has beaten */
	struct engine_fleet on;
	struct engine_run_limits limits;
	char *profile, *net;
	char **env, **pass_env, **ro, **within, **allow, **allow_missing;
	size_t n_env, n_pass_env, n_ro, n_within, n_allow, n_allow_missing;
	uint64_t all_time_ms, all_mem, all_disk; /* of the whole; 0: no limit */
	uint64_t spent_ms;                       /* by processes that worked on it before */
	enum engine_arms_kept keep;
	enum engine_promote_arms promote;

	char *winner; /* an arm's name; NULL: none */
	char **tie;   /* arms between which the score does not decide */
	size_t n_tie;
	char *promoting;              /* the arm that is being promoted; NULL: none */
	char receipt[ENGINE_ID_SIZE]; /* the newest of the project before that */
	char **promoted;              /* arms */
	size_t n_promoted;
	/* What kept the last arm that it was to promote out of the project. */
	enum engine_promote_end outcome;
	char *verdict; /* a sentence: who won and why, or why nobody did */
};

void engine_experiment_done(struct engine_experiment *x);

/* The arm of that name, or NULL. */
struct engine_arm *engine_experiment_arm(const struct engine_experiment *x, const char *name);

/* All arms at all levels, each before those inside of it.  The last of `in` has the arm at hand. */
struct engine_arms_walk {
	const struct engine_experiment *in[ENGINE_LEVELS_MAX];
	size_t next[ENGINE_LEVELS_MAX];
	size_t level; /* of the arm at hand; 0: of the experiment itself */
	bool enter;   /* what is inside of it comes next */
};

struct engine_arms_walk engine_arms_walk(const struct engine_experiment *x);
struct engine_arm *engine_arms_next(struct engine_arms_walk *walk); /* NULL: there are no more */
size_t engine_arms_count(const struct engine_experiment *x);

/* The names from the outermost arm to the one at hand: "strip/fast"; returns `text`. */
const char *engine_arms_path(const struct engine_arms_walk *walk, char text[ENGINE_ARM_PATH_SIZE]);

/* How many repetitions of an arm passed, and between which rates the true one lies (Wilson, 95 %). */
struct engine_rate {
	const char *arm;
	uint64_t runs, passed;
	double rate, low, high;
};

/* Of the i-th group of repetitions; false: there are no more. */
bool engine_experiment_rate(const struct engine_experiment *x, size_t i, struct engine_rate *ret);

#define ENGINE_VALUE_MAX 40

/* A score as people read it: "1.5s", "12.0 MiB", "17"; returns `text`. */
const char *engine_experiment_value(const struct engine_experiment *x, double value,
				    char text[ENGINE_VALUE_MAX]);

/* --- doing --------------------------------------------------------------------------------- */

struct engine_experiment_options {
	/* Something changed; `arm` NULL: of the whole, else one at any level of it.  NULL: who cares. */
	void (*tell)(const struct engine_experiment *x, const struct engine_arm *arm, void *ctx);
	uint64_t tick_ms; /* and call it that often while nothing does; 0: never */
	/* Before the process acts on the project: checks of a promotion report to it. */
	void (*checking)(const char *command, const struct engine_run *run, void *ctx);
	void *ctx;
	struct engine_watch watch;
	/* Return when the first arm runs; all else is done by a process of its own, which tells nobody. */
	bool detach;
	/* Of a promotion: only if it would change this, as an earlier answer has it; NULL: any. */
	const char *plan;
	int *ret_signal; /* that ended it, with -EINTR; NULL: who cares */
};

/*
 * Begin the experiment that *x describes, and do all of it.  -EINTR: a signal asked for the end; what runs
 * was cancelled, and the state is one to resume.  *promotion is what came of the last promotion that was tried.
 */
NODISCARD int engine_experiment(struct engine *e, struct engine_experiment *x,
				const struct engine_experiment_options *options,
				struct engine_promotion *promotion, struct err *err);

/* Do what is missing of one that was interrupted.  *x is filled. */
NODISCARD int engine_experiment_resume(struct engine *e, const char *name,
				       const struct engine_experiment_options *options,
				       struct engine_experiment *x,
				       struct engine_promotion *promotion, struct err *err);

/* Promote an arm that passed, as engine_promote() would, with the experiment's checks. */
NODISCARD int engine_experiment_promote(struct engine *e, const char *name, const char *arm,
					const struct engine_experiment_options *options,
					struct engine_experiment *x,
					struct engine_promotion *promotion, struct err *err);

/*
 * End what runs of it, wherever it was started; then it is one to resume.  1: it was over already.
 */
NODISCARD int engine_experiment_cancel(struct engine *e, const char *name,
				       struct engine_experiment *ret, struct err *err);

/* Its clones and its record go.  -EBUSY while a process works on it. */
NODISCARD int engine_experiment_remove(struct engine *e, const char *name, struct err *err);

/* --- looking ------------------------------------------------------------------------------- */

struct engine_experiments {
	struct engine_experiment *list; /* owned; newest first */
	size_t n;
};

void engine_experiments_done(struct engine_experiments *l);

/* -ENOENT with a sentence if there is none. */
NODISCARD int engine_experiment_load(struct engine *e, const char *name,
				     struct engine_experiment *ret, struct err *err);

/* Of the project here, or `all`. */
NODISCARD int engine_experiments(struct engine *e, bool all, struct engine_experiments *ret,
				 struct err *err);

/* How a clone did in the newest experiment of which it is an arm. */
struct engine_standing {
	const char *
	    standing; /* "won", "tie", "lost"; "none": in none that has ended, or it was edited since */
	bool scored;
	double score;
};

/* `state` NULL: the clone as it is now; else that snapshot of it. */
NODISCARD int engine_experiment_standing(struct engine *e, const char *clone, const char *state,
					 struct engine_standing *ret, struct err *err);

/* Until no process works on it, telling meanwhile (NULL: nobody).  1: the time was up before. */
NODISCARD int engine_experiment_wait(struct engine *e, const char *name, uint64_t timeout_ms,
				     const struct engine_experiment_options *options,
				     struct engine_experiment *ret, struct err *err);

/* --- planning ------------------------------------------------------------------------------ */

/* Nothing is planned: no limits are said. */
void engine_experiment_init(struct engine_experiment *x);

/* Add an arm "NAME=COMMAND".  -EINVAL with a sentence. */
NODISCARD int engine_experiment_add(struct engine_experiment *x, const char *text, struct err *err);

/* "time", "time:COMMAND", "cpu", "mem", "lines", "size:FILE", or a command.  -EINVAL. */
NODISCARD int engine_experiment_score(struct engine_experiment *x, const char *text,
				      struct err *err);

/* "NAME=FILE": try what that file plans (below) inside of arm NAME, which is added if there is none.  -EINVAL. */
NODISCARD int engine_experiment_add_inner(struct engine_experiment *x, const char *text,
					  struct err *err);

enum engine_arm_option { ENGINE_ARM_ENV, ENGINE_ARM_PROFILE, ENGINE_ARM_BASE, ENGINE_ARM_AFTER };

/* One for an arm that is there already: "ARM:NAME=VALUE", "ARM:PROFILE", "ARM:STATE", "ARM:ARM".  -EINVAL. */
NODISCARD int engine_experiment_set(struct engine_experiment *x, enum engine_arm_option option,
				    const char *text, struct err *err);

/*
 * Fill *x, which is initialized, from the file of that name: .snap/experiments/NAME.yaml in the project, else
 * experiments/NAME.yaml in the user's configuration.  A file in a project may come from the very program
 * that arms are to confine.  So it may only narrow what the profile of each arm allows, and promotes nothing:
 * -ECANCELED with the place if it asks for more.  `profile` (NULL: none) replaces the one that it names.
 * -ENOENT if there is no such file, -EINVAL with "FILE:LINE:COLUMN: ..." for one that cannot be read.
 */
NODISCARD int engine_experiment_read(struct engine *e, const char *name, const char *profile,
				     struct engine_experiment *x, struct err *err);
