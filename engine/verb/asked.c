/*
 * asked.c - the options of a promotion, with which `resolve` repeats it.
 */
#include "engine/api/resolve.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fdio.h"
#include "base/text.h"
#include "engine/ask/ask-i.h"
#include "engine/find/engine-i.h"
#include "engine/find/resolve-set-i.h"
#include "engine/verb/resolve-i.h"

static void set_names(struct json j, const char *key, const struct engine_list *list)
{
	struct json array = json_set_array(j, key);

	for (size_t i = 0; i < list->n; i++)
		json_add_name(array, list->items[i]);
}

int asked_write(const struct engine_promote_options *o, struct buf *out, struct err *err)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	struct json j = json_begin(&doc);

	set_names(j, "checks", &o->checks);
	set_names(j, "paths", &o->paths);
	set_names(j, "excludes", &o->excludes);
	set_names(j, "allow", &o->allow);
	json_set_bool(j, "git", o->git);
	json_set_bool(j, "root", o->root);
	json_set_bool(j, "skip_unreadable", o->skip_unreadable);
	json_set_uint(j, "on_conflict", o->on_conflict);
	json_set_uint(j, "style", o->style);
	json_set_name(j, "profile", o->profile);
	json_set_uint(j, "mem", o->limits ? o->limits->mem : ENGINE_UNSAID);
	json_set_uint(j, "time_ms", o->limits ? o->limits->time_ms : ENGINE_UNSAID);
	return json_append(&doc, out, err);
}

void asked_done(struct asked *a)
{
	texts_free(a->owned, a->n_owned);
	for (size_t i = 0; i < ARRAY_LEN(a->lists); i++)
		free(a->lists[i]);
	free(a->profile);
	*a = (struct asked){ 0 };
}

/* Join the remembered items and those given now. */
static int join_list(struct asked *a, size_t which, struct json array, struct engine_list *list,
		     struct err *err)
{
	const size_t n = json_length(array);
	const char **joined = calloc(n + list->n + 1, sizeof(*joined));
	char **owned = reallocarray(a->owned, a->n_owned + n + 1, sizeof(*owned));

	a->lists[which] = joined;
	if (owned)
		a->owned = owned;
	if (!joined || !owned)
		return err_nomem(err);
	for (size_t i = 0; i < n; i++) {
		char *name = json_at_name(array, i);

		if (!name)
			return json_end(array.doc, err) < 0 ? -EBADMSG : err_nomem(err);
		joined[i] = owned[a->n_owned++] = name;
	}
	for (size_t i = 0; i < list->n; i++)
		joined[n + i] = list->items[i];
	*list = (struct engine_list){ .items = joined, .n = n + list->n };
	return 0;
}

static int read_asked(struct asked *a, const char *text, struct err *err)
{
	static const char *const names[] = { "checks", "paths", "excludes", "allow" };
	struct engine_promote_options *o = &a->options;
	struct engine_list *const lists[] = { &o->checks, &o->paths, &o->excludes, &o->allow };
	CLEANUP(json_done) struct json_doc doc = { 0 };
	struct json j;
	uint64_t mem, time_ms;
	int r = json_parse(&doc, text, strlen(text), &j, err);

	if (r < 0)
		return r;
	for (size_t i = 0; i < ARRAY_LEN(names) && r >= 0; i++)
		r = join_list(a, i, json_get_array(j, names[i]), lists[i], err);
	if (r < 0)
		return r;
	o->git |= json_get_bool(j, "git");
	o->root |= json_has(j, "root") && json_get_bool(j, "root");
	o->skip_unreadable |= json_has(j, "skip_unreadable") && json_get_bool(j, "skip_unreadable");
	if (o->on_conflict == MERGE_STOP)
		o->on_conflict = (enum merge_on_conflict)json_get_uint(j, "on_conflict");
	if (o->style == MERGE_STYLE_PLAIN)
		o->style = (enum merge_style)json_get_uint(j, "style");
	a->profile = json_get_name_or_null(j, "profile");
	if (!o->profile)
		o->profile = a->profile;
	mem = json_get_uint(j, "mem");
	time_ms = json_get_uint(j, "time_ms");
	if (a->limits.mem == ENGINE_UNSAID)
		a->limits.mem = mem;
	if (a->limits.time_ms == ENGINE_UNSAID)
		a->limits.time_ms = time_ms;
	return json_end(&doc, err);
}

int asked_read(struct engine *e, const struct engine_promote_options *options, struct asked *ret,
	       struct err *err)
{
	CLEANUP(resolve_set_done) struct resolve_set set = { 0 };
	CLEANUP(clone_done) struct clone clone = { 0 };
	struct store *s;
	int r;

	*ret = (struct asked){ .options = *options };
	engine_run_limits_init(&ret->limits);
	if (options->limits)
		ret->limits = *options->limits;
	ret->options.limits = &ret->limits;
	r = engine_store(e, STORE_READ, &s, err);
	if (r < 0)
		return r;
	r = clone_meant(e, s, options->clone, &clone, err);
	if (r < 0)
		return r;
	r = resolve_set_load(s, &clone, &set, err);
	if (r < 0)
		return r;
	ret->any = set.asked != NULL;
	r = set.asked ? read_asked(ret, set.asked, err) : 0;
	return r < 0 ? err_wrap(err, r, "how clone '%s' was to be promoted", clone.name) : 0;
}
