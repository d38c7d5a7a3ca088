/*
 * pool.h - private to fuse/: threads for work that may have to wait.
 *
 * Two lanes, so that neither starves the other: short jobs only read; patient jobs may wait as long
 * as a disk is slow. However many patient jobs wait, a short one finds a thread. Threads start with
 * the work, up to a bound, and end after some idle seconds.
 *
 * A member, usually a mount, adds jobs. The jobs of one member start in the order in which they
 * were added; members take turns. One member has at most half of the threads for patient jobs, and
 * whatever the others do, each may have one job of each lane in progress.
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
struct pool_member;

NODISCARD int pool_new(struct pool **ret, struct err *err);
void pool_free(struct pool *p); /* runs what was added, then ends; NULL is fine */
DEFINE_CLEANUP(struct pool *, pool_free)

NODISCARD int pool_join(struct pool *p, struct pool_member **ret); /* -ENOMEM */
void pool_leave(struct pool_member *m); /* what it added is run all the same; NULL is fine */

void pool_add(struct pool_member *m, enum pool_lane lane, struct job *j);
