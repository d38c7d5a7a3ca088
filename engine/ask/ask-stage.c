#include "engine/ask/ask-stage-i.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/via.h"
#include "engine/find/engine-i.h"

/* Only a command that captures the project may create the store. */
static int may_begin(struct engine *e, const struct stage_options *o, enum ask_start *ret,
		     struct err *err)
{
	CLEANUP(project_done) struct project unused = { 0 };

	*ret = o->clone ? ASK_STORE : ASK_CREATE;
	return o->clone || engine_has_store(e) ? 0 : project_choose(e, NULL, o->root, &unused, err);
}

void stage_asking_done(struct stage_asking *a)
{
	ask_done(&a->ask);
	*a = (struct stage_asking){ 0 };
}

void stage_ask_ahead(struct engine *e, const struct stage_options *o, struct control *c,
		     struct stage_asking *asking)
{
	struct ask *a = &asking->ask;
	struct stage_options with = *o;

	with.via = via_find();
	ask_begin(a, e, VERB_STAGE);
	fields_set(a->options, &wire_stage_options, &with);
	asking->sent = ask_ahead(a, e, &o->watch, c);
}

int stage_ask(struct engine *e, const struct stage_options *o, struct stage_asking *asking,
	      struct control *c, struct stage *ret, struct err *err)
{
	struct ask *a = &asking->ask;
	enum ask_start start;
	struct json answer;
	int r = -ESHUTDOWN;

	if (asking->sent)
		r = ask_hear(a, e, c, &o->watch, &answer, err);
	if (r == -ESHUTDOWN)
		r = ask_keeping(a, e, ASK_RUNNING, &o->watch, c, &answer, err);
	if (r == -ESRCH) {
		r = may_begin(e, o, &start, err);
		if (r < 0)
			return r;
		r = ask_keeping(a, e, start, &o->watch, c, &answer, err);
	}
	return r < 0 ? r : ask_take(a, answer, &wire_stage, ret, err);
}

static void set_numbers(struct json j, const char *key, const uint64_t *list, size_t n)
{
	const struct json hidden = json_set_array(j, key);
	char text[24];

	for (size_t i = 0; i < n; i++) {
		snprintf(text, sizeof(text), "%" PRIu64, list[i]);
		json_add_text(hidden, text);
	}
}

int stage_ask_hide(struct engine *e, const char *clone, const struct hidden *more, struct err *err)
{
	CLEANUP(ask_done) struct ask a = { 0 };
	int r;

	ask_begin(&a, e, VERB_STAGE_HIDE);
	json_set_name(a.options, "clone", clone);
	set_numbers(a.options, "hidden", more->numbers.list, more->numbers.n);
	set_numbers(a.options, "dirs", more->dirs.list, more->dirs.n);
	r = ask_for(&a, e, ASK_RUNNING, NULL, NULL, NULL, err);
	return r == -ESRCH ? err_set(err, r, "cowfsd is gone, and with it clone '%s'", clone) : r;
}

int stage_ask_root(struct engine *e, struct control *c, int fd, const struct stage_root *how,
		   struct err *err)
{
	CLEANUP(ask_done) struct ask a = { 0 };
	const uint32_t *one = how->one;
	struct json answer;
	int r;

	ask_begin(&a, e, VERB_STAGE_ROOT);
	json_set_bool(a.options, "one_id", one);
	json_set_uint(a.options, "uid", one ? one[0] : 0);
	json_set_uint(a.options, "gid", one ? one[1] : 0);
	set_numbers(a.options, "hidden", how->hidden, how->n_hidden);
	r = ask_giving(&a, e, c, fd, &answer, err);
	return r < 0 ? r : ask_end(&a, err);
}

int stage_ask_end(struct engine *e, struct control *c, struct stage_end *ret, struct err *err)
{
	CLEANUP(ask_done) struct ask a = { 0 };
	struct json answer;
	int r;

	ask_begin(&a, e, VERB_STAGE_END);
	r = ask_again(&a, e, c, &answer, err);
	return r < 0 ? r : ask_take(&a, answer, &wire_stage_end, ret, err);
}

int stage_ask_settle(struct engine *e, struct control *c, bool keep, struct err *err)
{
	CLEANUP(ask_done) struct ask a = { 0 };
	struct json answer;
	int r;

	ask_begin(&a, e, VERB_STAGE_SETTLE);
	json_set_bool(a.options, "keep", keep);
	r = ask_again(&a, e, c, &answer, err);
	return r < 0 ? r : ask_end(&a, err);
}

int stage_ask_stay(struct engine *e, const char *clone, struct err *err)
{
	CLEANUP(ask_done) struct ask a = { 0 };

	ask_begin(&a, e, VERB_STAGE_STAY);
	json_set_name(a.options, "clone", clone);
	return ask_for(&a, e, ASK_STORE, NULL, NULL, NULL, err);
}
