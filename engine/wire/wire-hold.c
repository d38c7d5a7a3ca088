#include <errno.h>
#include <string.h>

#include "base/hex.h"
#include "base/log.h"
#include "engine/act/hold-i.h"
#include "engine/wire/wire-i.h"

void hold_done(struct hold *h)
{
	for (size_t i = 0; i < h->n; i++)
		state_done(&h->states[i]);
	control_done(&h->control);
}

static int get_held(struct json j, struct held *ret)
{
	const char *root = json_get_text(j, "root");

	ret->time = json_get_int(j, "time");
	return root ? hex_decode(root, strlen(root), ret->root.b, sizeof(ret->root.b)) : 0;
}

static int ask_to_hold(struct engine *e, struct hold *h, enum ask_start start,
		       const struct engine_watch *watch, struct err *err)
{
	CLEANUP(ask_done) struct ask a;
	struct json answer, list;
	int r;

	ask_begin(&a, e, wire_hold.name);
	list = json_set_array(a.options, "states");
	for (size_t i = 0; i < h->n; i++)
		json_add_name(list, h->states[i].text);
	r = ask_keeping(&a, e, start, watch, &h->control, &answer, err);
	if (r < 0)
		return r;
	list = json_get_array(answer, "states");
	for (size_t i = 0; i < h->n && r >= 0; i++)
		r = get_held(json_at_object(list, i), &h->held[i]);
	if (r < 0)
		return err_set(err, -EPROTO, "the answer of cowfsd to '%s': no root", a.verb);
	return ask_end(&a, err);
}

int hold_open(struct engine *e, struct hold *h, const struct engine_watch *watch, struct err *err)
{
	struct err why = { 0 };
	bool live = false;

	for (size_t i = 0; i < h->n; i++) {
		live |= h->states[i].kind != STATE_SNAPSHOT;
		h->held[i].root = h->states[i].snapshot.root;
		h->held[i].time = h->states[i].snapshot.created;
	}
	if (live)
		return ask_to_hold(e, h, ASK_STORE, watch, err);
	/* One that cannot be asked, as one of another version, is no reason not to look. */
	if (ask_to_hold(e, h, ASK_RUNNING, watch, &why) < 0 && why.code != 0)
		log_debug("not held: %s", why.msg);
	return 0;
}

static int serve_hold(struct engine *e, const struct engine_watch *watch, struct json options,
		      struct json answer, struct err *err)
{
	const struct json texts = json_get_array(options, "states");
	const struct json list = json_set_array(answer, "states");
	const size_t n = json_length(texts);
	char hex[OBJECT_HEX_SIZE];
	struct held held;
	int r = 0;

	if (n > HOLD_MAX)
		return err_set(err, -EINVAL, "too many states");
	for (size_t i = 0; i < n && r >= 0; i++) {
		AUTO_FREE char *text = json_at_name(texts, i);
		struct json j;

		r = json_end(options.doc, err);
		if (r >= 0)
			r = hold_state(e, text, watch, &held, err);
		if (r < 0)
			return r;
		j = json_add_object(list);
		json_set_text(j, "root", object_id_hex(&held.root, hex));
		json_set_int(j, "time", held.time);
	}
	return json_end(options.doc, err);
}

const struct wire_verb wire_hold = { "hold", serve_hold };
