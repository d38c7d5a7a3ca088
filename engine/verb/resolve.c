/*
 * The command keeps its promotion's options as JSON, because cowfsd does not know all of them.
 */
#include "engine/api/resolve.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fdio.h"
#include "engine/ask/ask-i.h"
#include "engine/find/engine-i.h"
#include "engine/find/resolve-set-i.h"
#include "engine/verb/resolve-i.h"

/* --- how a promotion was asked for ------------------------------------------------------ */

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
	json_set_uint(j, "on_conflict", o->on_conflict);
	json_set_uint(j, "style", o->style);
	json_set_name(j, "profile", o->profile);
	json_set_uint(j, "mem", o->limits ? o->limits->mem : ENGINE_UNSAID);
	json_set_uint(j, "time_ms", o->limits ? o->limits->time_ms : ENGINE_UNSAID);
	return json_append(&doc, out, err);
}

void asked_done(struct asked *a)
{
	for (size_t i = 0; i < a->n_owned; i++)
		free(a->owned[i]);
	free(a->owned);
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
	r = clone_meant(e, s, options->clone, "promoted", &clone, err);
	if (r < 0)
		return r;
	r = resolve_set_load(s, &clone, &set, err);
	if (r < 0)
		return r;
	ret->any = set.asked != NULL;
	r = set.asked ? read_asked(ret, set.asked, err) : 0;
	return r < 0 ? err_wrap(err, r, "how clone '%s' was to be promoted", clone.name) : 0;
}

/* --- conflicts -------------------------------------------------------------------------- */

int engine_conflicts(struct engine *e, const struct engine_promote_options *options,
		     struct engine_promotion *ret, struct err *err)
{
	CLEANUP(asked_done) struct asked asked = { 0 };
	int r = asked_read(e, options, &asked, err);

	if (r < 0)
		return r;
	asked.options.dry_run = true;
	asked.options.again = asked.options.git = false;
	return engine_promote(e, &asked.options, ret, err);
}

/* A copy for cowfsd, which must not read a file that may be in a clone it serves. */
struct given {
	char *path, *name; /* owned; NULL: none; `name` is the end of `path` */
};

static void given_done(struct given *g)
{
	if (g->path)
		unlink(g->path);
	free(g->path);
}

static int copy_bytes(int from, int to, const char *path, struct err *err)
{
	char piece[64 << 10];
	ssize_t n;

	while ((n = read(from, piece, sizeof(piece))) > 0) {
		int r = fdio_write(to, piece, (size_t)n);

		if (r < 0)
			return err_set(err, r, "copying '%s' for cowfsd failed", path);
	}
	return n < 0 ? err_sys(err, "'%s'", path) : 0;
}

static int give_file(struct engine *e, const char *path, struct given *g, struct err *err)
{
	AUTO_CLOSE int from = open(path, O_RDONLY | O_CLOEXEC), to = -1;

	if (from < 0)
		return err_sys(err, "'%s'", path);
	if (asprintf(&g->path, "%s/" CONTROL_DIR "/given-XXXXXX", e->store_path) < 0) {
		g->path = NULL;
		return err_nomem(err);
	}
	to = mkostemp(g->path, O_CLOEXEC);
	if (to < 0) {
		int r = err_sys(err, "'%s'", g->path);

		free(g->path);
		g->path = NULL;
		return r;
	}
	g->name = strrchr(g->path, '/') + 1;
	return copy_bytes(from, to, path, err);
}

int engine_resolve(struct engine *e, const struct engine_resolve_options *options, struct err *err)
{
	CLEANUP(ask_done) struct ask a = { 0 };
	CLEANUP(given_done) struct given given = { 0 };
	struct engine_resolve_options o = *options;
	struct json answer;
	int r = o.take == ENGINE_TAKE_FILE ? give_file(e, o.file, &given, err) : 0;

	if (r < 0)
		return r;
	o.file = given.name;
	ask_begin(&a, e, VERB_RESOLVE);
	fields_set(a.options, &wire_resolve_options, &o);
	r = ask_daemon(&a, e, ASK_STORE, NULL, &answer, err);
	return r < 0 ? r : ask_end(&a, err);
}
