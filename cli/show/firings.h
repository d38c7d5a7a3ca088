/*
 * firings.h - the rules of a watch and their firings, for people and for programs.
 */
#pragma once

#include "cli/out.h"
#include "engine/api/watch.h"

void firings_set(struct json j, const struct engine_firing *f);

/* A line, and another with the reason if there is one. */
void firings_print(struct invocation *inv, const struct engine_firing *f);

/* The page that one reads at breakfast: what fired, was tried, landed, waits, and what it cost. */
void firings_print_status(struct invocation *inv, const struct engine_watch_status *s);
void firings_set_status(struct json j, const struct engine_watch_status *s);

/* What a rule would do. */
void firings_print_test(struct invocation *inv, const struct engine_watch_test *t);
void firings_set_test(struct json j, const struct engine_watch_test *t);
