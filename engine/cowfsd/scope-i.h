/*
 * scope-i.h - which projects an act concerns, and so whose lazy captures it waits for.
 *
 * No tree of one project names a promise of another, so a capture of a whole machine delays nobody
 * who works on something else.
 */
#pragma once

#include "base/json.h"
#include "engine/host/promises-i.h"
#include "engine/host/task-i.h"

#define SCOPE_NAMES_MAX 4

/* How the options of a verb say that. */
struct scope_rule {
	bool by_project; /* false: it concerns every project */
	bool writes;     /* in the project's directory, where captures of others may hold files */
	/* Members that are a state or a list of states. */
	const char *names[SCOPE_NAMES_MAX];
	bool beside; /* as struct promises_scope has it */
};

/*
 * promises_enter() for the project that holds the caller's directory and those of the states that are named; what these
 * are may change while it waits.  `despite`: see struct promises_scope.
 */
NODISCARD int scope_enter(struct task *task, const struct scope_rule *rule, bool despite,
			  struct json options, const struct engine_watch *watch, struct err *err);
