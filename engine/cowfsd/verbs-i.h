/*
 * verbs-i.h - cowfsd's verbs: each reads its options, acts, and describes the result in `answer`.
 */
#pragma once

#include "base/json.h"
#include "engine/act/acts-i.h"
#include "engine/host/task-i.h"
#include "engine/wire/wire-i.h"

typedef int serve_fn(struct task *task, const struct engine_watch *watch, struct json options,
		     struct json answer, struct err *err);

/* Describe `from` in the answer, unless `r` is a failure; returns `r`. */
static inline int serve_fields(int r, struct json answer, const struct fields *f, const void *from)
{
	if (r < 0)
		return r;
	fields_set(answer, f, from);
	return r;
}

/* serve-allow.c */
serve_fn serve_allow;

/* serve-artifact.c */
serve_fn serve_artifact, serve_remove_artifact;

/* serve-clone.c */
serve_fn serve_clone, serve_announce, serve_list, serve_status, serve_since, serve_remove,
    serve_mount, serve_umount;

/* serve-echo.c */
serve_fn serve_echo;

/* serve-history.c */
serve_fn serve_take, serve_tag, serve_remove_snapshot, serve_project;

/* serve-hold.c */
serve_fn serve_hold, serve_hold_names;

/* serve-image.c */
serve_fn serve_import, serve_remove_image;

/* serve-merge.c */
serve_fn serve_merge, serve_overlaps, serve_promote, serve_rebase, serve_resolve, serve_rollback;

/* serve-metrics.c */
serve_fn serve_metrics;

/* serve-question.c */
serve_fn serve_question, serve_questions, serve_answer;

/* serve-remote.c */
serve_fn serve_receive, serve_receive_lazily, serve_supply;
/* serve-stage.c */
serve_fn serve_stage, serve_stage_root, serve_stage_hide, serve_stage_end, serve_stage_settle,
    serve_stage_stay;

/* serve-upkeep.c */
serve_fn serve_gc, serve_check, serve_settle;
