#include "engine/act/receive-i.h"
#include "engine/cowfsd/verbs-i.h"

static void options_done(struct engine_receive_options *o)
{
	fields_done(&wire_receive_options, o);
}

int serve_receive(struct task *task, const struct engine_watch *watch, struct json options,
		  struct json answer, struct err *err)
{
	CLEANUP(engine_received_done) struct engine_received got = { 0 };
	CLEANUP(options_done) struct engine_receive_options o = { .watch = *watch };
	int r = fields_read(options, &wire_receive_options, &o, err);

	if (r < 0)
		return r;
	return serve_fields(receive_snapshot(task, &o, &got, err), answer, &wire_received, &got);
}
