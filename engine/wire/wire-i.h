/*
 * wire-i.h - the verbs that cowfsd serves: their names, requests and answers.
 *
 * Each wire-NOUN.c has the tables of one noun (fields.h). The command line asks in
 * engine/ask/ask-NOUN.c, cowfsd serves in engine/cowfsd/serve-NOUN.c; both use the same table.
 */
#pragma once

#include "base/fields.h"
#include "base/json.h"
#include "cowfs/store/object.h"
#include "engine/api/clone.h"
#include "engine/api/history.h"
#include "engine/api/promote.h"
#include "engine/api/question.h"

#define VERB_ALLOW           "allow"
#define VERB_ANNOUNCE        "announce"
#define VERB_ANSWER          "answer"
#define VERB_ARTIFACT        "artifact"
#define VERB_CHECK           "check"
#define VERB_CLONE           "clone"
#define VERB_ECHO            "echo"
#define VERB_GC              "gc"
#define VERB_HOLD            "hold"
#define VERB_HOLD_NAMES      "hold-names"
#define VERB_IMPORT          "import"
#define VERB_LIST            "list"
#define VERB_MERGE           "merge"
#define VERB_METRICS         "metrics"
#define VERB_MOUNT           "mount"
#define VERB_OVERLAPS        "radar" /* what older commands ask for */
#define VERB_PROJECT         "project"
#define VERB_PROMOTE         "promote"
#define VERB_QUESTION        "question"
#define VERB_QUESTIONS       "questions"
#define VERB_REBASE          "rebase"
#define VERB_RECEIVE         "receive"
#define VERB_RECEIVE_LAZILY  "receive-lazily"
#define VERB_SUPPLY          "supply"
#define VERB_REMOVE          "remove"
#define VERB_REMOVE_ARTIFACT "remove-artifact"
#define VERB_REMOVE_IMAGE    "remove-image"
#define VERB_REMOVE_STATE    "remove-state"
#define VERB_RESOLVE         "resolve"
#define VERB_ROLLBACK        "rollback"
#define VERB_SETTLE          "settle"
#define VERB_SINCE           "since"
#define VERB_STAGE           "stage"
#define VERB_STAGE_ROOT      "stage-root"
#define VERB_STAGE_END       "stage-end"
#define VERB_STAGE_HIDE      "stage-hide"
#define VERB_STAGE_SETTLE    "stage-settle"
#define VERB_STAGE_STAY      "stage-stay"
#define VERB_STATUS          "status"
#define VERB_TAG             "tag"
#define VERB_TAKE            "take"
#define VERB_UMOUNT          "umount"

/* --- wire-artifact.c -------------------------------------------------------------------- */

extern const struct fields wire_artifact_options; /* struct engine_artifact_options */
extern const struct fields wire_artifact;         /* struct engine_artifact */

/* --- wire-clone.c ----------------------------------------------------------------------- */

extern const struct fields wire_clone_options; /* struct engine_clone_options */
extern const struct fields wire_clones;        /* struct engine_clones */
extern const struct fields wire_clone;         /* struct engine_clone, as a list has it, */
extern const struct fields wire_clone_more;    /* and what only a status has */
extern const struct fields wire_overview;      /* struct engine_overview */
extern const struct fields wire_announced;     /* struct engine_announced */
extern const struct fields wire_removed;       /* struct engine_removed */
extern const struct fields wire_since;         /* struct engine_since */

/* --- wire-echo.c ------------------------------------------------------------------------ */

/* What a name led to or leads to. */
#define ECHO_NONE  '-'
#define ECHO_DIR   'd'
#define ECHO_FILE  'f' /* a regular one */
#define ECHO_OTHER 'o'

/* A name that programs which watch must hear of (engine/act/echo-i.h). */
struct echo_path {
	char *path; /* owned; from the top of the clone */
	char was, is;
};

struct echo_page {
	char *path, *token; /* owned; where it is mounted, and the name to begin with */
	struct echo_path *names;
	size_t n_names;
};
void echo_page_done(struct echo_page *p);

extern const struct fields wire_echo_page;

/* --- wire-history.c --------------------------------------------------------------------- */

extern const struct fields wire_take_options; /* struct engine_take_options */
extern const struct fields wire_capturing;    /* struct engine_capturing */
extern const struct fields wire_taken;        /* struct engine_taken */
extern const struct fields wire_snapshot;     /* struct engine_snapshot */
extern const struct fields wire_tag;          /* struct engine_tag */

/* --- wire-hold.c ------------------------------------------------------------------------ */

#define HOLD_MAX 130 /* states of one question */

#define HOLD_NAMES_MS 10000 /* that names of directories are held at most */

/* A state as of one moment. */
struct held {
	struct object_id root;
	int64_t time;
};

void wire_set_held(struct json j, const struct held *h);
NODISCARD int wire_get_held(struct json j, struct held *ret); /* -EINVAL: it is no root */

/* --- wire-metrics.c --------------------------------------------------------------------- */

extern const struct fields wire_metrics; /* struct engine_daemon_metrics */

/* --- wire-merge.c ----------------------------------------------------------------------- */

/* Would these merge?  The caller holds all three. */
struct merge_ask {
	struct held base, ours, theirs;
	const char *base_name, *our_name, *their_name; /* how conflicts name their versions */
};

struct merge_told {
	uint64_t merged; /* texts that come from both sides */
	struct engine_conflict *conflicts;
	size_t n_conflicts;
};

void merge_told_done(struct merge_told *t);
void wire_set_merge(struct json j, const struct merge_ask *a);
NODISCARD int wire_get_merge(struct json j, struct merge_ask *ret); /* its names are borrowed */
extern const struct fields wire_merge_told;

/* --- wire-paths.c ------------------------------------------------------------------------ */

extern const struct field_codec wire_paths; /* struct engine_paths */

/* --- wire-promote.c --------------------------------------------------------------------- */

/* Promotion and undo, as cowfsd is asked for them (engine/act/promote-i.h). */
struct promote_options {
	const struct engine_promote_options *asked;
	const char *rules;   /* the user's file of more of them; NULL: none */
	const char *receipt; /* of an undo: what to take back; NULL: the last */
	bool undo;
	bool check;          /* stop before landing, and keep what is to be checked */
	const char *checked; /* the snapshot that was; NULL: none */
	int64_t now;         /* of the first question; 0: this is it */
	const char *checks;  /* {"checks":[...]}, for the receipt; NULL: none */
	/* What is to be kept should it meet conflicts, so that it can be asked for again; NULL: nothing. */
	const char *remember;
};

extern const struct fields wire_promote_options; /* all of it but for `asked` */
extern const struct fields wire_promote_asked;   /* and that: struct engine_promote_options */
extern const struct fields wire_promotion;       /* struct engine_promotion */
extern const struct fields wire_conflict;        /* struct engine_conflict */
extern const struct fields wire_resolve_options; /* struct engine_resolve_options */
extern const struct fields wire_rebase_options;  /* struct engine_rebase_options */
extern const struct fields wire_rebased;         /* struct engine_rebased */

/* --- wire-image.c ----------------------------------------------------------------------- */

/* A parsed archive comes along (image/stream.h) and is to become an image. */
struct import_ask {
	char *name;
	char *about;   /* engine_image has it */
	char *message; /* of the snapshot */
	bool replace;
	uint64_t max_bytes; /* 0: a limit of ours */
	uint64_t max_names; /* likewise */
};

extern const struct fields wire_import;   /* struct import_ask */
extern const struct fields wire_image;    /* struct engine_image */
extern const struct fields wire_imported; /* struct engine_imported */

/* --- wire-question.c -------------------------------------------------------------------- */

/* A run asks, and waits for the answer. */
struct question_ask {
	char id[ENGINE_QUESTION_ID_SIZE]; /* of the run's choice */
	char *run, *kind, *what;
	uint64_t wait_ms;
};

struct question_told {
	bool answered; /* else time was up, or cowfsd is about to end */
	bool allow, remember;
};

/* A person answers. */
struct question_answer {
	char *id; /* or the beginning of it */
	bool allow, remember;
};

extern const struct fields wire_question_ask, wire_question_told, wire_question_answer;
extern const struct fields wire_question;  /* struct engine_question */
extern const struct fields wire_questions; /* struct engine_questions */

/* --- wire-remote.c ---------------------------------------------------------------------- */

extern const struct fields wire_receive_options; /* struct engine_receive_options */
extern const struct fields wire_received;        /* struct engine_received */
extern const struct fields wire_supply_options;  /* struct engine_supply_options */
extern const struct fields wire_supply;          /* struct engine_supply */

/* --- wire-rollback.c -------------------------------------------------------------------- */

extern const struct fields wire_rollback_options; /* struct engine_rollback_options */
extern const struct fields wire_rolled;           /* struct engine_rolled */
extern const struct fields wire_note;             /* struct engine_rolled_path */

/* --- wire-overlaps.c -------------------------------------------------------------------- */

extern const struct fields wire_overlaps; /* struct engine_overlaps */

/* --- wire-stage.c ----------------------------------------------------------------------- */

#define STAGE_NAME     "run-"     /* the name of a clone that is made for a run begins so, ... */
#define STAGE_RUN_SIZE 13         /* ... and goes on with the run's id: 12 hex digits and a NUL */
#define STAGE_BESIDE   "-project" /* ... and ends so, if the run has another one */

/* A clone is to be made ready for a run (engine/act/stage-i.h). */
struct stage_options {
	const char *run;   /* its id */
	bool beside;       /* of the project, which the run has beside the clone that is its root */
	const char *clone; /* NULL: make one, */
	const char *from;  /* of this snapshot; NULL: of the project now */
	const char *root;  /* of this directory, captured now for this clone alone; NULL: none */
	bool lazy;         /* files of the project may be read later (docs/design/lazy.md) */
	bool eager;        /* they may not, however many there are to be read */
	const char *part;  /* of the project: this directory alone; NULL: all of it */
	const char *via;   /* of the one that is made (engine_clone_options); NULL: the run */
	bool keep;         /* the one that is made stays, under a name that people can say */
	bool strict;       /* its fsync waits for the disk (engine_clone_options) */
	bool passing;      /* the one that is made goes in any case, unread */
	bool wait;         /* the same, but only until stage_settle(), or the connection's end */
	bool remove;       /* the one that is named goes */
	bool no_snapshot;  /* of the one that is named */
	bool masks;        /* the run hides files of it by mounts over them */
	uint64_t disk;     /* bytes that it may grow by during the run; 0: no limit */
	uint64_t inodes;   /* that may be made in it; 0: no limit */
	uint64_t ttl_ms;   /* of the one that is made, should nobody be left to remove it */
	/* What ids 0 and up of the run are outside, and how many; 0 of them: what they are inside. */
	uint32_t first_id, ids;
	bool skip_unreadable; /* of the project: leave out what cannot be read */
	struct engine_watch watch;
};

struct stage {
	char *clone;   /* owned, as are the others */
	char *path;    /* where it is mounted */
	char *view;    /* where it is with the run's ids; NULL: map the ids of `path` */
	char *project; /* its path */
	char project_id[ENGINE_ID_SIZE];
	char before[ENGINE_ID_SIZE]; /* a snapshot of the clone as it is now; "": none */
	uint64_t unread;             /* bytes of the one that was made that are read later */
};

void stage_done(struct stage *s);

#define STAGE_HIDDEN_MAX 4096

/* How a run sees a clone that it mounted as its root; borrowed. */
struct stage_root {
	const uint32_t
	    *one; /* everything is shown as that of this user and group; NULL: as it is */
	const uint64_t *hidden; /* what it cannot open, by st_ino, rising */
	size_t n_hidden;
};

/* What became of it. */
struct stage_end {
	bool compared; /* what follows is known */
	uint64_t added, modified, deleted;
	struct engine_paths changed;
	bool full;      /* it had no room for some of it */
	bool no_inodes; /* the same of files and directories */
	bool removed;   /* there is no such clone any more */
};

void stage_end_done(struct stage_end *s);

extern const struct fields wire_stage_options, wire_stage, wire_stage_end;

/* --- wire-upkeep.c ---------------------------------------------------------------------- */

extern const struct fields wire_gc_options;    /* struct engine_gc_options */
extern const struct fields wire_gc;            /* struct engine_gc */
extern const struct fields wire_check_options; /* struct engine_check_options */
extern const struct fields wire_check;         /* struct engine_check */
