#include <errno.h>
#include <string.h>

#include "engine/api/upkeep.h"
#include "engine/wire/wire-i.h"

/* --- gc --------------------------------------------------------------------------------- */

static int get_forgotten(struct json list, struct engine_history *h)
{
	const size_t n = json_length(list);
	int r = 0;

	h->list = n > 0 ? calloc(n, sizeof(*h->list)) : NULL;
	if (n > 0 && !h->list)
		return -ENOMEM;
	for (; h->n < n && r >= 0; h->n++)
		r = wire_get_snapshot(json_at_object(list, h->n), &h->list[h->n]);
	return r;
}

int engine_gc(struct engine *e, const struct engine_gc_options *options, struct engine_gc *ret,
	      struct err *err)
{
	CLEANUP(engine_gc_done) struct engine_gc gc = { 0 };
	CLEANUP(ask_done) struct ask a;
	struct json answer;
	int r;

	ask_begin(&a, e, wire_gc.name);
	json_set_uint(a.options, "keep_last", options->keep_last);
	json_set_uint(a.options, "keep_within_ms", options->keep_within_ms);
	json_set_bool(a.options, "dry_run", options->dry_run);
	r = ask_daemon(&a, e, ASK_STORE, &options->watch, &answer, err);
	if (r < 0)
		return r;
	gc.kept = json_get_uint(answer, "kept");
	gc.removed = json_get_uint(answer, "removed");
	gc.freed = json_get_uint(answer, "freed");
	gc.disk_before = json_get_uint(answer, "disk_before");
	gc.disk_after = json_get_uint(answer, "disk_after");
	gc.elapsed_ms = json_get_uint(answer, "elapsed_ms");
	r = get_forgotten(json_get_array(answer, "forgotten"), &gc.forgotten);
	r = r < 0 ? err_nomem(err) : ask_end(&a, err);
	if (r < 0)
		return r;
	*ret = gc;
	gc = (struct engine_gc){ 0 };
	return 0;
}

static int serve_gc(struct engine *e, const struct engine_watch *watch, struct json options,
		    struct json answer, struct err *err)
{
	CLEANUP(engine_gc_done) struct engine_gc gc = { 0 };
	const struct engine_gc_options o = {
		.keep_last = json_get_uint(options, "keep_last"),
		.keep_within_ms = json_get_uint(options, "keep_within_ms"),
		.dry_run = json_get_bool(options, "dry_run"),
		.watch = *watch,
	};
	struct json list;
	int r = json_end(options.doc, err);

	if (r >= 0)
		r = upkeep_gc(e, &o, &gc, err);
	if (r < 0)
		return r;
	json_set_uint(answer, "kept", gc.kept);
	json_set_uint(answer, "removed", gc.removed);
	json_set_uint(answer, "freed", gc.freed);
	json_set_uint(answer, "disk_before", gc.disk_before);
	json_set_uint(answer, "disk_after", gc.disk_after);
	json_set_uint(answer, "elapsed_ms", gc.elapsed_ms);
	list = json_set_array(answer, "forgotten");
	for (size_t i = 0; i < gc.forgotten.n; i++)
		wire_set_snapshot(json_add_object(list), &gc.forgotten.list[i]);
	return 0;
}

const struct wire_verb wire_gc = { "gc", serve_gc };

/* --- check ------------------------------------------------------------------------------ */

static void set_damage(struct json j, const struct engine_damage *d)
{
	struct json paths;

	json_set_name(j, "object", d->object);
	json_set_name(j, "why", d->why);
	json_set_name(j, "from", d->from);
	json_set_uint(j, "n_paths_all", d->n_paths_all);
	paths = json_set_array(j, "paths");
	for (size_t i = 0; i < d->n_paths; i++)
		json_add_name(paths, d->paths[i]);
}

static int get_damage(struct json j, struct engine_damage *d)
{
	struct json paths = json_get_array(j, "paths");
	const size_t n = json_length(paths);

	d->object = json_get_name(j, "object");
	d->why = json_get_name(j, "why");
	d->from = json_get_name_or_null(j, "from");
	d->n_paths_all = json_get_uint(j, "n_paths_all");
	d->paths = n > 0 ? calloc(n, sizeof(*d->paths)) : NULL;
	if (n > 0 && !d->paths)
		return -ENOMEM;
	for (; d->n_paths < n; d->n_paths++)
		d->paths[d->n_paths] = json_at_name(paths, d->n_paths);
	return 0;
}

static int get_damages(struct json list, struct engine_damage **ret, size_t *ret_n)
{
	const size_t n = json_length(list);
	int r = 0;

	*ret = n > 0 ? calloc(n, sizeof(**ret)) : NULL;
	if (n > 0 && !*ret)
		return -ENOMEM;
	for (; *ret_n < n && r >= 0; (*ret_n)++)
		r = get_damage(json_at_object(list, *ret_n), &(*ret)[*ret_n]);
	return r;
}

static int get_check(struct json j, struct engine_check *c)
{
	int r;

	c->objects = json_get_uint(j, "objects");
	c->bytes = json_get_uint(j, "bytes");
	c->refs = json_get_uint(j, "refs");
	c->mended = json_get_uint(j, "mended");
	c->set_aside = json_get_uint(j, "set_aside");
	c->elapsed_ms = json_get_uint(j, "elapsed_ms");
	r = get_damages(json_get_array(j, "damage"), &c->damage, &c->n_damage);
	if (r >= 0)
		r = get_damages(json_get_array(j, "restored"), &c->restored, &c->n_restored);
	return r;
}

/* A store that cannot be written has no daemon, and one too damaged for it may still be readable. */
static bool check_ourselves(const struct engine_check_options *options, int r)
{
	return !options->repair && (r == -EROFS || r == -EACCES || r == -EPERM || r == -EBADMSG);
}

int engine_check(struct engine *e, const struct engine_check_options *options,
		 struct engine_check *ret, struct err *err)
{
	CLEANUP(engine_check_done) struct engine_check check = { 0 };
	CLEANUP(ask_done) struct ask a;
	struct json answer;
	int r;

	ask_begin(&a, e, wire_check.name);
	json_set_bool(a.options, "repair", options->repair);
	r = ask_daemon(&a, e, ASK_STORE, &options->watch, &answer, err);
	if (check_ourselves(options, r))
		return upkeep_check(e, options, ret, err);
	if (r < 0)
		return r;
	r = get_check(answer, &check);
	r = r < 0 ? err_nomem(err) : ask_end(&a, err);
	if (r < 0)
		return r;
	*ret = check;
	check = (struct engine_check){ 0 };
	return 0;
}

static void set_damages(struct json list, const struct engine_damage *damage, size_t n)
{
	for (size_t i = 0; i < n; i++)
		set_damage(json_add_object(list), &damage[i]);
}

static int serve_check(struct engine *e, const struct engine_watch *watch, struct json options,
		       struct json answer, struct err *err)
{
	CLEANUP(engine_check_done) struct engine_check check = { 0 };
	const struct engine_check_options o = {
		.repair = json_get_bool(options, "repair"),
		.watch = *watch,
	};
	int r = json_end(options.doc, err);

	if (r >= 0)
		r = upkeep_check(e, &o, &check, err);
	if (r < 0)
		return r;
	json_set_uint(answer, "objects", check.objects);
	json_set_uint(answer, "bytes", check.bytes);
	json_set_uint(answer, "refs", check.refs);
	json_set_uint(answer, "mended", check.mended);
	json_set_uint(answer, "set_aside", check.set_aside);
	json_set_uint(answer, "elapsed_ms", check.elapsed_ms);
	set_damages(json_set_array(answer, "damage"), check.damage, check.n_damage);
	set_damages(json_set_array(answer, "restored"), check.restored, check.n_restored);
	return 0;
}

const struct wire_verb wire_check = { "check", serve_check };
