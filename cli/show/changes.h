/*
 * changes.h - changes on their way through stages, for people and for programs.
 */
#pragma once

#include "cli/out.h"
#include "engine/api/pipeline.h"

/* Where it stands, what it waits for, and what to type next. */
void changes_print(struct invocation *inv, const struct engine_change *c);
void changes_print_list(struct invocation *inv, const struct engine_changes *l);
/* One of somebody else's store, which waits for this user and can be decided about at that address. */
void changes_print_asked(struct invocation *inv, const struct engine_change *c, const char *at);
void changes_set(struct json j, const struct engine_change *c);

/* The exit code of a command that took it as far as it may go. */
int changes_exit(const struct engine_change *c);
