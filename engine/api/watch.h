/*
 * watch.h - rules of trigger, action and decision, and the process that follows them.
 *
 * The rules are data: watch.yaml in the user's configuration, which the project's own
 * '.snap/watch.yaml' can only narrow (docs/reference/watch.md). When a trigger comes, a firing is
 * written to the store. Its action runs in the sandbox on a fresh clone. The clone's changes are
 * then reported, kept, or shipped as far as the policy allows "watch:RULE" (pipeline.h).
 *
 * One process follows the rules of a store. Whatever dies meanwhile, a firing is decided at most
 * once: its intent is written down before each step, and the next process completes it.
 */
#pragma once

#include "base/calendar.h"
#include "engine/api/pipeline.h"

enum engine_trigger {
	ENGINE_TRIGGER_FIRE, /* from outside, engine_watch_fire() */
	ENGINE_TRIGGER_SCHEDULE,
	ENGINE_TRIGGER_FILES,   /* changed, for another reason than a landing of ours */
	ENGINE_TRIGGER_FAILS,   /* a command that passed before */
	ENGINE_TRIGGER_REF,     /* of git moved */
	ENGINE_TRIGGER_LOG,     /* has a line that matches */
	ENGINE_TRIGGER_DISK,    /* has little room left */
	ENGINE_TRIGGER_STORE,   /* has grown too large */
	ENGINE_TRIGGER_WEBHOOK, /* somebody called it by HTTP */
};
const char *engine_trigger_name(enum engine_trigger t); /* "fire", "schedule", ... */

/* What is done with the changes of an action that passed; the mildest first. */
enum engine_then { ENGINE_THEN_REPORT, ENGINE_THEN_KEEP, ENGINE_THEN_SHIP };
const char *engine_then_name(enum engine_then t);

/* Of numbers 0 is no limit. */
struct engine_budget {
	uint64_t runs_per_hour, cpu_per_day_ms, wall_ms, lines, disk;
	uint64_t failures;   /* in a row, after which the rule stops */
	uint64_t backoff_ms; /* after the first failure; doubled by each that is the same */
};

struct engine_rule {
	char *name, *project; /* owned, as are the others */
	enum engine_trigger trigger;
	char *schedule; /* the expression of a schedule */
	struct calendar calendar;
	char **files; /* patterns as .gitignore has them */
	size_t n_files;
	char *probe;            /* the command that fails */
	char *ref;              /* "refs/heads/main" */
	char *file, *match;     /* a log, and an extended regular expression */
	uint64_t limit;         /* bytes, of a disk or a store */
	uint64_t every_ms;      /* how often a probe runs */
	uint64_t debounce_ms;   /* that files are left alone before it fires */
	char *run, *experiment; /* one of them: a command for a shell, or a file of arms */
	char *profile;          /* of the command; NULL: as any run has it */
	enum engine_then then;
	char *to;       /* the last stage of a ship; NULL: the last there is */
	char **subject; /* patterns: what the change is to be about */
	size_t n_subject;
	struct engine_budget budget;
	struct day_span *quiet; /* when nothing begins */
	size_t n_quiet;
	bool nul;      /* its paths end with a NUL, not with a newline */
	bool parallel; /* it may run beside other actions of its project */
	bool off;      /* by the project's own file */
	bool silent;   /* the file system of its project, or of its log, hangs; so it is off */
	char *problem; /* why that file cannot be understood, and the rule is off; or NULL */
	/* Not configured: what its probes have used of a day that began then. */
	uint64_t probed_ms;
	int64_t probed_since;
};

struct engine_rules_of_watch {
	char *file; /* owned, as are the others; where they were read */
	/* How the user hears of what was done: a command, an address that gets a POST; or NULL. */
	char *notify, *notify_post;
	bool notify_desktop;      /* and by notify-send(1) */
	uint64_t concurrent;      /* actions at a time */
	struct engine_rule *list; /* owned */
	size_t n;
	uint64_t print; /* another number once a file changed that they were read from */
};

void engine_watch_rules_done(struct engine_rules_of_watch *w);

/*
 * -ENOENT if the user has no watch.yaml; -EINVAL with "FILE:LINE:COLUMN: why".  A file of a project that cannot be
 * understood turns off the rules of that project.
 */
NODISCARD int engine_watch_rules(struct engine *e, struct engine_rules_of_watch *ret,
				 struct err *err);

/* --- firings ------------------------------------------------------------------------------- */

enum engine_firing_state {
	ENGINE_FIRING_QUEUED,
	ENGINE_FIRING_RUNNING, /* a process runs its action, or died while it did */
	ENGINE_FIRING_DECIDED, /* what is to become of it is known, and being done */
	ENGINE_FIRING_DONE,
};
const char *engine_firing_state_name(enum engine_firing_state s);

struct engine_firing {
	char id[ENGINE_ID_SIZE];
	char *rule, *project; /* owned, as are the others */
	enum engine_trigger trigger;
	char *detail;              /* what the trigger says: a line, a commit, ...; or NULL */
	int64_t created;           /* nanoseconds since 1970, as are the others */
	int64_t made;              /* the same by the clock of the machine, which no test drives */
	uint64_t merged;           /* triggers that came while it was queued, and are part of it */
	char from[ENGINE_ID_SIZE]; /* of files: the snapshot in which that was seen, */
	int64_t from_made;         /* and when, by the clock of the machine */
	char **paths;              /* that changed, from the top of the project */
	size_t n_paths;
	uint64_t more_paths;
	enum engine_firing_state state;
	uint64_t attempts;
	int64_t begun, ended;
	char *clone;
	char run[ENGINE_RUN_ID_SIZE];
	int64_t exit_code;
	uint64_t cpu_ms, duration_ms, files, lines;
	char signature[17]; /* of a failure: the same for the same failure; "": none */
	enum engine_then then;
	/* "reported", "kept", "shipped", "nothing", "failed", "barred", "over-budget", "lost", "dropped"; NULL: not yet. */
	char *result;
	char *why;                   /* a sentence, or NULL */
	char change[ENGINE_ID_SIZE]; /* that it was shipped as; "": none */
	char *told;                  /* what the user heard of it last; NULL: nothing yet */
	bool alive;                  /* a process works on it; not stored */
};

void engine_firing_done(struct engine_firing *f);

struct engine_firings {
	struct engine_firing *list; /* owned; newest first */
	size_t n;
};

void engine_firings_done(struct engine_firings *l);

/* All that are kept: two weeks. */
NODISCARD int engine_watch_log(struct engine *e, struct engine_firings *ret, struct err *err);

/* --- the process --------------------------------------------------------------------------- */

struct engine_watch_start_options {
	bool foreground; /* in this process, until a signal ends it */
	bool once;       /* the same, until nothing is due */
};

/* Begin to follow the rules.  -EBUSY if a process does already.  *ret_pid: the one that does from now on. */
NODISCARD int engine_watch_start(struct engine *e, const struct engine_watch_start_options *options,
				 int64_t *ret_pid, struct err *err);

/* End it, and the actions that run; they begin again with the next one.  1: none ran. */
NODISCARD int engine_watch_stop(struct engine *e, struct err *err);

/* No action begins until it is resumed; `rule` NULL: of any rule.  Resuming forgets failures in a row. */
NODISCARD int engine_watch_pause(struct engine *e, const char *rule, bool resume, struct err *err);

/* From outside.  *ret is the firing, which may be one that is queued already. */
NODISCARD int engine_watch_fire(struct engine *e, const char *rule, const char *detail,
				struct engine_firing *ret, struct err *err);

/* The same by HTTP: -ENOENT unless the rule waits for that. */
NODISCARD int engine_watch_call(struct engine *e, const char *rule, const char *detail,
				struct engine_firing *ret, struct err *err);

/* --- looking ------------------------------------------------------------------------------- */

struct engine_rule_status {
	const struct engine_rule *rule;
	const char *state; /* "ready", "running", "queued", "waits", "paused", "stopped", "off" */
	char why[200];     /* what it waits for or was stopped by; "": nothing */
	int64_t next;      /* when a schedule is due, or waiting ends; 0: not known */
	int64_t last;      /* when it began last; 0: never */
	uint64_t fired, landed, failed; /* in the last 24 hours */
	uint64_t runs_hour, cpu_day_ms; /* that count against its budget */
	uint64_t failures;              /* in a row */
};

struct engine_watch_status {
	struct engine_rules_of_watch rules;
	struct engine_rule_status *list; /* owned; in the order of rules */
	size_t n;
	struct engine_firings firings; /* newest first */
	struct engine_changes changes; /* that rules have shipped, newest first */
	bool running, paused;
	int64_t pid, started;
	int64_t now;
	char *problem; /* owned; why no rule fires, or NULL */
};

void engine_watch_status_done(struct engine_watch_status *s);
NODISCARD int engine_watch_status(struct engine *e, struct engine_watch_status *ret,
				  struct err *err);

/* What would become of a change at a stage. */
struct engine_outlook {
	char *stage;      /* owned, as are the others */
	const char *then; /* "passes", "lands", "waits", "held" */
	char *why;
	char **approvers; /* of one that waits; none: the owner of the store */
	size_t n_approvers;
	size_t checks;  /* that must pass there */
	bool elsewhere; /* its target is not the project, and may differ from it */
};

/* What a rule would do now: its action on a clone that is removed after it.  Nothing lands. */
struct engine_watch_test {
	struct engine_firing firing;   /* as it would be decided */
	struct engine_verdict verdict; /* at the last stage that asks the policy */
	bool judged;                   /* `verdict` is known */
	struct engine_outlook *stages; /* owned; of a ship: as far as it would come */
	size_t n_stages;
	char *problem;  /* owned; why it could not be shipped, or NULL */
	char held[200]; /* what would keep it from beginning; "": nothing */
};

void engine_watch_test_done(struct engine_watch_test *t);
NODISCARD int engine_watch_test(struct engine *e, const char *rule, struct engine_watch_test *ret,
				struct err *err);
