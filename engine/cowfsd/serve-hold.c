#include <errno.h>

#include "engine/act/hold-i.h"
#include "engine/cowfsd/verbs-i.h"

int serve_hold(struct task *task, const struct engine_watch *watch, struct json options,
	       struct json answer, struct err *err)
{
	const struct json texts = json_get_array(options, "states");
	const struct json list = json_set_array(answer, "states");
	const size_t n = json_length(texts);
	struct held held;
	int r = 0;

	if (n > HOLD_MAX)
		return err_set(err, -EINVAL, "too many states");
	for (size_t i = 0; i < n && r >= 0; i++) {
		AUTO_FREE char *text = json_at_name(texts, i);

		r = json_end(options.doc, err);
		if (r < 0)
			return r;
		r = hold_state(task, text, watch, &held, err);
		if (r < 0)
			return r;
		wire_set_held(json_add_object(list), &held);
	}
	return json_end(options.doc, err);
}

int serve_hold_names(struct task *task, const struct engine_watch *watch, struct json options,
		     struct json answer, struct err *err)
{
	AUTO_FREE char *clone = json_get_name(options, "clone");
	const uint64_t ms = json_get_uint(options, "ms");
	struct held held;
	int r = json_end(options.doc, err);

	if (r < 0)
		return r;
	r = ms == 0 ? hold_clone(task, clone, &held, err) : hold_names(task, clone, ms, &held, err);
	if (r < 0)
		return r;
	wire_set_held(answer, &held);
	return r;
}
