#include "engine/api/overlaps.h"
#include "engine/api/rebase.h"
#include "engine/api/rollback.h"
#include "engine/ask/ask-i.h"
#include "engine/ask/echo-i.h"
#include "engine/find/rules-i.h"

int engine_overlaps(struct engine *e, const char *clone, struct engine_overlaps *ret,
		    struct err *err)
{
	CLEANUP(ask_done) struct ask a = { 0 };

	ask_begin(&a, e, VERB_OVERLAPS);
	json_set_name(a.options, "clone", clone);
	return ask_for(&a, e, ASK_STORE, NULL, &wire_overlaps, ret, err);
}

int engine_rebase(struct engine *e, const struct engine_rebase_options *options,
		  struct engine_rebased *ret, struct err *err)
{
	CLEANUP(control_done) struct control c = CONTROL_INIT;
	CLEANUP(ask_done) struct ask a = { 0 };
	struct json answer;
	int r;

	ask_begin(&a, e, VERB_REBASE);
	fields_set(a.options, &wire_rebase_options, options);
	r = ask_keeping(&a, e, ASK_STORE, &options->watch, &c, &answer, err);
	if (r < 0)
		return r;
	r = ask_take(&a, answer, &wire_rebased, ret, err);
	if (r < 0)
		return r;
	echo_perform(e, &c, answer);
	return r;
}

int engine_rollback(struct engine *e, const struct engine_rollback_options *options,
		    struct engine_rolled *ret, struct err *err)
{
	CLEANUP(control_done) struct control c = CONTROL_INIT;
	CLEANUP(ask_done) struct ask a = { 0 };
	struct engine_rollback_options asked = *options;
	AUTO_FREE char *rules = options->rules ? NULL : rules_of_user(e);
	struct json answer;
	int r;

	if (rules)
		asked.rules = rules;
	ask_begin(&a, e, VERB_ROLLBACK);
	fields_set(a.options, &wire_rollback_options, &asked);
	r = ask_keeping(&a, e, ASK_STORE, &options->watch, &c, &answer, err);
	if (r < 0)
		return r;
	r = ask_take(&a, answer, &wire_rolled, ret, err);
	if (r < 0)
		return r;
	echo_perform(e, &c, answer);
	return r;
}
