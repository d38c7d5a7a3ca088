/*
 * watch-i.h - shared by the files of engine/watch/.
 */
#pragma once

#include "base/text.h"
#include "engine/api/receipts.h"
#include "engine/api/watch.h"
#include "engine/verb/docket-i.h"

#define WATCH_FILE    "watch.yaml"
#define WATCH_PATHS   2000 /* that a firing names */
#define WATCH_LOG_MAX ((off_t)1 << 20)
#define NS_PER_S      INT64_C(1000000000)
#define NS_PER_MS     INT64_C(1000000)

/* --- rule-read.c --------------------------------------------------------------------------- */

/* The print of the files that rules are read from, as these are now; without rules: of the user's alone. */
uint64_t rules_print(struct engine *e, const struct engine_rules_of_watch *w);

/* The rule of that name, or NULL. */
const struct engine_rule *rules_find(const struct engine_rules_of_watch *w, const char *name);

/* Nothing of that project fires: its file cannot be understood, or cannot be read in time. */
NODISCARD int rules_turn_off(struct engine_rules_of_watch *w, const char *project,
			     const struct err *problem, struct err *err);

/* --- reach.c ------------------------------------------------------------------------------- */

/* Those whose project, or log, hangs: each is silent and off, and says so. */
NODISCARD int rules_turn_off_silent(struct engine_rules_of_watch *w, struct err *err);

/* rules_print(), and a look at all that is not silent; false: something hangs. */
bool rules_look(struct engine *e, const struct engine_rules_of_watch *w, uint64_t *ret_print);

/* Is one that was silent silent no more? */
bool rules_speak_again(const struct engine_rules_of_watch *w);

/* --- reach-linux.c ------------------------------------------------------------------------- */

/* What `look` returns, by a process of its own; false if that takes more than two seconds. */
bool reach_ask(uint64_t (*look)(void *ctx), void *ctx, uint64_t *ret);

/* --- firing.c ------------------------------------------------------------------------------ */

extern const struct docket_kind firing_kind; /* struct engine_firing */

/* "watch:RULE" */
char *firing_asker(const char *rule);

/* Why one is made. */
struct firing_cause {
	enum engine_trigger trigger;
	const char *key;             /* names it: a rule fires once for a key */
	const char *detail, *from;   /* or NULL */
	const struct strlist *paths; /* likewise */
	uint64_t more_paths;         /* beside those */
};

/*
 * Write one down; 1 if there is one of the same rule and key.  While one of the rule is queued, the cause becomes
 * part of that.  *ret_id: of the firing.
 */
NODISCARD int firing_make(struct engine *e, const struct engine_rule *rule,
			  const struct firing_cause *cause, char ret_id[ENGINE_ID_SIZE],
			  struct err *err);

NODISCARD int firing_load(struct engine *e, const char *id, const struct docket_lock *l,
			  struct engine_firing *ret, struct err *err);
NODISCARD int firing_save(struct engine *e, const struct docket_lock *l,
			  const struct engine_firing *f, const char *event, struct err *err);

/* Times of it that are yet to come are now, for good: the clock was ahead when they were written. */
NODISCARD int firing_set_clock(struct engine *e, struct engine_firing *f, int64_t now,
			       struct err *err);

/* Remove those that ended two weeks ago. */
NODISCARD int firing_prune(struct engine *e, const struct engine_firings *all, struct err *err);

/* --- control.c ----------------------------------------------------------------------------- */

/* How far the trigger of a rule was looked at. */
struct watch_cursor {
	char *rule;                 /* owned, as are the others */
	char *about;                /* what it belongs to: another trigger begins anew */
	char epoch[ENGINE_ID_SIZE]; /* random: no other cursor names its firings as this one does */
	int64_t since; /* of a schedule: the last time that was looked at; else a count */
	char seen[ENGINE_ID_SIZE];    /* of files: the snapshot, */
	char receipt[ENGINE_ID_SIZE]; /* and the newest receipt then */
	bool failing;                 /* a probe, or a limit */
	int64_t checked;              /* when that was looked at last; 0: never */
	char *value;                  /* of a ref */
	uint64_t inode, offset;       /* of a log */
	bool known;                   /* it was looked at before */
	bool partial;                 /* of files: some directory cannot be watched */
	char *problem;                /* why the last look at the trigger failed, or NULL */
	/* Processor time of its probes since then, within a day. */
	uint64_t probed_ms;
	int64_t probed_since;
};

/* Processor time of a run whose action may die before it says so. */
struct watch_meter {
	char run[ENGINE_RUN_ID_SIZE];
	uint64_t cpu_ms;
};

/* What the process that follows the rules keeps. */
struct watch_state {
	int64_t pid, started;
	char *problem;                /* owned, or NULL */
	struct watch_cursor *cursors; /* owned */
	size_t n_cursors;
	struct watch_meter *meters; /* owned; of runs that are not over, or whose action died */
	size_t n_meters;
	bool moved; /* it is to be saved, if a cursor is new before that is used; not stored */
};

struct watch_pause {
	char *rule; /* owned */
	bool paused;
	int64_t reset; /* failures before that do not count */
};

/* What people say to it. */
struct watch_control {
	bool paused;
	int64_t reset;
	struct watch_pause *rules; /* owned */
	size_t n_rules;
};

extern const struct docket_kind watch_kind, control_kind;

#define WATCH_NAME   "daemon"
#define CONTROL_NAME "control"

void watch_state_done(struct watch_state *s);
void watch_control_done(struct watch_control *c);

/* What was not written yet is empty. */
NODISCARD int watch_state_load(struct engine *e, const struct docket_lock *l,
			       struct watch_state *ret, bool *ret_alive, struct err *err);
NODISCARD int watch_control_load(struct engine *e, struct watch_control *ret, struct err *err);
const struct watch_pause *watch_control_of(const struct watch_control *c, const char *rule);

/* Failures of the rule before that do not count. */
int64_t watch_control_reset(const struct watch_control *c, const char *rule, int64_t now);

/* The cursor of a rule; NULL: no memory.  A time of it that is yet to come is now: somebody set the clock. */
struct watch_cursor *watch_cursor(struct watch_state *s, const struct engine_rule *rule,
				  int64_t now);

/* --- budget.c ------------------------------------------------------------------------------ */

struct budget_use {
	uint64_t runs_hour, cpu_day_ms, failures;
	uint64_t same;                  /* of those failures: like the last one */
	int64_t oldest_run, oldest_cpu; /* of what counts; 0: none */
	int64_t failed;                 /* when the last one ended */
	int64_t last;                   /* when one began; 0: never */
};

void budget_count(const struct engine_firings *all, const struct engine_rule *rule, int64_t reset,
		  int64_t now, struct budget_use *ret);

/*
 * May an action of the rule begin?  True: yes.  Else `why` says what keeps it, and *until when that may be over; 0:
 * nobody knows.
 */
bool budget_allows(const struct engine_rules_of_watch *rules, const struct engine_rule *rule,
		   const struct engine_firings *all, const struct watch_control *control,
		   int64_t now, char why[200], int64_t *until);

/* The same of one that was begun, whose process died: what it may spend was asked then. */
/* Of a probe: those of the rule's limits that are about time. */
bool budget_allows_probe(const struct engine_rule *rule, const struct engine_firings *all,
			 const struct watch_control *control, int64_t now, char why[200],
			 int64_t *until);

bool budget_allows_again(const struct engine_rules_of_watch *rules, const struct engine_rule *rule,
			 const struct engine_firings *all, const struct watch_control *control,
			 int64_t now, char why[200], int64_t *until);

/* The name of the experiment that is the action, in that attempt; owned, NULL: no memory. */
char *firing_experiment(const struct engine_firing *f, uint64_t attempt);

/* --- meter.c ------------------------------------------------------------------------------- */

/*
 * Has the action of the firing, which runs, used more processor time than its rule has left?  Then end it.
 * *ret_cpu_ms: what it has used; 0: not known.
 */
NODISCARD int meter_hold(struct engine *e, const struct engine_rule *rule,
			 const struct engine_firing *f, const struct engine_firings *all,
			 int64_t now, uint64_t *ret_cpu_ms, struct err *err);

/* Note what a run has used.  True: it is so much more than before that it is to be saved.  False as well: no memory. */
bool meter_note(struct watch_state *s, const char *run, uint64_t cpu_ms);

/* Forget the runs of all firings but those that are begun and not decided. */
void meter_forget(struct watch_state *s, const struct engine_firings *all);

/* What the run is known to have used, by the state that is saved. */
NODISCARD int meter_recall(struct engine *e, const char *run, uint64_t *ret_cpu_ms,
			   struct err *err);

/* --- action.c ------------------------------------------------------------------------------ */

/* Run the action of a firing, decide, and do what was decided; or go on where another process died. */
NODISCARD int action_do(struct engine *e, const char *id, struct err *err);

/* Run it as it would be, on a clone that is removed; *ret says how it would be decided. */
NODISCARD int action_try(struct engine *e, const struct engine_rules_of_watch *rules,
			 const struct engine_rule *rule, struct engine_watch_test *ret,
			 struct err *err);

/* --- advance.c ----------------------------------------------------------------------------- */

/* Take changes further that wait for no person.  `paused`: only watch over those that landed, and land nothing. */
NODISCARD int advance_all(struct engine *e, bool paused, struct err *err);

/* What could go on.  Each print is another number than before if one of those changed; 0: there is none. */
struct advance_due {
	uint64_t
	    health; /* print of those whose soak is to be looked at now, or that are taken back */
	uint64_t others; /* print of those that wait for nothing */
	int64_t next;    /* when to look again; 0: none waits so */
};

/* `working`: a child of ours takes some of them further, and says so when it ends. */
void advance_is_due(const struct engine_changes *all, bool paused, bool working, int64_t now,
		    struct advance_due *ret);

/* --- news.c -------------------------------------------------------------------------------- */

/* 1 if there is something to tell of one of them, whose changes are among `all`. */
NODISCARD int news_is_due(const struct engine_firings *firings, const struct engine_changes *all,
			  struct err *err);

/* Tell it: what became of each, once. */
NODISCARD int news_tell(struct engine *e, const struct engine_firings *firings,
			const struct engine_changes *all, struct err *err);

/* --- files.c ------------------------------------------------------------------------------- */

/* A project as it is now, for all rules of it that look in the same round.  It begins as { 0 }. */
struct files_view {
	char *project; /* owned; NULL: nobody has looked yet */
	char snapshot[ENGINE_ID_SIZE];
	struct engine_receipts receipts; /* that it has seen, newest first */
};

void files_view_done(struct files_view *v); /* and nobody has looked yet */

/* Paths that changed since the cursor, without what landings of ours did; *ret_more of them beside these. */
NODISCARD int files_look(struct engine *e, const struct engine_rule *rule, struct watch_cursor *c,
			 struct files_view *view, struct strlist *ret_paths, uint64_t *ret_more,
			 struct err *err);

/* --- trigger.c ----------------------------------------------------------------------------- */

/*
 * Look whether the rule's trigger came, and write the firing down.  `dirty`: something may have changed in its
 * project or file.  1: the cursor moved.  *ret_next: when time alone is a reason to look again; 0: never.
 */
NODISCARD int trigger_look(struct engine *e, const struct engine_rule *rule, struct watch_cursor *c,
			   bool dirty, int64_t now, struct files_view *view, int64_t *ret_next,
			   struct err *err);

/* Run the command of a rule that waits for it to fail.  1: it does. */
NODISCARD int trigger_probe(struct engine *e, const struct engine_rule *rule, struct err *err);

/* That is what came of it. */
NODISCARD int trigger_probed(struct engine *e, const struct engine_rule *rule,
			     struct watch_cursor *c, bool failed, struct err *err);

/* --- tree-linux.c -------------------------------------------------------------------------- */

struct watch_tree;

/* What lies in the directory of the store is no event of a tree that holds it. */
NODISCARD int tree_open(const char *store, struct watch_tree **ret, struct err *err);
void tree_free(struct watch_tree *t);
int tree_fd(const struct watch_tree *t); /* where to poll */

/* Watch a directory with all below it, or (`whole` false) alone.  `number`: by which tree_read() calls it. */
NODISCARD int tree_add(struct watch_tree *t, const char *path, bool whole, unsigned number,
		       struct err *err);

/* Call `fn` for each number below which something changed; one that is not fully watched may be missed. */
void tree_read(struct watch_tree *t, void (*fn)(unsigned number, void *ctx), void *ctx);
bool tree_is_partial(const struct watch_tree *t, unsigned number);

/* Is there no directory of that name?  Then nothing of it is watched, until tree_find() finds one. */
bool tree_is_lost(const struct watch_tree *t, unsigned number);

/* Does the place's name mean another directory now than is watched, or none? */
bool tree_is_other(const struct watch_tree *t, unsigned number);

/* Then watch that one. */
NODISCARD int tree_find(struct watch_tree *t, unsigned number, struct err *err);

/* --- loop-linux.c -------------------------------------------------------------------------- */

/*
 * Follow the rules until a signal asks for the end, or (`once`) nothing is due.  `ready` (or NULL): once every rule
 * has seen the state that it begins with, before the first action.
 */
NODISCARD int watch_loop(struct engine *e, struct docket_lock *lock, bool once,
			 int (*ready)(void *ctx, struct err *err), void *ctx, struct err *err);
