#include "engine/api/remote.h"
#include "engine/ask/ask-i.h"
#include "engine/find/engine-i.h"

static int receive(struct engine *e, const char *verb, const struct engine_receive_options *options,
		   struct control *c, struct engine_received *ret, struct err *err)
{
	CLEANUP(ask_done) struct ask a;
	struct json answer;
	int r;

	ask_begin(&a, e, verb);
	fields_set(a.options, &wire_receive_options, options);
	r = ask_keeping(&a, e, ASK_CREATE, &options->watch, c, &answer, err);
	return r < 0 ? r : ask_take(&a, answer, &wire_received, ret, err);
}

int engine_receive(struct engine *e, const struct engine_receive_options *options,
		   struct engine_received *ret, struct err *err)
{
	CLEANUP(control_done) struct control c = CONTROL_INIT;

	return receive(e, VERB_RECEIVE, options, &c, ret, err);
}

int engine_receive_lazily(struct engine *e, const struct engine_receive_options *options,
			  struct engine_received *ret, int *ret_hold, struct err *err)
{
	CLEANUP(control_done) struct control c = CONTROL_INIT;
	int r = receive(e, VERB_RECEIVE_LAZILY, options, &c, ret, err);

	if (r == 0)
		*ret_hold = TAKE_FD(c.fd);
	return r;
}
