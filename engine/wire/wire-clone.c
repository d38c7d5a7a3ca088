#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "engine/api/clone.h"
#include "engine/wire/wire-i.h"

/* --- structs ---------------------------------------------------------------------------- */

static void set_clone(struct json j, const struct engine_clone *c)
{
	struct json stale;

	json_set_name(j, "name", c->name);
	json_set_name(j, "path", c->path);
	json_set_name(j, "project", c->project);
	wire_set_short(j, "base", c->base);
	json_set_int(j, "created", c->created);
	json_set_int(j, "expires", c->expires);
	json_set_uint(j, "quota", c->quota);
	json_set_bool(j, "strict", c->strict);
	json_set_bool(j, "private", c->private);
	json_set_bool(j, "no_xattrs", c->no_xattrs);
	json_set_uint(j, "used", c->used);
	json_set_bool(j, "mounted", c->mounted);
	json_set_bool(j, "compared", c->compared);
	json_set_uint(j, "added", c->added);
	json_set_uint(j, "modified", c->modified);
	json_set_uint(j, "deleted", c->deleted);
	stale = json_set_object(j, "stale");
	json_set_bool(stale, "known", c->stale.known);
	json_set_uint(stale, "behind_ms", c->stale.behind_ms);
	json_set_uint(stale, "paths", c->stale.paths);
	json_set_int(stale, "as_of", c->stale.as_of);
}

static void get_clone(struct json j, struct engine_clone *c)
{
	struct json stale = json_get_object(j, "stale");

	c->name = json_get_name(j, "name");
	c->path = json_get_name(j, "path");
	c->project = json_get_name(j, "project");
	WIRE_GET_SHORT(j, "base", c->base);
	c->created = json_get_int(j, "created");
	c->expires = json_get_int(j, "expires");
	c->quota = json_get_uint(j, "quota");
	c->strict = json_get_bool(j, "strict");
	c->private = json_get_bool(j, "private");
	c->no_xattrs = json_get_bool(j, "no_xattrs");
	c->used = json_get_uint(j, "used");
	c->mounted = json_get_bool(j, "mounted");
	c->compared = json_get_bool(j, "compared");
	c->added = json_get_uint(j, "added");
	c->modified = json_get_uint(j, "modified");
	c->deleted = json_get_uint(j, "deleted");
	c->stale.known = json_get_bool(stale, "known");
	c->stale.behind_ms = json_get_uint(stale, "behind_ms");
	c->stale.paths = json_get_uint(stale, "paths");
	c->stale.as_of = json_get_int(stale, "as_of");
}

static void set_clones(struct json j, const struct engine_clones *c)
{
	struct json list = json_set_array(j, "clones");

	for (size_t i = 0; i < c->n; i++)
		set_clone(json_add_object(list), &c->list[i]);
	json_set_name(j, "project", c->project);
	json_set_uint(j, "elapsed_ms", c->elapsed_ms);
}

static int get_clones(struct json j, struct engine_clones *c)
{
	struct json list = json_get_array(j, "clones");
	const size_t n = json_length(list);

	c->project = json_get_name_or_null(j, "project");
	c->elapsed_ms = json_get_uint(j, "elapsed_ms");
	c->list = n > 0 ? calloc(n, sizeof(*c->list)) : NULL;
	if (n > 0 && !c->list)
		return -ENOMEM;
	for (; c->n < n; c->n++)
		get_clone(json_at_object(list, c->n), &c->list[c->n]);
	return 0;
}

/* Take the list out of an answer. */
static int end_clones(const struct ask *a, struct json answer, struct engine_clones *ret,
		      struct err *err)
{
	CLEANUP(engine_clones_done) struct engine_clones clones = { 0 };
	int r = get_clones(answer, &clones);

	r = r < 0 ? err_nomem(err) : ask_end(a, err);
	if (r < 0)
		return r;
	*ret = clones;
	clones = (struct engine_clones){ 0 };
	return 0;
}

/* --- clone ------------------------------------------------------------------------------ */

/* Only who captures the project may find that there is no store yet. */
static int may_begin(struct engine *e, const struct engine_clone_options *options,
		     enum ask_start *ret, struct err *err)
{
	CLEANUP(project_done) struct project unused = { 0 };

	*ret = ASK_STORE;
	if (options->from && strcmp(options->from, ".") != 0)
		return 0;
	*ret = ASK_CREATE;
	return engine_has_store(e) ? 0 : project_choose(e, NULL, NULL, &unused, err);
}

int engine_clone(struct engine *e, const struct engine_clone_options *options,
		 struct engine_clones *ret, struct err *err)
{
	CLEANUP(ask_done) struct ask a = { 0 };
	enum ask_start start;
	struct json answer;
	int r;

	r = options->name ? clone_check_name(options->name, err) : 0;
	if (r < 0)
		return r;
	ask_begin(&a, e, wire_clone.name);
	json_set_name(a.options, "name", options->name);
	json_set_name(a.options, "from", options->from);
	json_set_uint(a.options, "count", options->count);
	json_set_uint(a.options, "ttl_ms", options->ttl_ms);
	json_set_uint(a.options, "quota", options->quota);
	json_set_bool(a.options, "strict", options->strict);
	json_set_bool(a.options, "private", options->private);
	json_set_bool(a.options, "no_xattrs", options->no_xattrs);
	json_set_bool(a.options, "skip_unreadable", options->skip_unreadable);
	r = ask_daemon(&a, e, ASK_RUNNING, &options->watch, &answer, err);
	if (r == -ESRCH) {
		r = may_begin(e, options, &start, err);
		if (r >= 0)
			r = ask_daemon(&a, e, start, &options->watch, &answer, err);
	}
	return r < 0 ? r : end_clones(&a, answer, ret, err);
}

static int serve_clone(struct engine *e, const struct engine_watch *watch, struct json options,
		       struct json answer, struct err *err)
{
	CLEANUP(engine_clones_done) struct engine_clones clones = { 0 };
	AUTO_FREE char *name = json_get_name_or_null(options, "name");
	AUTO_FREE char *from = json_get_name_or_null(options, "from");
	const struct engine_clone_options o = {
		.name = name,
		.from = from,
		.count = json_get_uint(options, "count"),
		.ttl_ms = json_get_uint(options, "ttl_ms"),
		.quota = json_get_uint(options, "quota"),
		.strict = json_get_bool(options, "strict"),
		.private = json_get_bool(options, "private"),
		.no_xattrs = json_get_bool(options, "no_xattrs"),
		.skip_unreadable = json_get_bool(options, "skip_unreadable"),
		.watch = *watch,
	};
	int r = json_end(options.doc, err);

	if (r >= 0)
		r = clone_make(e, &o, &clones, err);
	if (r >= 0)
		set_clones(answer, &clones);
	return r;
}

const struct wire_verb wire_clone = { "clone", serve_clone };

/* --- list ------------------------------------------------------------------------------- */

int engine_list(struct engine *e, bool all, struct engine_clones *ret, struct err *err)
{
	CLEANUP(ask_done) struct ask a;
	struct json answer;
	int r;

	ask_begin(&a, e, wire_list.name);
	json_set_bool(a.options, "all", all);
	r = ask_daemon(&a, e, ASK_STORE, NULL, &answer, err);
	if (r == -ENOENT && all) {
		*ret = (struct engine_clones){ 0 };
		return 0;
	}
	if (r == -ENOENT)
		return engine_no_project(e, err);
	return r < 0 ? r : end_clones(&a, answer, ret, err);
}

static int serve_list(struct engine *e, const struct engine_watch *watch, struct json options,
		      struct json answer, struct err *err)
{
	CLEANUP(engine_clones_done) struct engine_clones clones = { 0 };
	const bool all = json_get_bool(options, "all");
	int r = json_end(options.doc, err);

	(void)watch;
	if (r >= 0)
		r = clone_list(e, all, &clones, err);
	if (r >= 0)
		set_clones(answer, &clones);
	return r;
}

const struct wire_verb wire_list = { "list", serve_list };

/* --- status ----------------------------------------------------------------------------- */

static void get_overview(struct json j, struct engine_overview *o)
{
	o->path = json_get_name(j, "path");
	WIRE_GET_SHORT(j, "newest", o->newest);
	o->newest_time = json_get_int(j, "newest_time");
	o->snapshots = json_get_uint(j, "snapshots");
	o->clones = json_get_uint(j, "clones");
	o->mounted = json_get_uint(j, "mounted");
	o->compared = json_get_bool(j, "compared");
	o->added = json_get_uint(j, "added");
	o->modified = json_get_uint(j, "modified");
	o->deleted = json_get_uint(j, "deleted");
}

/* Of what a list has too, and of what only a status has. */
static int get_status(struct json answer, struct engine_clone *c, struct engine_overview *o)
{
	struct json j;
	int r;

	if (!json_has(answer, "clone")) {
		j = json_get_object(answer, "project");
		get_overview(j, o);
		return wire_get_paths(j, "changed_paths", &o->changed);
	}
	j = json_get_object(answer, "clone");
	get_clone(j, c);
	c->stale.both = json_get_uint(j, "both");
	r = wire_get_paths(j, "changed_paths", &c->changed);
	return r < 0 ? r : wire_get_paths(j, "project_paths", &c->stale.in_project);
}

int engine_status(struct engine *e, const char *clone, const struct engine_watch *watch,
		  struct engine_clone *ret_clone, struct engine_overview *ret_project,
		  struct err *err)
{
	CLEANUP(engine_clone_done) struct engine_clone c = { 0 };
	CLEANUP(engine_overview_done) struct engine_overview o = { 0 };
	CLEANUP(ask_done) struct ask a;
	struct json answer;
	int r;

	ask_begin(&a, e, wire_status.name);
	json_set_name(a.options, "clone", clone);
	r = ask_daemon(&a, e, ASK_STORE, watch, &answer, err);
	if (r == -ENOENT && !clone)
		return engine_no_project(e, err);
	if (r < 0)
		return r;
	r = get_status(answer, &c, &o);
	r = r == -ENOMEM ? err_nomem(err) : ask_end(&a, err);
	if (r < 0)
		return r;
	*ret_clone = c;
	*ret_project = o;
	c = (struct engine_clone){ 0 };
	o = (struct engine_overview){ 0 };
	return 0;
}

static int serve_status(struct engine *e, const struct engine_watch *watch, struct json options,
			struct json answer, struct err *err)
{
	CLEANUP(engine_clone_done) struct engine_clone c = { 0 };
	CLEANUP(engine_overview_done) struct engine_overview o = { 0 };
	AUTO_FREE char *clone = json_get_name_or_null(options, "clone");
	int r = json_end(options.doc, err);
	struct json j;

	if (r >= 0)
		r = clone_status(e, clone, watch, &c, &o, err);
	if (r < 0)
		return r;
	if (c.name) {
		j = json_set_object(answer, "clone");
		set_clone(j, &c);
		json_set_uint(j, "both", c.stale.both);
		wire_set_paths(j, "changed_paths", &c.changed);
		wire_set_paths(j, "project_paths", &c.stale.in_project);
		return 0;
	}
	j = json_set_object(answer, "project");
	json_set_name(j, "path", o.path);
	wire_set_short(j, "newest", o.newest);
	json_set_int(j, "newest_time", o.newest_time);
	json_set_uint(j, "snapshots", o.snapshots);
	json_set_uint(j, "clones", o.clones);
	json_set_uint(j, "mounted", o.mounted);
	json_set_bool(j, "compared", o.compared);
	json_set_uint(j, "added", o.added);
	json_set_uint(j, "modified", o.modified);
	json_set_uint(j, "deleted", o.deleted);
	wire_set_paths(j, "changed_paths", &o.changed);
	return 0;
}

const struct wire_verb wire_status = { "status", serve_status };

/* --- remove, mount, umount -------------------------------------------------------------- */

int engine_remove(struct engine *e, const char *clone, bool force, struct engine_removed *ret,
		  struct err *err)
{
	CLEANUP(ask_done) struct ask a;
	struct engine_removed removed;
	struct json answer;
	int r;

	ask_begin(&a, e, wire_remove.name);
	json_set_name(a.options, "clone", clone);
	json_set_bool(a.options, "force", force);
	r = ask_daemon(&a, e, ASK_STORE, NULL, &answer, err);
	if (r < 0)
		return r;
	removed.snapshots = json_get_uint(answer, "snapshots");
	r = ask_end(&a, err);
	if (r >= 0)
		*ret = removed;
	return r;
}

static int serve_remove(struct engine *e, const struct engine_watch *watch, struct json options,
			struct json answer, struct err *err)
{
	AUTO_FREE char *clone = json_get_name(options, "clone");
	const bool force = json_get_bool(options, "force");
	struct engine_removed removed;
	int r = json_end(options.doc, err);

	(void)watch;
	if (r >= 0)
		r = clone_remove(e, clone, force, &removed, err);
	if (r >= 0)
		json_set_uint(answer, "snapshots", removed.snapshots);
	return r;
}

const struct wire_verb wire_remove = { "remove", serve_remove };

int engine_mount(struct engine *e, const char *clone, char **ret_path, struct err *err)
{
	CLEANUP(ask_done) struct ask a;
	AUTO_FREE char *path = NULL;
	struct json answer;
	int r;

	ask_begin(&a, e, wire_mount.name);
	json_set_name(a.options, "clone", clone);
	r = ask_daemon(&a, e, ASK_STORE, NULL, &answer, err);
	if (r < 0)
		return r;
	path = json_get_name(answer, "path");
	r = ask_end(&a, err);
	if (r >= 0)
		*ret_path = TAKE_PTR(path);
	return r;
}

static int serve_mount(struct engine *e, const struct engine_watch *watch, struct json options,
		       struct json answer, struct err *err)
{
	AUTO_FREE char *clone = json_get_name(options, "clone"), *path = NULL;
	int r = json_end(options.doc, err);

	(void)watch;
	if (r >= 0)
		r = clone_mount(e, clone, &path, err);
	if (r >= 0)
		json_set_name(answer, "path", path);
	return r;
}

const struct wire_verb wire_mount = { "mount", serve_mount };

int engine_umount(struct engine *e, const char *clone, bool force, struct err *err)
{
	CLEANUP(ask_done) struct ask a;
	struct json answer;

	ask_begin(&a, e, wire_umount.name);
	json_set_name(a.options, "clone", clone);
	json_set_bool(a.options, "force", force);
	return ask_daemon(&a, e, ASK_STORE, NULL, &answer, err);
}

static int serve_umount(struct engine *e, const struct engine_watch *watch, struct json options,
			struct json answer, struct err *err)
{
	AUTO_FREE char *clone = json_get_name(options, "clone");
	const bool force = json_get_bool(options, "force");
	int r = json_end(options.doc, err);

	(void)watch;
	(void)answer;
	return r < 0 ? r : clone_umount(e, clone, force, err);
}

const struct wire_verb wire_umount = { "umount", serve_umount };
