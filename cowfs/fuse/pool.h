/*
 * pool.h - private to fuse/: threads for work that may have to wait.
 *
 * Two lanes, so that neither starves the other: short jobs read something and are done;
 * patient ones may wait for as long as a disk is slow.  However many patient ones wait, a
 * short one finds a thread.  Threads come with the work, up to a bound, and go
 * after some idle seconds.  Jobs of a lane start in the order in which they were added.
 */
#pragma once

#include "base/attr.h"
#include "base/cleanup.h"
#include "base/err.h"

enum pool_lane { POOL_SHORT, POOL_PATIENT, POOL_LANES };

struct job {
	struct job *next;           /* private */
	void (*run)(struct job *j); /* may free the job */
};

struct pool;

NODISCARD int pool_new(struct pool **ret, struct err *err);
void pool_free(struct pool *p); /* runs what was added, then ends; NULL is fine */
DEFINE_CLEANUP(struct pool *, pool_free)

void pool_add(struct pool *p, enum pool_lane lane, struct job *j);
