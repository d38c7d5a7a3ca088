/*
 * pipeline.h - changes on their way through stages: sandbox, checks, the project, other
 * directories.
 *
 * A change is what a clone had changed when it was shipped; later edits of the clone are not part
 * of it. The stages are data: pipeline.yaml in the user's configuration, which the project's own
 * '.snap/pipeline.yaml' can only narrow (docs/reference/pipeline.md). A change enters a stage once
 * all stages before it have passed for the very same content. Each stage keeps a receipt, which
 * names the receipt before it by its digest. The state of a change is in the store: whichever
 * process dies, a decision is carried out at most once, and the next command continues.
 */
#pragma once

#include "engine/api/policy.h"

enum engine_change_state {
	ENGINE_CHANGE_READY,    /* for its next stage */
	ENGINE_CHANGE_WAITING,  /* for a person */
	ENGINE_CHANGE_LANDING,  /* a process works on it, or died while it did */
	ENGINE_CHANGE_SOAKING,  /* landed, and watched for a while */
	ENGINE_CHANGE_HELD,     /* by a check, a conflict, the guard or a rule: see `why` */
	ENGINE_CHANGE_SHIPPED,  /* through all stages */
	ENGINE_CHANGE_REJECTED, /* by a person */
	ENGINE_CHANGE_UNDOING,  /* its health failed, and it is being taken back */
	ENGINE_CHANGE_SICK,     /* that is done; the same content is barred */
};
const char *engine_change_state_name(enum engine_change_state state); /* "ready", ... */
bool engine_change_is_over(enum engine_change_state state);

#define ENGINE_BOOT_SIZE   48
#define ENGINE_COMMIT_SIZE 41

/* A stage of a pipeline, as it is configured. */
struct engine_stage {
	char *name;
	char *target; /* owned; a directory, "git:REPOSITORY#BRANCH", or NULL: it only checks */
	char **checks, **health, **approvers; /* owned */
	size_t n_checks, n_health, n_approvers;
	const char *approve; /* "never", "policy", "always" */
	uint64_t soak_ms, every_ms;
	bool undo_all; /* if its health fails, the stages before it are taken back, too */
};

/* How a change passed a stage. */
struct engine_passed {
	char *stage;  /* owned, as are the others */
	char *target; /* the directory that it landed in, or "git:REPOSITORY#BRANCH"; NULL: none */
	char receipt[ENGINE_ID_SIZE]; /* of the landing; "": nothing had to change */
	char sha256[65];              /* of what changed there; "": nothing did */
	/* Of a branch: the commit that it became, and the one that took it back; or "". */
	char commit[ENGINE_COMMIT_SIZE], undo_commit[ENGINE_COMMIT_SIZE];
	struct engine_checked *checks;
	size_t n_checks;
	char *approved_by; /* NULL: nobody had to */
	uint64_t approved_uid;
	char *reason;                    /* what that person said, or NULL */
	int64_t passed;                  /* nanoseconds since 1970 */
	int64_t soak_until, health_next; /* as the clock looks now; 0: no more */
	uint64_t health_runs;
	/* What its stage said when it landed: an edit of pipeline.yaml changes nothing that soaks. */
	char **health;
	size_t n_health;
	uint64_t soak_ms, every_ms;
	bool undo_all;
	/* How much of the soak was over when the record was written, when that was, and when health is due. */
	uint64_t soaked_ms, health_ms;
	int64_t seen;     /* by the clock */
	uint64_t seen_ms; /* since the boot that `boot` names */
	char boot[ENGINE_BOOT_SIZE];
	bool undone;
	char link[65]; /* SHA-256 of this receipt and the link before it */
};

struct engine_change {
	char id[ENGINE_ID_SIZE];
	char *clone, *project; /* owned; what was shipped, and the path of its project */
	char *who;             /* owned; asked: "person", "agent:NAME", "watch:RULE" */
	uint64_t uid;
	char base[ENGINE_ID_SIZE], state_id[ENGINE_ID_SIZE]; /* snapshots: from, and to */
	char sha256[65];                                     /* of the difference of the two */
	int64_t created;
	enum engine_change_state state;
	char *
	    obstacle; /* owned; of one that is held: "check", "conflict", "guard", "rule", "receipt" */
	char *why;    /* owned; for people, or NULL */
	char *to;     /* owned; the stage to stop at, or NULL */
	char *stage; /* owned; that it is in or waits for, or NULL */
	/* That stage as it was when the change arrived there; 0 or 1 of them.  One that was held arrives anew. */
	struct engine_stage *settings; /* owned */
	size_t n_settings;
	char *risk;       /* owned; as judged for that stage, or NULL */
	char **approvers; /* owned; who may let it go on */
	size_t n_approvers;
	char **subject; /* owned; patterns: what it was to be about */
	size_t n_subject;
	char **held; /* owned; paths that the guard held when it began to wait */
	size_t n_held;
	/* The approval for `stage`, until that has passed. */
	char *approved_by, *reason; /* owned, or NULL */
	uint64_t approved_uid;
	/* The landing that was begun: its clone, its target, and the clone's receipts that were there before. */
	char *landing_clone, *landing_target; /* owned, or NULL */
	char **landing_known;                 /* owned */
	size_t n_landing_known;
	char landing_commit[ENGINE_COMMIT_SIZE]; /* of a branch, once it is made; or "" */
	struct engine_passed *passed;            /* owned; in the order of stages */
	size_t n_passed;
	bool alive; /* a process works on it */
};

void engine_change_done(struct engine_change *c);

struct engine_changes {
	struct engine_change *list; /* owned; newest first */
	size_t n;
};

void engine_changes_done(struct engine_changes *l);

struct engine_ship_options {
	const char
	    *clone;      /* to ship as it is now; NULL: the one that holds the engine's directory */
	const char *to;  /* the last stage; NULL: the last there is */
	const char *who; /* NULL: "person" */
	struct engine_list subject; /* patterns: what the change was to be about */
	bool by_time;               /* nobody asked: it goes no further than it was to go */
	bool lands_nothing;         /* it goes to the end of its soak, and on to no stage */
	bool wait;                  /* until it stands still for another reason than time */
	void (*checking)(const char *command, const struct engine_run *run, void *ctx);
	void *ctx;
	struct engine_watch watch;
};

/*
 * Make a change of a clone and take it as far as it may go.  *ret tells where it stands, *promotion what came of
 * the last landing that was tried.  -ECANCELED if the same content was found sick before.
 */
NODISCARD int engine_ship(struct engine *e, const struct engine_ship_options *options,
			  struct engine_change *ret, struct engine_promotion *promotion,
			  struct err *err);

/* Take one further, as far as it may go: health, soak, the next stage.  -EBUSY while a process works on it. */
NODISCARD int engine_ship_on(struct engine *e, const char *id,
			     const struct engine_ship_options *options, struct engine_change *ret,
			     struct engine_promotion *promotion, struct err *err);

/* In how many milliseconds time alone lets it go on: health is due, or the soak is over.  -1: never. */
int64_t engine_change_due_ms(const struct engine_change *c);

/* What a person says, and what of: NULL leaves a thing open, but a rejection has its reason. */
struct engine_decision {
	bool reject;
	const char *reason;
	const char *stage;  /* that the change waits for */
	const char *digest; /* of the difference that was looked at: the change's `sha256` */
};

/* -ECANCELED if the user of this process may not, or if the change is another than that. */
NODISCARD int engine_approve(struct engine *e, const char *id, const struct engine_decision *d,
			     struct engine_change *ret, struct err *err);

/* Of the project here, or `all`.  `id` may be the beginning of one, or the name of a clone: its newest. */
NODISCARD int engine_changes(struct engine *e, bool all, struct engine_changes *ret,
			     struct err *err);
NODISCARD int engine_change_find(struct engine *e, const char *id, struct engine_change *ret,
				 struct err *err);

/* 0 if all receipts are what they say and belong together; 1 with the first that does not in *ret_why, owned. */
NODISCARD int engine_change_verify(struct engine *e, const struct engine_change *c, char **ret_why,
				   struct err *err);

/* --- what is configured -------------------------------------------------------------------- */

struct engine_pipeline {
	char *file, *project;      /* owned; where it was read, and for which project */
	struct engine_stage *list; /* owned */
	size_t n;
};

void engine_pipeline_done(struct engine_pipeline *p);

/* Of the project here.  -ENOENT if the user's configuration has none; -EINVAL with "FILE:LINE:COLUMN: why". */
NODISCARD int engine_pipeline(struct engine *e, struct engine_pipeline *ret, struct err *err);
