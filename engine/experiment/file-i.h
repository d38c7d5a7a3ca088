/*
 * file-i.h - an experiment that a file plans: its text, and what a project's file may not ask for.
 */
#pragma once

#include "base/yaml.h"
#include "engine/api/experiment.h"
#include "engine/api/matrix.h"

/* All keys of a file, in the order of the tables in file-read.c. */
enum file_key {
	FILE_DESCRIPTION,
	FILE_BASE,
	FILE_PROFILE,
	FILE_NET,
	FILE_ENV,
	FILE_PASS_ENV,
	FILE_RO,
	FILE_ARMS,
	FILE_RUN,
	FILE_MATRIX,
	FILE_EXCLUDE,
	FILE_CHECKS,
	FILE_SCORE,
	FILE_BETTER,
	FILE_ROUNDS,
	FILE_REPEAT,
	FILE_JOBS,
	FILE_FIRST_PASS,
	FILE_STOP_AFTER,
	FILE_STOP_LOSERS,
	FILE_KEEP,
	FILE_WITHIN,
	FILE_LIMITS,
	FILE_ALL,
	FILE_PROMOTE,
	FILE_ALLOW,
	FILE_ALLOW_MISSING,
	FILE_ON,
	FILE_REMOTE,
	FILE_LABELS,
	FILE_CREDS,
	FILE_N_KEYS,
};

enum file_limit { FILE_MEM, FILE_PIDS, FILE_TIME, FILE_DISK, FILE_N_LIMITS };

struct file_place {
	int line, column; /* 0: the file does not set it */
};

struct file_source;

struct file_arm {
	struct file_place at;
	struct file_source *inner; /* owned; of what is planned inside of it here; NULL: nothing */
};

struct file_source {
	const char *shown; /* the file's name for error messages */
	size_t level;      /* 0: of the whole; else inside of so many arms */
	struct file_place said[FILE_N_KEYS];
	struct file_place limits[FILE_N_LIMITS];
	struct engine_matrix matrix;
	struct file_arm *arms; /* owned; one for each arm of *x, until the matrix is applied */
	size_t n_arms;
};

void file_source_done(struct file_source *src);

const char *file_key_name(enum file_key key);
const char *file_limit_name(enum file_limit limit);

/* Fill *x, which is initialized, from the text.  Matrices are not applied yet. */
NODISCARD int file_read(struct file_source *src, const char *text, size_t len,
			struct engine_experiment *x, struct err *err);

/* The same from a part of a text. */
NODISCARD int file_read_plan(struct file_source *src, struct yaml plan, struct engine_experiment *x,
			     struct err *err);

/* Read the files that plan what is inside of arms.  `profile` is that of all arms, NULL: the default. */
NODISCARD int file_read_inside(struct engine *e, struct engine_experiment *x, const char *profile,
			       struct err *err);

/* -EINVAL with "FILE:LINE:COLUMN: ...". */
NODISCARD int file_complain(const struct file_source *src, struct yaml at, struct err *err,
			    const char *fmt, ...) PRINTF_LIKE(4, 5);

/* --- file-arms.c ---------------------------------------------------------------------------- */

/* The keys 'arms' and 'run'; and 'matrix', which comes before 'exclude'. */
NODISCARD int file_read_arms(struct file_source *src, struct yaml v, struct engine_experiment *x,
			     struct err *err);
NODISCARD int file_read_run(struct file_source *src, struct yaml v, struct engine_experiment *x,
			    struct err *err);
NODISCARD int file_read_matrix(struct file_source *src, struct yaml v, struct err *err);
NODISCARD int file_read_exclude(struct file_source *src, struct yaml v, struct err *err);

/* "NAME=VALUE" of each pair, for arm or experiment. */
NODISCARD int file_read_env(const struct file_source *src, struct yaml v, const char *where,
			    char ***ret, size_t *ret_n, struct err *err);
