#include "engine/api/remote.h"
#include "engine/ask/ask-i.h"
#include "engine/find/engine-i.h"

static int receive(struct engine *e, const char *verb, const struct engine_receive_options *options,
		   struct engine_received *ret, struct err *err)
{
	CLEANUP(ask_done) struct ask a;
	struct json answer;
	int r;

	ask_begin(&a, e, verb);
	fields_set(a.options, &wire_receive_options, options);
	r = ask_daemon(&a, e, ASK_CREATE, &options->watch, &answer, err);
	return r < 0 ? r : ask_take(&a, answer, &wire_received, ret, err);
}

int engine_receive(struct engine *e, const struct engine_receive_options *options,
		   struct engine_received *ret, struct err *err)
{
	return receive(e, VERB_RECEIVE, options, ret, err);
}

int engine_receive_lazily(struct engine *e, const struct engine_receive_options *options,
			  struct engine_received *ret, struct err *err)
{
	return receive(e, VERB_RECEIVE_LAZILY, options, ret, err);
}
