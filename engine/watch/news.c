/*
 * The news of a firing: how its action ended or, if that was shipped, the fate of the change. The
 * firing records the last report before it is made. So nothing is reported twice, whichever process
 * dies.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "engine/pipeline/pipeline-i.h"
#include "engine/watch/action-i.h"

#define TOLD_BEFORE "?" /* by a version that did not write down what */

static void news_done(struct news *n)
{
	free(n->why);
	free(n->key);
	*n = (struct news){ 0 };
}

static const struct engine_change *change_of(const struct engine_firing *f,
					     const struct engine_changes *all)
{
	return *f->change != '\0' ? VEC_FIND(it, all->list, all->n, strcmp(it->id, f->change) == 0)
				  : NULL;
}

/* --- words --------------------------------------------------------------------------------- */

static const struct engine_passed *last_passed(const struct engine_change *c)
{
	return c->n_passed > 0 ? &c->passed[c->n_passed - 1] : NULL;
}

/* Where it stands still, or NULL while it moves: the next look finds where it came to. */
static const char *standing(const struct engine_change *c)
{
	switch (c->state) {
	case ENGINE_CHANGE_WAITING:
		return c->approved_by ? NULL : "waiting";
	case ENGINE_CHANGE_READY:
		return c->to && change_passed(c, c->to) ? "shipped" : NULL;
	case ENGINE_CHANGE_LANDING:
	case ENGINE_CHANGE_UNDOING:
		return NULL;
	case ENGINE_CHANGE_SOAKING:
	case ENGINE_CHANGE_HELD:
	case ENGINE_CHANGE_SHIPPED:
	case ENGINE_CHANGE_REJECTED:
	case ENGINE_CHANGE_SICK:
		break;
	}
	return engine_change_state_name(c->state);
}

static int add_landed(struct buf *b, const struct engine_passed *p)
{
	return p ? buf_printf(b, "it %s stage '%s'", p->target ? "landed on" : "passed", p->stage)
		 : 0;
}

static int add_approvers(struct buf *b, const struct engine_change *c)
{
	int r = 0;

	if (c->n_approvers == 0)
		return buf_append_str(b, "the owner of the store");
	for (size_t i = 0; i < c->n_approvers && r >= 0; i++)
		r = buf_printf(b, "%s'%s'", i > 0 ? " or " : "", c->approvers[i]);
	return r;
}

static int say_waiting(struct buf *b, const struct engine_change *c)
{
	const struct engine_passed *last = last_passed(c);
	int r = add_landed(b, last);

	if (r < 0)
		return r;
	r = buf_printf(b, "%s stage '%s' waits for ", last ? ", and" : "its", c->stage);
	if (r < 0)
		return r;
	r = add_approvers(b, c);
	return r < 0 ? r
		     : buf_printf(b, "%s%s (snap approve %.8s)", c->why ? ": " : "",
				  c->why ? c->why : "", c->id);
}

static int say_held(struct buf *b, const struct engine_change *c)
{
	const struct engine_passed *last = last_passed(c);
	int r = add_landed(b, last);

	return r < 0 ? r
		     : buf_printf(b, "%s is held at stage '%s': %s", last ? ", and" : "it",
				  c->stage ? c->stage : "", c->why ? c->why : "nobody knows why");
}

static int say_sick(struct buf *b, const struct engine_change *c)
{
	bool first = true;
	int r = buf_append_str(b, c->why ? c->why : "it was not healthy");

	for (size_t i = c->n_passed; i-- > 0 && r >= 0;) {
		if (!c->passed[i].undone)
			continue;
		r = buf_printf(b, "%s stage '%s'", first ? "; taken back from" : " and",
			       c->passed[i].stage);
		first = false;
	}
	return r;
}

static int say(struct buf *b, const struct engine_change *c)
{
	int r;

	switch (c->state) {
	case ENGINE_CHANGE_WAITING:
		return say_waiting(b, c);
	case ENGINE_CHANGE_HELD:
		return say_held(b, c);
	case ENGINE_CHANGE_SICK:
		return say_sick(b, c);
	case ENGINE_CHANGE_SOAKING:
		r = add_landed(b, last_passed(c));
		return r < 0 ? r : buf_append_str(b, " and is watched there");
	case ENGINE_CHANGE_REJECTED:
		return buf_append_str(b, c->why ? c->why : "rejected");
	case ENGINE_CHANGE_SHIPPED:
	case ENGINE_CHANGE_READY:
	case ENGINE_CHANGE_LANDING:
	case ENGINE_CHANGE_UNDOING:
		break;
	}
	return add_landed(b, last_passed(c));
}

/* --- news ---------------------------------------------------------------------------------- */

static const char *stage_of(const struct engine_change *c)
{
	const struct engine_passed *last = last_passed(c);

	if (c->state == ENGINE_CHANGE_WAITING || c->state == ENGINE_CHANGE_HELD)
		return c->stage;
	return last ? last->stage : c->stage;
}

static bool was_told(const struct engine_firing *f, const char *key)
{
	return f->told && strcmp(f->told, key) == 0;
}

static int of_change(const struct engine_firing *f, const struct engine_change *c, struct news *ret,
		     struct err *err)
{
	CLEANUP(buf_done) struct buf why = BUF_INIT;
	int r;

	ret->result = standing(c);
	if (!ret->result)
		return 0;
	ret->stage = stage_of(c);
	r = text_set(&ret->key, err, "%s %s %s", ret->result, ret->stage ? ret->stage : "",
		     c->why ? c->why : "");
	if (r < 0 || was_told(f, ret->key))
		return r;
	if (say(&why, c) < 0)
		return err_nomem(err);
	r = text_set(&ret->why, err, "%.*s", (int)why.len, why.data ? (char *)why.data : "");
	return r < 0 ? r : 1;
}

/* 1 if there is something that was not told of the firing; *ret borrows from it and its change. */
static int news_find(const struct engine_firing *f, const struct engine_changes *all,
		     struct news *ret, struct err *err)
{
	const struct engine_change *c = change_of(f, all);
	int r;

	if (f->state != ENGINE_FIRING_DONE || !f->result)
		return 0;
	if (c)
		return of_change(f, c, ret, err);
	/* A change that is gone has no news. */
	if (*f->change != '\0' || f->told)
		return 0;
	ret->result = f->result;
	r = text_copy(&ret->key, f->result, err);
	if (r >= 0)
		r = text_copy(&ret->why, f->why, err);
	return r < 0 ? r : 1;
}

int news_is_due(const struct engine_firings *firings, const struct engine_changes *all,
		struct err *err)
{
	int r = 0;

	for (size_t i = 0; i < firings->n && r == 0; i++) {
		CLEANUP(news_done) struct news n = { 0 };

		r = firings->list[i].alive ? 0 : news_find(&firings->list[i], all, &n, err);
	}
	return r;
}

/* The same failure as the one before it is nothing new, nor is what changed nothing or was not to begin. */
static bool is_worth_it(struct engine *e, const struct engine_firing *f)
{
	CLEANUP(engine_firings_done) struct engine_firings all = { 0 };
	struct err ignored = { 0 };

	if (strcmp(f->result, "nothing") == 0 || strcmp(f->result, "dropped") == 0)
		return false;
	/* The signature may be that of an attempt before the one that was shipped. */
	if (*f->change != '\0')
		return true;
	if (*f->signature == '\0' || engine_watch_log(e, &all, &ignored) < 0)
		return true;
	for (size_t i = 0; i < all.n; i++) {
		const struct engine_firing *o = &all.list[i];

		if (strcmp(o->rule, f->rule) == 0 && strcmp(o->id, f->id) != 0 &&
		    o->state == ENGINE_FIRING_DONE && o->created <= f->created)
			return strcmp(o->signature, f->signature) != 0;
	}
	return true;
}

int action_tell(struct engine *e, const struct docket_lock *lock, struct engine_firing *f,
		const struct engine_rules_of_watch *rules, struct err *err)
{
	CLEANUP(engine_changes_done) struct engine_changes all = { 0 };
	CLEANUP(news_done) struct news n = { 0 };
	bool silent = f->told && strcmp(f->told, TOLD_BEFORE) == 0;
	int r = *f->change == '\0' ? 0 : changes_alone(e, &all, err);

	if (r < 0)
		return r;
	r = news_find(f, &all, &n, err);
	if (r <= 0)
		return r;
	/* Before it is done: at most once. */
	r = text_set(&f->told, err, "%s", n.key);
	if (r < 0)
		return r;
	r = firing_save(e, lock, f, NULL, err);
	if (r < 0)
		return r;
	silent |= !rules->notify && !rules->notify_post && !rules->notify_desktop;
	return silent || !is_worth_it(e, f) ? 0 : notify(f, &n, rules, err);
}

static int announce_firing(struct engine *e, const char *id,
			   const struct engine_rules_of_watch *rules, struct err *err)
{
	CLEANUP(docket_lock_done) struct docket_lock lock = DOCKET_LOCK_INIT;
	CLEANUP(engine_firing_done) struct engine_firing f = { 0 };
	int r = docket_take(e, &firing_kind, id, &lock, err);

	if (r >= 0)
		r = firing_load(e, id, &lock, &f, err);
	if (r == -ENOENT)
		return 0;
	return r < 0 ? r : action_tell(e, &lock, &f, rules, err);
}

/* One that fails keeps nobody from hearing of the others. */
int news_tell(struct engine *e, const struct engine_firings *firings,
	      const struct engine_changes *all, struct err *err)
{
	CLEANUP(engine_watch_rules_done) struct engine_rules_of_watch rules = { 0 };
	int failed = 0, r = engine_watch_rules(e, &rules, err);

	if (r == -ENOENT)
		r = 0;
	for (size_t i = firings->n; r >= 0 && i-- > 0;) {
		const struct engine_firing *f = &firings->list[i];
		CLEANUP(news_done) struct news n = { 0 };
		struct err problem = { 0 };
		int one = f->alive ? 0 : news_find(f, all, &n, &problem);

		if (one > 0)
			one = announce_firing(e, f->id, &rules, &problem);
		if (one < 0 && (failed == 0 || failed == -EBUSY))
			failed = err_set(err, one, "telling of firing %s: %s", f->id, problem.msg);
	}
	return r < 0 ? r : failed;
}
