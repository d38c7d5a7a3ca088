/*
 * The two clones of an arm: its own, and the one that checks and scores run on. The state names a
 * clone before it is made, so that one whose maker died is found. Each has the number of the
 * experiment from the moment it exists, so ownership is never a guess: a clone of such a name
 * without the number is somebody else's.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/text.h"
#include "base/via.h"
#include "engine/api/service.h"
#include "engine/experiment/experiment-i.h"

bool arm_is_death(int r)
{
	return r == -ECONNRESET || r == -EIO || r == -EPIPE;
}

/* Is it gone now, or was it not ours? */
static bool remove_clone(struct work *w, const char *name)
{
	struct err *stuck = &work_whole(w)->stuck;
	struct engine_removed removed;
	struct err err = { 0 };
	int r = engine_owns_clone(w->engine, name, w->x->owner, &err);
	const bool ours = r > 0;

	if (r == 0)
		return true;
	if (ours)
		r = engine_remove(w->engine, name, true, &removed, &err);
	/* Nobody comes back for it: the next cowfsd has to. */
	if (ours && arm_is_death(r))
		r = engine_remove(w->engine, name, true, &removed, &err);
	if (r >= 0 || r == -ENOENT)
		return true;
	log_warn("removing clone '%s': %s, continuing", name, err.msg);
	if (stuck->code == 0)
		err_set(stuck, r, "clone '%s' could not be removed: %s", name, err.msg);
	return false;
}

/* Arms that will ask for a clone of the state of the experiment; the one at hand is under way. */
static uint64_t count_waiting(const struct work *w)
{
	uint64_t n = 0;

	for (size_t i = 0; i < w->x->n_arms; i++)
		n += w->x->arms[i].state == ENGINE_ARM_WAITING && !w->x->arms[i].from &&
		     !w->x->arms[i].after;
	return n;
}

/* The first one may take as long as the project is large, and a signal ends that, too. */
static int ask_for_clone(struct work *w, const struct engine_clone_options *options,
			 struct engine_clones *made, struct err *err)
{
	int r;

	w->engine->stop_fd = w->stop_fd;
	r = engine_clone(w->engine, options, made, err);
	w->engine->stop_fd = 0;
	return r;
}

/* `alone`: of a state that nobody else starts from. */
static int make_clone(struct work *w, const char *name, const char *from, bool alone,
		      char ret_base[ENGINE_ID_SIZE], struct err *err)
{
	char via[VIA_MAX + 1];
	const struct engine_clone_options options = {
		.name = name,
		.from = from,
		.count = 1,
		.via = via,
		.owner = w->x->owner,
		.expect = alone ? 0 : count_waiting(w),
		.last = alone,
		.watch = w->options->watch,
	};
	CLEANUP(engine_clones_done) struct engine_clones made = { 0 };
	int r;

	snprintf(via, sizeof(via), "experiment:%s", w->x->name);
	r = ask_for_clone(w, &options, &made, err);
	/* One that cowfsd finished making after its asker had died. */
	if (r == -EEXIST && engine_owns_clone(w->engine, name, w->x->owner, NULL) != 0) {
		if (!remove_clone(w, name))
			return err_set(err, -EBUSY, "clone '%s' could not be removed", name);
		r = ask_for_clone(w, &options, &made, err);
	}
	if (r < 0)
		return r;
	if (ret_base)
		memcpy(ret_base, made.list[0].base, ENGINE_ID_SIZE);
	return 0;
}

static void forget_judge(struct engine_arm *arm)
{
	free(arm->judge);
	arm->judge = NULL;
}

/* One that could not be removed stays named, so that it is tried again. */
static void release_own(struct work *w, struct engine_arm *arm, bool judge)
{
	if (arm->judge && remove_clone(w, arm->judge))
		forget_judge(arm);
	if (!judge && arm->has_clone && remove_clone(w, arm->clone))
		arm->has_clone = false;
}

void arm_release(struct work *w, struct engine_arm *arm, bool judge)
{
	release_own(w, arm, judge);
	if (!judge)
		inner_release(w, arm);
}

void inner_release(struct work *w, struct engine_arm *arm)
{
	for (size_t i = 0; arm->n_inner > 0 && i < arm->inner->n_arms; i++) {
		struct work inside = inner_work(w, arm);

		arm_release(&inside, &arm->inner->arms[i], false);
	}
}

const char *arm_start(const struct work *w, const struct engine_arm *arm)
{
	return arm->from ? arm->from : *w->x->base != '\0' ? w->x->base : w->x->from;
}

const char *arm_left(const struct work *w, const struct engine_arm *arm)
{
	return *arm->result != '\0' ? arm->result : arm_start(w, arm);
}

void arm_note_daemon(struct work *w, struct engine_arm *arm)
{
	struct engine_service s;
	bool started;

	arm->cowfsd = engine_start(w->engine, &s, &started, NULL) < 0 ? 0 : s.began;
}

/* What is not synced dies with its cowfsd, and nothing in the clone shows that. */
bool arm_lost_daemon(struct work *w, const struct engine_arm *arm)
{
	struct engine_service s;

	return engine_service(w->engine, &s, NULL) < 0 || s.began != arm->cowfsd || s.began == 0;
}

static int make_own(struct work *w, struct engine_arm *arm, const char *from, bool alone,
		    char ret_base[ENGINE_ID_SIZE], struct err *err)
{
	int r;

	release_own(w, arm, false);
	if (arm->has_clone)
		return err_set(err, -EBUSY, "clone '%s' could not be removed", arm->clone);
	arm->has_clone = true;
	arm_note_daemon(w, arm);
	r = work_save(w, NULL, err);
	if (r < 0)
		return r;
	r = make_clone(w, arm->clone, from, alone, ret_base, err);
	if (r == -EEXIST)
		arm->has_clone = false;
	return r;
}

int arm_make_clone(struct work *w, struct engine_arm *arm, char ret_base[ENGINE_ID_SIZE],
		   struct err *err)
{
	return make_own(w, arm, arm_start(w, arm), arm->from != NULL, ret_base, err);
}

int arm_remake_clone(struct work *w, struct engine_arm *arm, const char *from, struct err *err)
{
	return make_own(w, arm, from, true, NULL, err);
}

int arm_make_judge(struct work *w, struct engine_arm *arm, struct err *err)
{
	int r;

	arm_release(w, arm, true);
	if (arm->judge)
		return err_set(err, -EBUSY, "clone '%s' could not be removed", arm->judge);
	arm->judge = text_format("%s" JUDGE_SUFFIX, arm->clone);
	if (!arm->judge)
		return err_nomem(err);
	arm_note_daemon(w, arm);
	r = work_save(w, NULL, err);
	if (r < 0)
		return r;
	r = make_clone(w, arm->judge, arm_left(w, arm), true, NULL, err);
	if (r == -EEXIST)
		forget_judge(arm);
	return r;
}
