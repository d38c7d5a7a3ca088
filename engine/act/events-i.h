/*
 * events-i.h - the events that acts write (docs/reference/events.md).
 */
#pragma once

#include "cowfs/store/record.h"
#include "engine/api/artifact.h"
#include "engine/api/clone.h"
#include "engine/api/history.h"
#include "engine/api/promote.h"
#include "engine/api/rebase.h"
#include "engine/api/rollback.h"
#include "engine/host/task-i.h"
#include "engine/wire/wire-i.h"

void event_taken(const struct task *task, const struct engine_taken *t);
void event_cloned(const struct task *task, const struct engine_clones *c);

/* `why`: "asked", "expired". */
void event_removed(const struct task *task, const struct clone *c, const char *why);

/* It was saved, or is `removed`. */
void event_artifact(const struct task *task, const struct catalog_id *project,
		    const struct engine_artifact *a, bool removed);

void event_snapshot_removed(const struct task *task, const struct snapshot *s);

/* A promotion, or an undo; also one that changed nothing because of conflicts or the guard. */
void event_promoted(const struct task *task, const struct engine_promotion *p);
void event_rolled(const struct task *task, const struct engine_rolled *r);
void event_rebased(const struct task *task, const struct engine_rebased *r);

/* An act met damage in the store. */
void event_damage(const struct task *task, const char *problem);

/* A run waits for an answer. */
void event_question(const struct task *task, const struct question_ask *ask);

/* A run whose process died: nobody else can tell. */
void event_run_lost(const struct task *task, const char *run);
