#include "engine/ask/ask-hold-i.h"

#include <errno.h>

#include "base/log.h"
#include "engine/ask/ask-i.h"

void hold_done(struct hold *h)
{
	for (size_t i = 0; i < h->n; i++)
		state_done(&h->states[i]);
	control_done(&h->control);
}

static int ask_to_hold(struct engine *e, struct hold *h, enum ask_start start,
		       const struct engine_watch *watch, struct err *err)
{
	CLEANUP(ask_done) struct ask a;
	struct json answer, list;
	int r;

	ask_begin(&a, e, VERB_HOLD);
	list = json_set_array(a.options, "states");
	for (size_t i = 0; i < h->n; i++)
		json_add_name(list, h->states[i].text);
	r = ask_keeping(&a, e, start, watch, &h->control, &answer, err);
	if (r < 0)
		return r;
	list = json_get_array(answer, "states");
	for (size_t i = 0; i < h->n && r >= 0; i++)
		r = wire_get_held(json_at_object(list, i), &h->held[i]);
	if (r < 0)
		return err_set(err, -EPROTO, "the answer of cowfsd to '%s': no root", a.verb);
	return ask_end(&a, err);
}

int hold_open(struct engine *e, struct hold *h, const struct engine_watch *watch, struct err *err)
{
	struct err why = { 0 };
	bool live = ask_is_capturing(e);

	for (size_t i = 0; i < h->n; i++) {
		live |= h->states[i].kind != STATE_SNAPSHOT;
		h->held[i].root = h->states[i].snapshot.root;
		h->held[i].time = h->states[i].snapshot.created;
	}
	if (live)
		return ask_to_hold(e, h, ASK_STORE, watch, err);
	/* If the daemon cannot be asked, for instance because of its version, we read without it. */
	if (ask_to_hold(e, h, ASK_RUNNING, watch, &why) < 0 && why.code != 0)
		log_debug("not held: %s", why.msg);
	return 0;
}

int hold_ask_names(struct engine *e, const char *clone, uint64_t ms, struct control *c,
		   struct object_id *ret, struct err *err)
{
	CLEANUP(ask_done) struct ask a;
	struct held held = { 0 };
	struct json answer;
	int r;

	ask_begin(&a, e, VERB_HOLD_NAMES);
	json_set_name(a.options, "clone", clone);
	json_set_uint(a.options, "ms", ms);
	r = ask_keeping(&a, e, ASK_RUNNING, NULL, c, &answer, err);
	if (r == -ESRCH)
		return err_set(err, r, "cowfsd is gone, and with it clone '%s'", clone);
	if (r < 0)
		return r;
	r = wire_get_held(answer, &held);
	if (r < 0)
		return err_set(err, -EPROTO, "the answer of cowfsd to '%s': no root", a.verb);
	*ret = held.root;
	return ask_end(&a, err);
}
