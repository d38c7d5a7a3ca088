#include "engine/act/allow-i.h"
#include "engine/cowfsd/verbs-i.h"

static int read_rules(struct json options, struct strlist *ret)
{
	const struct json list = json_get_array(options, "rules");
	int r = 0;

	for (size_t i = 0; i < json_length(list) && r >= 0; i++) {
		char *rule = json_at_name(list, i);

		/* json_end() reports what is no text. */
		r = rule ? strlist_take(ret, rule) : 0;
	}
	return r;
}

int serve_allow(struct task *task, const struct engine_watch *watch, struct json options,
		struct json answer, struct err *err)
{
	CLEANUP(engine_allowed_done) struct engine_allowed allowed = { 0 };
	CLEANUP(strlist_done) struct strlist rules = { 0 };
	AUTO_FREE char *clone = json_get_name_or_null(options, "clone");
	const bool remove = json_get_bool(options, "remove");
	struct json list;
	int r = read_rules(options, &rules);

	(void)watch;
	r = r < 0 ? err_nomem(err) : json_end(options.doc, err);
	if (r < 0)
		return r;
	r = allow_edit(task, clone, &rules, remove, &allowed, err);
	if (r < 0)
		return r;
	json_set_name(answer, "clone", allowed.clone);
	list = json_set_array(answer, "rules");
	for (size_t i = 0; i < allowed.rules.n; i++)
		json_add_name(list, allowed.rules.list[i]);
	return r;
}
