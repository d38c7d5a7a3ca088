/*
 * slurm.h - jobs of a Slurm cluster, by its own commands: sbatch, squeue and scancel.
 *
 * A job is known by its name, which no other job of this user has: a caller that was killed before
 * sbatch had reported the number finds the job by name. The user's SBATCH_ variables and the
 * cluster's rules apply.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/err.h"

#define SLURM_WORD_SIZE 64

struct slurm_job {
	const char *name;                  /* letters, digits and '-' */
	const char *partition;             /* NULL: the user's, or the cluster's */
	const char *script;                /* that a node runs, its first line "#!..." */
	const char *log;                   /* file, seen from the node: what the script says */
	uint64_t mem, cpus_milli, time_ms; /* to ask for; 0: the cluster's */
};

/* "slurm" or "slurm:PARTITION"? */
bool slurm_is_place(const char *text);
/* The partition, borrowed; NULL: none is named.  -EINVAL with a sentence if it can be none. */
NODISCARD int slurm_partition(const char *place, const char **ret, struct err *err);

/* -ENOTSUP: there is no sbatch here; -EACCES and others: what it said. */
NODISCARD int slurm_submit(const struct slurm_job *job, struct err *err);

struct slurm_state {
	char id[SLURM_WORD_SIZE];    /* "": Slurm knows no such job, or no more */
	char state[SLURM_WORD_SIZE]; /* "PENDING" */
	char why[SLURM_WORD_SIZE];   /* why it waits; "": not said */
	bool is_over;                /* it is over, or Slurm knows none */
};

/* -EAGAIN with a sentence if Slurm does not answer. */
NODISCARD int slurm_look(const char *name, struct slurm_state *ret, struct err *err);

/* All jobs of that name.  0, also if there is none. */
NODISCARD int slurm_cancel(const char *name, struct err *err);
