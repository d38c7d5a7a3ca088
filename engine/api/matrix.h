/*
 * matrix.h - a matrix: the same arms with each combination of some values.
 *
 * An axis is a variable with the values it takes.  Each arm becomes one for each combination, with the axes
 * in its environment and their values in its name: "cc=gcc,opt=O1".
 */
#pragma once

#include "base/strlist.h"
#include "engine/api/experiment.h"

#define ENGINE_AXES_MAX 8

struct engine_axis {
	char *name; /* owned */
	struct strlist values;
};

struct engine_matrix {
	struct engine_axis axes[ENGINE_AXES_MAX];
	size_t n;
	struct strlist
	    *without; /* owned; NAME=VALUE: a combination that has all of these is left out */
	size_t n_without;
};

void engine_matrix_done(struct engine_matrix *m);

/* Add an axis, or a value to the last one, or a combination to leave out.  -EINVAL with a sentence. */
NODISCARD int engine_matrix_axis(struct engine_matrix *m, const char *name, struct err *err);
NODISCARD int engine_matrix_value(struct engine_matrix *m, const char *value, struct err *err);
NODISCARD int engine_matrix_without(struct engine_matrix *m, const struct strlist *pairs,
				    struct err *err);

/* The same as texts: "cc=gcc,clang", and "cc=gcc,opt=O1" to leave out. */
NODISCARD int engine_matrix_add(struct engine_matrix *m, const char *text, struct err *err);
NODISCARD int engine_matrix_exclude(struct engine_matrix *m, const char *text, struct err *err);

/* Multiply the arms of *x; one whose name is "" gets that of the combination alone.  -EINVAL. */
NODISCARD int engine_matrix_apply(const struct engine_matrix *m, struct engine_experiment *x,
				  struct err *err);
