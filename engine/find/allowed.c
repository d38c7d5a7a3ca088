#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "engine/find/allow-i.h"

void engine_allowed_done(struct engine_allowed *a)
{
	free(a->clone);
	strlist_done(&a->rules);
	*a = (struct engine_allowed){ 0 };
}

char *allowed_join(const struct strlist *rules)
{
	CLEANUP(buf_done) struct buf all = BUF_INIT;

	for (size_t i = 0; i < rules->n; i++)
		if ((i > 0 && buf_append_u8(&all, ',') < 0) ||
		    buf_append_str(&all, rules->list[i]) < 0)
			return NULL;
	return buf_str(&all) ? strdup(buf_str(&all)) : NULL;
}

static int split(const char *text, struct strlist *to)
{
	for (size_t n; *text != '\0'; text += n + (text[n] == ',')) {
		n = strcspn(text, ",");
		if (strlist_take(to, strndup(text, n)) < 0)
			return -ENOMEM;
	}
	return 0;
}

int allowed_load(struct store *s, const struct clone *clone, struct engine_allowed *ret,
		 struct err *err)
{
	CLEANUP(allowance_done) struct allowance record = { 0 };
	CLEANUP(engine_allowed_done) struct engine_allowed a = { .clone = strdup(clone->name) };
	int r = a.clone ? allowance_get(s, clone->name, &record, err) : err_nomem(err);

	if (r < 0 && r != -ENOENT)
		return r;
	if (r >= 0 && record.created == clone->created && split(record.rules, &a.rules) < 0)
		return err_nomem(err);
	*ret = TAKE_STRUCT(a);
	return 0;
}

int engine_allowed(struct engine *e, const char *name, struct engine_allowed *ret, struct err *err)
{
	CLEANUP(clone_done) struct clone clone = { 0 };
	struct store *s;
	int r = engine_store(e, STORE_READ, &s, err);

	if (r < 0)
		return r;
	r = clone_meant(e, s, name, &clone, err);
	return r < 0 ? r : allowed_load(s, &clone, ret, err);
}
