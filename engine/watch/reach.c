/*
 * Rules whose file system hangs: they are off until it answers, and keep no others from being followed.
 */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/vec.h"
#include "engine/watch/watch-i.h"

static void look_at(const struct engine_rule *rule)
{
	struct stat st;

	IGNORE_RESULT(stat(rule->project, &st), "an error is an answer, too");
	if (rule->file)
		IGNORE_RESULT(stat(rule->file, &st), "an error is an answer, too");
}

static uint64_t look_at_one(void *ctx)
{
	look_at(ctx);
	return 0;
}

static bool answers(struct engine_rule *rule)
{
	uint64_t unused;

	return reach_ask(look_at_one, rule, &unused);
}

struct looking {
	struct engine *engine; /* NULL: nobody wants the print */
	const struct engine_rules_of_watch *rules;
};

static uint64_t look_at_all(void *ctx)
{
	const struct looking *l = ctx;

	for (size_t i = 0; i < l->rules->n; i++)
		if (!l->rules->list[i].silent)
			look_at(&l->rules->list[i]);
	return l->engine ? rules_print(l->engine, l->rules) : 0;
}

/* What one project's rules may not do, none of them may: they are narrowed together. */
static int turn_off(struct engine_rules_of_watch *w, const struct engine_rule *rule,
		    struct err *err)
{
	struct err problem = { 0 };

	IGNORE_RESULT(err_set(&problem, -EIO,
			      "'%s' cannot be looked at: its file system does not answer",
			      rule->file ? rule->file : rule->project),
		      "it is the problem");
	for (size_t i = 0; i < w->n; i++)
		w->list[i].silent |= strcmp(w->list[i].project, rule->project) == 0;
	return rules_turn_off(w, rule->project, &problem, err);
}

int rules_turn_off_silent(struct engine_rules_of_watch *w, struct err *err)
{
	uint64_t unused;
	int r = 0;

	if (w->n == 0 || reach_ask(look_at_all, &(struct looking){ .rules = w }, &unused))
		return 0;
	for (size_t i = 0; r >= 0 && i < w->n; i++)
		if (!w->list[i].silent && !answers(&w->list[i]))
			r = turn_off(w, &w->list[i], err);
	return r;
}

bool rules_look(struct engine *e, const struct engine_rules_of_watch *w, uint64_t *ret_print)
{
	return reach_ask(look_at_all, &(struct looking){ e, w }, ret_print);
}

/* Rules of one project are silent together: the first that looks at just these places speaks for all. */
static bool is_first(const struct engine_rules_of_watch *w, size_t i)
{
	const char *file = w->list[i].file ? w->list[i].file : "";

	return VEC_ALL(it, w->list, i,
		       strcmp(it->project, w->list[i].project) != 0 ||
			   strcmp(it->file ? it->file : "", file) != 0);
}

bool rules_speak_again(const struct engine_rules_of_watch *w)
{
	for (size_t i = 0; i < w->n; i++)
		if (w->list[i].silent && is_first(w, i) && answers(&w->list[i]))
			return true;
	return false;
}
