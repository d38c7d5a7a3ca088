#include "engine/act/allow-i.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine/find/allow-i.h"
#include "engine/host/host-i.h"

#define RULES_MAX      64
#define RULE_BYTES_MAX 512

/* The command checks what a rule means; here only that it can be kept and shown. */
static int check_rule(const char *rule, struct err *err)
{
	const size_t n = strlen(rule);

	if (n == 0 || n > RULE_BYTES_MAX || strchr(rule, ','))
		return err_set(err, -EINVAL, "'%.64s' is no rule", rule);
	for (size_t i = 0; i < n; i++)
		if (rule[i] <= ' ' || rule[i] > '~')
			return err_set(err, -EINVAL, "a rule has a character that is not plain");
	return 0;
}

static int drop(struct strlist *l, const char *rule, struct err *err)
{
	size_t n = 0;

	for (size_t i = 0; i < l->n; i++) {
		if (strcmp(l->list[i], rule) == 0)
			free(l->list[i]);
		else
			l->list[n++] = l->list[i];
	}
	if (n == l->n)
		return err_set(err, -ENOENT, "'%s' is not allowed there", rule);
	l->n = n;
	return 0;
}

static int change(struct strlist *l, const struct strlist *rules, bool remove, struct err *err)
{
	int r = 0;

	for (size_t i = 0; i < rules->n && r >= 0; i++) {
		r = check_rule(rules->list[i], err);
		if (r >= 0 && remove)
			r = drop(l, rules->list[i], err);
		else if (r >= 0 && !strlist_has(l, rules->list[i]))
			r = strlist_add(l, rules->list[i]) < 0 ? err_nomem(err) : 0;
	}
	if (r >= 0 && l->n > RULES_MAX)
		return err_set(err, -E2BIG, "no more than %d rules are kept for a clone",
			       RULES_MAX);
	return r;
}

int allow_forget(struct store *s, struct batch *b, const char *clone, struct err *err)
{
	CLEANUP(allowance_done) struct allowance record = { 0 };
	int r = allowance_get(s, clone, &record, err);

	/* A damaged record is removed, too. */
	if (r == -ENOENT)
		return 0;
	return ref_delete(b, REF_ALLOWANCE, clone, strlen(clone), err);
}

static int put(struct store *s, const struct clone *clone, const struct strlist *rules,
	       struct err *err)
{
	CLEANUP(batch_end_p) struct batch *b = NULL;
	AUTO_FREE char *text = allowed_join(rules);
	struct allowance record = { .clone = clone->name, .created = clone->created };
	int r = text ? batch_begin(s, &b, err) : err_nomem(err);

	if (r < 0)
		return r;
	record.rules = text;
	r = rules->n > 0 ? allowance_put(b, &record, err) : allow_forget(s, b, clone->name, err);
	return r < 0 ? r : batch_commit(b, BATCH_DURABLE, err);
}

int allow_edit(struct task *task, const char *name, const struct strlist *rules, bool remove,
	       struct engine_allowed *ret, struct err *err)
{
	CLEANUP(turn_give_p) struct turn *turn = NULL;
	CLEANUP(clone_done) struct clone meant = { 0 }, clone = { 0 };
	CLEANUP(engine_allowed_done) struct engine_allowed a = { 0 };
	struct store *s;
	int r = engine_store(&task->engine, STORE_WRITE, &s, err);

	if (r < 0)
		return r;
	r = clone_meant(&task->engine, s, name, &meant, err);
	if (r < 0)
		return r;
	r = turns_take(&task->host->turns, meant.name, &turn, err);
	if (r < 0)
		return r;
	r = clone_find(s, meant.name, &clone, err);
	if (r < 0)
		return r;
	r = allowed_load(s, &clone, &a, err);
	if (r < 0)
		return r;
	r = change(&a.rules, rules, remove, err);
	if (r < 0)
		return r;
	r = task_wanted(task, err);
	if (r < 0)
		return r;
	r = put(s, &clone, &a.rules, err);
	if (r < 0)
		return r;
	*ret = TAKE_STRUCT(a);
	return 0;
}
