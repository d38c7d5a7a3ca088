/*
 * pipeline-i.h - shared by the files of engine/pipeline/.
 */
#pragma once

#include "base/text.h"
#include "engine/api/pipeline.h"
#include "engine/verb/docket-i.h"

/* --- stage-read.c -------------------------------------------------------------------------- */

#define PIPELINE_FILE "pipeline.yaml"

/* A copy of a stage, to be freed with pipeline_stage_done(). */
NODISCARD int pipeline_stage_copy(const struct engine_stage *s, struct engine_stage *ret,
				  struct err *err);
void pipeline_stage_done(struct engine_stage *s);
const char *pipeline_approve_word(const char *text); /* the one that is spelled so, or "always" */

/* The stage of that name, or NULL. */
const struct engine_stage *pipeline_stage(const struct engine_pipeline *p, const char *name);

NODISCARD int pipeline_load(struct engine *e, const char *project, struct engine_pipeline *ret,
			    struct err *err);

/* --- change.c ------------------------------------------------------------------------------ */

extern const struct docket_kind change_kind; /* struct engine_change */
extern const struct fields change_fields;

/* Nanoseconds since 1970, as clock-i.h has them. */
int64_t pipeline_now(void);

/* Does its state go with the rest of it?  It may come from a damaged file, or from a stranger. */
bool change_is_sound(const struct engine_change *c);

/* The stage that they were asked about is over. */
void change_forget_approvers(struct engine_change *c);

NODISCARD int change_load(struct engine *e, const char *id, const struct docket_lock *l,
			  struct engine_change *ret, struct err *err);
/* All of them, without a look at the databases: of a store that is known to be ours and whole. */
NODISCARD int changes_alone(struct engine *e, struct engine_changes *ret, struct err *err);
void change_unapprove(struct engine_change *c);
bool change_stage_same(const struct engine_stage *a, const struct engine_stage *b);
void change_unsettle(struct engine_change *c); /* forget the settings of its stage */
struct engine_passed *change_passed(const struct engine_change *c, const char *stage);

/* A change that this process works on. */
struct shipping {
	struct engine *engine;
	const struct engine_ship_options *options;
	const char *who; /* asks now: who shipped it, or somebody who may less */
	struct engine_change *change;
	struct engine_promotion *promotion;
	struct engine_pipeline pipeline;
	struct docket_lock lock;
	bool anew; /* it arrives at its stage once more, as that is configured now */
};

/* Write the state down, and tell the event stream if `kind` is one. */
NODISCARD int shipping_save(struct shipping *s, const char *kind, struct err *err);

/* It is held; `obstacle` is one of engine_change's. */
NODISCARD int shipping_hold(struct shipping *s, const char *obstacle, const char *why,
			    struct err *err);

/* --- approve.c ----------------------------------------------------------------------------- */

#define DECIDER_GROUPS_MAX 1024

/* Names of groups that were looked up; that may ask a server somewhere. */
#define DECIDER_NAMES_MAX 32
struct decider_names {
	struct {
		char *name; /* owned */
		bool theirs;
	} list[DECIDER_NAMES_MAX];
	size_t n;
};
void decider_names_done(struct decider_names *n);

/* Somebody who wants to decide, as the kernel knows them. */
struct decider {
	uid_t uid;
	const gid_t *groups;
	size_t n_groups;
	/* Each is looked up once, and beyond the limit nobody is in a group; NULL: as often as it is asked for. */
	struct decider_names *names;
};

struct decision {
	bool reject;
	const char *reason; /* NULL: none, of an approval */
	const char *stage;  /* that it is for; NULL: the one that the change waits for */
	const char *digest; /* of the difference that was seen; NULL: the change's own id must do */
};

/* -ECANCELED if they may not, or there is nothing to decide; `id` is a whole one. */
NODISCARD int approve_decide(struct engine *e, const char *id, const struct decision *what,
			     const struct decider *d, struct engine_change *ret, struct err *err);

/* Do the approvers of the change name this user, or a group of theirs? */
bool approve_is_named(const struct engine_change *c, const struct decider *d, const char *name);

char *approve_user_name(uid_t uid); /* owned; NULL: no memory */

/* --- stage.c ------------------------------------------------------------------------------- */

/* Check the change, and land it in the target, if there is one.  1: it passed; 0: it is held. */
NODISCARD int stage_pass(struct shipping *s, const struct engine_stage *stage, struct err *err);

/* A process died while it landed or took back: what became of it? */
NODISCARD int stage_recover(struct shipping *s, struct err *err);

/* Remove the clone of a landing that a dead process left; nobody has its name but this change. */
NODISCARD int stage_tidy(struct shipping *s, struct err *err);

/* May it enter?  1: yes; 0: it waits or is held, and the change says so. */
NODISCARD int stage_may_enter(struct shipping *s, const struct engine_stage *stage,
			      struct err *err);

/* --- soak.c -------------------------------------------------------------------------------- */

/* It landed: the soak that its stage wants begins. */
NODISCARD int soak_begin(struct engine_passed *p, const struct engine_stage *stage,
			 struct err *err);

/* 1: the soak is over; 0: it goes on, or it is sick. */
NODISCARD int soak_watch(struct shipping *s, struct err *err);

/* Take it back, as far as the stage says. */
NODISCARD int soak_undo(struct shipping *s, struct err *err);

/* --- verify.c ------------------------------------------------------------------------------ */

/* The link of the i-th receipt, from all that it says and the link before it. */
void verify_link(const struct engine_change *c, size_t i, char ret[65]);

/* An engine that works in another directory with the same store. */
NODISCARD int pipeline_engine(const struct engine *e, const char *dir, struct engine **ret,
			      struct err *err);
