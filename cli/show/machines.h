/*
 * machines.h - where the commands of an experiment ran, and what travelled for that.
 */
#pragma once

#include "cli/out.h"
#include "engine/api/experiment.h"

#define MACHINES_WIDTH_MAX 20

/* The member "machine" of an arm, null for one that ran here. */
void machines_set_json(struct json j, const struct engine_arm *arm);

/* The member "on" of an experiment, null for one that runs here. */
void machines_set_fleet(struct json j, const struct engine_experiment *x);

/* Columns that the longest name takes; 0: all ran here. */
size_t machines_width(const struct engine_experiment *x);

/* The name of the machine, "-" as long as nobody has it. */
const char *machines_name(const struct engine_arm *arm);

/* A line that says what travelled; nothing if nothing did. */
void machines_print_cost(FILE *out, const struct engine_experiment *x);
