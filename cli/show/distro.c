#include "cli/show/distro.h"

#include <inttypes.h>

#include "base/cquote.h"

static const char *status_word(enum delta_status status)
{
	switch (status) {
	case DELTA_ADDED:
		return "added";
	case DELTA_DELETED:
		return "removed";
	default:
		return "changed";
	}
}

/* --- for people ------------------------------------------------------------------------- */

static int begin_line(const struct engine_distro_change *c, const char *what, const char *name,
		      struct buf *to)
{
	if (buf_printf(to, "# %s %s: ", what, status_word(c->status)) < 0)
		return -1;
	return cquote_append(to, "", name);
}

static int append_account(const struct engine_distro_change *c, struct buf *to)
{
	const bool user = c->kind == ENGINE_USER;

	if (begin_line(c, user ? "user" : "group", c->name, to) < 0 ||
	    buf_printf(to, " (%s %" PRIu32, user ? "uid" : "gid", c->id) < 0)
		return -1;
	if (user && (buf_append_str(to, ", home ") < 0 || cquote_append(to, "", c->home) < 0 ||
		     buf_append_str(to, ", shell ") < 0 || cquote_append(to, "", c->shell) < 0))
		return -1;
	if (!user && *c->members &&
	    (buf_append_str(to, ", with ") < 0 || cquote_append(to, "", c->members) < 0))
		return -1;
	return buf_append_str(to, ")\n");
}

/* What a package brings is its own matter. */
static int append_config(const struct engine_distro_change *c, struct buf *to)
{
	if (c->shipped)
		return 0;
	if (begin_line(c, "configuration", c->path, to) < 0)
		return -1;
	return c->package ? buf_printf(to, " (of %s)\n", c->package) : buf_append_str(to, "\n");
}

int distro_line(const struct engine_distro_change *c, struct buf *to)
{
	switch (c->kind) {
	case ENGINE_USER:
	case ENGINE_GROUP:
		return append_account(c, to);
	case ENGINE_SERVICE:
		return begin_line(c, "service", c->name, to) < 0 ? -1 : buf_append_str(to, "\n");
	case ENGINE_CONFIG:
		return append_config(c, to);
	case ENGINE_FILE:
		break;
	}
	return 0;
}

int distro_counts_line(const struct engine_parts *p, struct buf *to)
{
	return buf_printf(to,
			  "# files: %" PRIu64 " of packages, %" PRIu64 " configuration, %" PRIu64
			  " derived, %" PRIu64 " state, %" PRIu64 " others\n",
			  p->package, p->configuration, p->derived, p->state, p->other);
}

/* --- for programs ----------------------------------------------------------------------- */

static void begin(struct distro_json *d, struct json j)
{
	static const char *const names[] = {
		[ENGINE_USER] = "users",       [ENGINE_GROUP] = "groups",
		[ENGINE_SERVICE] = "services", [ENGINE_CONFIG] = "configuration",
		[ENGINE_FILE] = "others",
	};

	if (d->begun)
		return;
	d->begun = true;
	d->all = json_set_object(j, "system");
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		d->lists[i] = json_set_array(d->all, names[i]);
}

void distro_set_change(struct distro_json *d, struct json j, const struct engine_distro_change *c)
{
	struct json one;

	begin(d, j);
	one = json_add_object(d->lists[c->kind]);
	if (c->name)
		json_set_name(one, "name", c->name);
	if (c->path)
		json_set_name(one, "path", c->path);
	json_set_text(one, "status", status_word(c->status));
	if (c->kind <= ENGINE_GROUP)
		json_set_uint(one, "id", c->id);
	if (c->kind == ENGINE_USER) {
		json_set_uint(one, "group", c->group);
		json_set_name(one, "home", c->home);
		json_set_name(one, "shell", c->shell);
	}
	if (c->kind == ENGINE_GROUP)
		json_set_name(one, "members", c->members);
	if (c->kind == ENGINE_CONFIG) {
		json_set_name(one, "package", c->package);
		json_set_bool(one, "shipped", c->shipped);
	}
}

void distro_set_counts(struct distro_json *d, struct json j, const struct engine_parts *p)
{
	const struct {
		const char *name;
		uint64_t n;
	} counts[] = {
		{ "package", p->package }, { "configuration", p->configuration },
		{ "derived", p->derived }, { "state", p->state },
		{ "other", p->other },
	};
	struct json files;

	begin(d, j);
	files = json_set_object(d->all, "files");
	for (size_t i = 0; i < ARRAY_LEN(counts); i++)
		json_set_uint(files, counts[i].name, counts[i].n);
}
