#include "engine/api/allow.h"

#include <errno.h>

#include "engine/ask/ask-i.h"
#include "engine/find/engine-i.h"
#include "runner/net/allow.h"

static void allow_free(struct allow *a)
{
	allow_done(a);
}

static int check_rule(const char *rule, struct err *err)
{
	CLEANUP(allow_free) struct allow parsed = ALLOW_INIT;
	int r = allow_parse(rule, &parsed, err);

	if (r < 0)
		return r;
	if (parsed.mode != NET_LIST)
		return err_set(err, -EINVAL,
			       "'%s' is no HOST:PORT: `run --net %s` says that for one run", rule,
			       rule);
	return 0;
}

int engine_allow(struct engine *e, const char *clone, const struct strlist *rules, bool remove,
		 struct engine_allowed *ret, struct err *err)
{
	CLEANUP(engine_allowed_done) struct engine_allowed a = { 0 };
	CLEANUP(ask_done) struct ask q = { 0 };
	struct json answer;
	int r = 0;

	for (size_t i = 0; i < rules->n && r >= 0; i++)
		r = remove ? 0 : check_rule(rules->list[i], err);
	if (r < 0)
		return r;
	ask_begin(&q, e, VERB_ALLOW);
	json_set_name(q.options, "clone", clone);
	json_set_bool(q.options, "remove", remove);
	json_set_names(q.options, "rules", rules->list, rules->n);
	r = ask_daemon(&q, e, ASK_STORE, NULL, &answer, err);
	if (r < 0)
		return r;
	a.clone = json_get_name(answer, "clone");
	r = json_get_names(answer, "rules", &a.rules);
	r = r < 0 ? err_nomem(err) : ask_end(&q, err);
	if (r < 0)
		return r;
	*ret = TAKE_STRUCT(a);
	return 0;
}
