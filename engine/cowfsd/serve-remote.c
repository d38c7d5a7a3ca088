#include "engine/act/receive-i.h"
#include "engine/cowfsd/verbs-i.h"
#include "engine/host/host-i.h"
#include "engine/host/promises-i.h"

static DEFINE_FIELDS_DONE(options_done, struct engine_receive_options, wire_receive_options)

typedef int receive_fn(struct task *task, const struct engine_receive_options *options,
		       struct engine_received *ret, struct err *err);

static int receive(receive_fn *fn, struct task *task, const struct engine_watch *watch,
		   struct json options, struct json answer, struct err *err)
{
	CLEANUP(engine_received_done) struct engine_received got = { 0 };
	CLEANUP(options_done) struct engine_receive_options o = { .watch = *watch };
	int r = fields_read(options, &wire_receive_options, &o, err);

	if (r < 0)
		return r;
	return serve_fields(fn(task, &o, &got, err), answer, &wire_received, &got);
}

int serve_receive(struct task *task, const struct engine_watch *watch, struct json options,
		  struct json answer, struct err *err)
{
	return receive(receive_snapshot, task, watch, options, answer, err);
}

int serve_receive_lazily(struct task *task, const struct engine_watch *watch, struct json options,
			 struct json answer, struct err *err)
{
	return receive(receive_lazily, task, watch, options, answer, err);
}

static DEFINE_FIELDS_DONE(supply_options_done, struct engine_supply_options, wire_supply_options)

int serve_supply(struct task *task, const struct engine_watch *watch, struct json options,
		 struct json answer, struct err *err)
{
	CLEANUP(supply_options_done) struct engine_supply_options o = { 0 };
	struct engine_supply got = { 0 };
	int r = fields_read(options, &wire_supply_options, &o, err);

	if (r < 0)
		return r;
	return serve_fields(promises_supply(task->host->promises, &o, &got, err), answer,
			    &wire_supply, &got);
}
