/*
 * loop-i.h - the process that follows the rules, and its children.
 */
#pragma once

#include <sys/types.h>

#include "engine/watch/watch-i.h"

/* Places of the tree that are not rules. */
enum { PLACE_EVENTS, PLACE_CONFIG, PLACE_CLOCK, PLACE_RULES };

/* How a child ends, beside 0 and (a probe that fails) 1. */
enum { CHILD_FAILED = 2, CHILD_BUSY };

enum child_kind { CHILD_ACTION, CHILD_ADVANCE, CHILD_HEALTH, CHILD_PROBE, CHILD_TELL };

struct child {
	pid_t pid;
	enum child_kind kind;
	char what[64]; /* the firing, or the rule of a probe */
};

/* What was tried and failed is left alone for a while. */
struct failed {
	char what[64];
	uint64_t until;
	unsigned count;
};

struct follow {
	unsigned place;       /* of the tree; UINT_MAX: none */
	uint64_t first, last; /* when it became dirty, and again; 0: it is not */
	uint64_t retry;       /* not before that */
	unsigned failures;    /* to look at it, in a row */
	uint64_t looked;
	bool told; /* that not all of it can be watched */
};

struct loop {
	struct engine *engine;
	struct docket_lock *lock;
	bool once, ends;
	bool starts; /* nothing is forked yet */
	struct engine_rules_of_watch rules;
	struct follow *follows; /* owned; one for each rule */
	uint64_t rules_print;   /* of the files that they were read from */
	uint64_t silent;        /* when those that hang were last tried */
	struct watch_state state;
	struct watch_control control;
	struct engine_firings firings;
	struct engine_changes changes; /* as the last round found them */
	struct files_view view;        /* of this round */
	struct watch_tree *tree;
	int timer, signals;
	struct child *children; /* owned */
	size_t n_children;
	struct failed *failed; /* owned */
	size_t n_failed;
	uint64_t print_tried;  /* of changes that could go on */
	uint64_t health_tried; /* of those that soak or are taken back, */
	uint64_t health_retry; /* which are not tried again before that unless they changed */
	int64_t pruned;
	off_t log_max; /* bytes, of what we wrote to standard error; 0: that is not ours to cut */
	unsigned failures; /* of rounds, in a row */
	uint64_t retry;    /* no round before that */
	bool busy;         /* something began in this round */
	bool only_files;   /* what came now is that files of rules changed, and nothing else */
	bool only_events;  /* or that something was written to the log of events */
	uint64_t round;    /* when the last one was over */
	int64_t next;      /* when time is a reason to look again */
	uint64_t next_ms;  /* the same of what is measured */
};

/* Milliseconds to wait after so many failures before it is tried again. */
uint64_t loop_patience(unsigned failures);

/* Write down how far the rules were looked at. */
NODISCARD int loop_save(struct loop *l, struct err *err);

/* Did a file change that the rules were read from?  Then read them, and watch what they name. */
bool loop_rules_moved(struct loop *l);
void loop_tell_partial(struct loop *l); /* rules of which not all can be watched, each once */
NODISCARD int loop_load_rules(struct loop *l, struct err *err);

/* Look again at that time of engine_clock_ms(), or before. */
void loop_wake_in(struct loop *l, uint64_t at_ms);

/* The same by the clock that people set; 0: never. */
void loop_wake_at(struct loop *l, int64_t at);

/* Begin the actions that may begin, and hold back those that use too much. */
NODISCARD int loop_look_at_firings(struct loop *l, int64_t now, struct err *err);

/* Did it fail just now?  Then the loop wakes when it may be tried again. */
bool loop_child_is_left_alone(struct loop *l, const char *what);
void loop_child_leave_alone(struct loop *l, const char *what, bool busy);

bool loop_child_is_running(const struct loop *l, enum child_kind kind, const char *what);
NODISCARD int loop_child_start(struct loop *l, enum child_kind kind, const char *what,
			       struct err *err);
void loop_child_end_all(struct loop *l);
