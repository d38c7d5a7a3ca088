/*
 * task-i.h - one request that cowfsd answers, or one thing that it does by itself.
 *
 * A task has an engine, as the command line does, so everything in engine/find works for both;
 * state that only cowfsd has is beside it. An act takes a task, so the command line cannot call
 * one, and a verb of the command line cannot be handed a task.
 */
#pragma once

#include "engine/find/engine-i.h"

struct host;
struct kept;

/* Borrows all that it has. */
struct task {
	struct engine engine;
	struct host *host;  /* what cowfsd owns */
	struct kept **kept; /* stays until the caller disconnects (keep-i.h); NULL: no caller */
	int *given;         /* the descriptor that came with the question, to be taken; -1: none */
	bool (*left)(void *ctx); /* has the caller disconnected?  NULL: no caller */
	void *left_ctx;
};

/* For what cowfsd does of its own accord, without a caller. */
struct task task_of(struct host *h);

/*
 * May the files below `path` be read and written for this caller?  -ECANCELED if they are cowfsd's
 * own (host_may_read()), -EPERM if the caller sees another directory there.
 */
NODISCARD int task_may_read(const struct task *task, const char *path, struct err *err);

/*
 * Does the caller still wait?  -ECONNABORTED if not.  Ask before a commit that others will see, so
 * that nothing appears that nobody wants any more.
 */
NODISCARD int task_wanted(const struct task *task, struct err *err);
