#include "engine/act/allow-i.h"
#include "engine/cowfsd/verbs-i.h"

int serve_allow(struct task *task, const struct engine_watch *watch, struct json options,
		struct json answer, struct err *err)
{
	CLEANUP(engine_allowed_done) struct engine_allowed allowed = { 0 };
	CLEANUP(strlist_done) struct strlist rules = { 0 };
	AUTO_FREE char *clone = json_get_name_or_null(options, "clone");
	const bool remove = json_get_bool(options, "remove");
	int r = json_get_names(options, "rules", &rules);

	r = r < 0 ? err_nomem(err) : json_end(options.doc, err);
	if (r < 0)
		return r;
	r = allow_edit(task, clone, &rules, remove, &allowed, err);
	if (r < 0)
		return r;
	json_set_name(answer, "clone", allowed.clone);
	json_set_names(answer, "rules", allowed.rules.list, allowed.rules.n);
	return r;
}
