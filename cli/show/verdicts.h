/*
 * verdicts.h - the rules of the policy that were consulted: for `policy explain` and `watch test`.
 */
#pragma once

#include "base/json.h"
#include "cli/cmd.h"
#include "engine/api/policy.h"

/* A line for each rule up to the one that fits, of each file. */
void verdicts_print_steps(const struct invocation *inv, const struct engine_verdict *v);

/* The same as objects of an array. */
void verdicts_set_steps(struct json list, const struct engine_verdict *v);
